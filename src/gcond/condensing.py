"""``gcond.condense``: from a graph, a method's name and a budget to a condensed graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond import methods, settings
from gcond.artefact import CondensedGraph
from gcond.budget import Budget, resolve_budget
from gcond.callbacks.base import Callback
from gcond.data import load
from gcond.device import choose_device
from gcond.graph import SourceGraph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def budget_for(graph: SourceGraph, *, ratio: str | float | None = None, nodes: int | None = None) -> Budget:
    """The budget that ``ratio`` or ``nodes`` means on ``graph``."""
    return resolve_budget(
        ratio=ratio,
        nodes=nodes,
        population=graph.budget_population,
        labelled=int(graph.train_mask.sum()),
        classes=graph.num_classes,
    )


def condense(
    graph: SourceGraph | Data | str | Path,
    *,
    method: str = "herding",
    ratio: str | float | None = None,
    nodes: int | None = None,
    seed: int = 0,
    device: str = "auto",
    callbacks: Sequence[Callback] = (),
    **options: Any,
) -> CondensedGraph:
    """Condense ``graph`` (or what :func:`gcond.load` makes of it) to a budget given as ``ratio`` or ``nodes``.

    ``options`` are the settings of the method (``gcond methods`` lists them); unknown ones are refused.
    The same seed gives the same tensors.
    """
    graph = load(graph)
    seed = settings.whole_number(seed, "seed")
    chosen = settings.build(methods.find(method), options, f"method '{method}'")
    budget = budget_for(graph, ratio=ratio, nodes=nodes)
    return chosen.condense(graph, budget, seed, choose_device(device), callbacks)
