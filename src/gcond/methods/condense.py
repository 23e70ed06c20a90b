"""``gcond.condense``: from a graph, a method and a budget to a condensed graph."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond import methods
from gcond.callbacks.callback import Callback
from gcond.callbacks.checkpoint import Checkpoint
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.config import settings
from gcond.data import load
from gcond.errors import GcondError
from gcond.graph.budget import Budget, resolve_budget
from gcond.graph.learning_setting import Setting
from gcond.graph.source_graph import SourceGraph
from gcond.methods import recipe_file as recipes
from gcond.methods.method import Method
from gcond.runtime.device import choose_device

if TYPE_CHECKING:
    from torch_geometric.data import Data

DEFAULT_METHOD = "gcond"


def budget_for(graph: SourceGraph, *, ratio: str | float | None = None, nodes: int | None = None) -> Budget:
    """The budget that ``ratio`` or ``nodes`` means on ``graph``."""
    return resolve_budget(
        ratio=ratio,
        nodes=nodes,
        population=graph.budget_population,
        labelled=int(graph.train_mask.sum()),
        classes=graph.num_classes,
    )


def method_for(method: str | Method, options: Mapping[str, Any], recipe: str | Path | None = None) -> Method:
    """The method of that name with the settings of ``recipe``, or the given one, and ``options`` on top."""
    if isinstance(method, Method):
        if recipe is not None:
            raise GcondError(f"recipe='{recipe}' is for a method by name, and this {method.name} brings its settings")
        given = settings.as_dict(method) | dict(options)
        return settings.build(type(method), given, f"method '{method.name}'") if options else method
    given = recipes.load(recipe).settings(method) if recipe is not None else {}
    return settings.build(methods.find(method), given | dict(options), f"method '{method}'")


def condense(
    graph: SourceGraph | Data | str | Path,
    *,
    method: str | Method = DEFAULT_METHOD,
    ratio: str | float | None = None,
    nodes: int | None = None,
    seed: int = 0,
    setting: Setting | None = None,
    directed: bool = False,
    device: str = "auto",
    recipe: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | Path | None = None,
    resume: bool = False,
    **options: Any,
) -> CondensedGraph:
    """Condense ``graph`` (or what :func:`gcond.load` makes of it) to a budget given as ``ratio`` or ``nodes``.

    ``method`` is a name or a :class:`~gcond.methods.Method`, which may be your own. ``options`` are its settings
    (``gcond methods`` lists them); unknown ones are refused. They go before those of ``recipe``, a TOML file or the
    name of a recipe that comes with gcond, such as ``"cora"``. The same seed gives the same tensors.

    ``setting`` and ``directed`` say how ``graph`` is read, as for :func:`gcond.load`. What was decided or repaired
    there (a split that was drawn, one-way edges that got their reverse) is said as a ``UserWarning`` each; a
    ``SourceGraph`` has said it in its ``notes`` before.

    Methods that learn tell ``callbacks`` (:mod:`gcond.callbacks`) what happens. With ``checkpoint`` they write
    their state to that file at the start, every half a minute and at the end; with ``resume`` they go on from it if
    it is there. The file stays: remove it once the result is saved. Other methods take one step and do none of this.
    """
    if resume and checkpoint is None:
        raise GcondError("resume needs to know what from: give the file as checkpoint")
    graph = _loaded(graph, setting, directed)
    seed = settings.whole_number(seed, "seed")
    chosen = method_for(method, options, recipe)
    budget = budget_for(graph, ratio=ratio, nodes=nodes)
    if checkpoint is not None:
        callbacks = [Checkpoint(checkpoint, resume=resume), *callbacks]
    return chosen.condense(graph, budget, seed, choose_device(device), callbacks)


def _loaded(graph: SourceGraph | Data | str | Path, setting: Setting | None, directed: bool) -> SourceGraph:
    """``graph`` as it is asked for; what loading it found is said, unless the caller did the loading."""
    found = load(graph, setting=setting, directed=directed)
    for note in () if isinstance(graph, SourceGraph) else found.notes:
        warnings.warn(f"{found.name}: {note}", UserWarning, stacklevel=3)
    return found
