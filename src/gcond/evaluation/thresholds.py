"""What the threshold δ of A' does: the same condensed graph with more or fewer of its edges, each trained on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.errors import GcondError
from gcond.evaluation.evaluate import check_fit, deviation, working
from gcond.graph.source_graph import SourceGraph
from gcond.jobs.runner import Runner
from gcond.jobs.training_job import TrainingJob
from gcond.linalg.sparse import Identity
from gcond.matching.structure import PairwiseMLP, sparsify
from gcond.models import resolve
from gcond.models.model import Model
from gcond.results.run_folder import RunFolder
from gcond.results.threshold import ThresholdPoint
from gcond.runtime.engines.engine import Engine
from gcond.runtime.memory import parse_bytes
from gcond.runtime.tick import Tick
from gcond.training.recipe import Recipe, recipe_for

DELTAS = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""The paper's (appendix, effect of the threshold)."""


def threshold_sweep(
    small: CondensedGraph,
    source: SourceGraph,
    deltas: Sequence[float] | None = None,
    runs: int = 3,
    *,
    model: str | Model = "gcn",
    seed: int = 0,
    recipe: Recipe | Mapping[str, Any] | None = None,
    device: str = "auto",
    folder: str | Path | None = None,
    engine: Engine | None = None,
    on_progress: Tick | None = None,
) -> list[ThresholdPoint]:
    """Train ``model`` on ``small`` with A' thresholded at each of ``deltas``, in their order.

    Without ``deltas`` it is the paper's, from what the file still has on, and the δ that it was saved with. Thresholds
    that leave the same graph share its score; where all do, there is nothing to compare, and it is refused.
    """
    kept = _lightest_kept(small)
    if deltas is None:
        shipped = [] if (saved := shipped_delta(small)) is None else [saved]
        deltas = sorted({delta for delta in (*DELTAS, *shipped) if delta >= kept})
    if not deltas:
        raise GcondError("no threshold is named: give at least one")
    for delta in deltas:
        _check_delta(delta, kept)
    dense, shrink = unthresholded(small), shrinks(small)
    weights = dense[dense > 0]
    if len(weights) == 0 or bool((weights == weights[0]).all()):
        raise GcondError("all edges of this graph weigh the same: only where weights differ does a threshold choose")
    graphs = [_with_adjacency(small, sparsify(dense, delta, shrink=shrink)) for delta in deltas]
    different = {graph.sha256: graph for graph in graphs}
    if len(different) == 1 < len(set(deltas)):
        raise GcondError(
            f"all these thresholds leave the same graph, whose edges weigh {float(weights.min()):.3g} to "
            f"{float(weights.max()):.3g}: only between these does a threshold choose"
        )
    check_fit(small, source)
    (network,) = resolve(model)
    how, seeds = recipe_for(network, recipe), tuple(range(seed, seed + runs))
    jobs = {key: TrainingJob(graph, network, how, seeds, "the thresholded graph") for key, graph in different.items()}
    with working(engine) as workers:
        runner = Runner(source, RunFolder(folder), workers, device=device, on_progress=on_progress)
        trials = dict(zip(jobs, runner.train(list(jobs.values())), strict=True))
        runner.raise_first_failure()
    tests = {key: [trial.test for trial in own if trial.test is not None] for key, own in trials.items()}
    return [
        ThresholdPoint(delta, graph.statistics.density, fmean(reached), deviation(reached), len(reached))
        for delta, graph in zip(deltas, graphs, strict=True)
        if (reached := tests[graph.sha256])
    ]


def thresholded(small: CondensedGraph, delta: float) -> CondensedGraph:
    """``small`` with A' thresholded at ``delta`` instead of at the δ that it was saved with."""
    _check_delta(delta, _lightest_kept(small))
    return _with_adjacency(small, sparsify(unthresholded(small), delta, shrink=shrinks(small)))


@torch.no_grad()
def unthresholded(small: CondensedGraph) -> Tensor:
    """A' [n, n] (row = target) as it was before it was thresholded.

    Where the file keeps Φ, g_Φ(X') is made again, with the statistics of BN that it was finished with. Without Φ it is
    what the file has, in which everything up to the δ it was saved with is 0.
    """
    if "weight2" in small.structure:
        return _pairwise(small)
    adjacency = small.adjacency()
    if isinstance(adjacency, Identity):
        raise GcondError("this graph has no edges (A' = I): there is nothing that a threshold could drop")
    taken = shipped_delta(small) if shrinks(small) else None
    return adjacency if taken is None else torch.where(adjacency > 0, adjacency + taken, 0.0)


def shipped_delta(small: CondensedGraph) -> float | None:
    """The threshold that ``small`` was saved with, if its method has one."""
    made = small.provenance
    delta = made.settings.get("delta") if made is not None else None
    return float(delta) if isinstance(delta, int | float) else None


def _pairwise(small: CondensedGraph) -> Tensor:
    made = small.provenance
    phi = small.structure
    memory = made.settings.get("memory") if made is not None else None
    structure = PairwiseMLP(
        hidden=phi["weight2"].shape[0],
        symmetric=not (made is not None and made.directed) or _is_symmetric(small),
        memory=parse_bytes(memory if isinstance(memory, str) else "1GB"),
    )
    try:
        adjacency = structure.adjacency(phi, small.x)
    except (KeyError, RuntimeError, IndexError):
        raise GcondError("the weights of the structure do not fit the graph: condense it again") from None
    assert isinstance(adjacency, Tensor)
    return adjacency


def _is_symmetric(small: CondensedGraph) -> bool:
    """Whether A' is stored with both directions of every edge, which a directed source does not ask for."""
    adjacency = small.adjacency()
    return isinstance(adjacency, Tensor) and torch.equal(adjacency, adjacency.T)


def shrinks(small: CondensedGraph) -> bool:
    """Whether the threshold was also taken off the weights that it left, so that they start from 0."""
    return small.provenance is not None and small.provenance.settings.get("sparsify") == "shrink"


def _lightest_kept(small: CondensedGraph) -> float:
    """Edges up to this weight cannot be had any more; 0 where Φ makes them again."""
    return 0.0 if "weight2" in small.structure else (shipped_delta(small) or 0.0)


def _check_delta(delta: float, kept: float) -> None:
    if not 0 <= delta < 1:
        raise GcondError(f"threshold {delta} is not usable: it must be at least 0 and below 1")
    if delta < kept:
        raise GcondError(
            f"threshold {delta:g} is below {kept:g}, up to which this graph's edges were dropped: use {kept:g} or more"
        )


def _with_adjacency(small: CondensedGraph, adjacency: Tensor) -> CondensedGraph:
    target, source = adjacency.nonzero(as_tuple=True)
    made = small.provenance
    if made is not None:
        made = dataclasses.replace(made, scores=())  # they are of another graph
    return dataclasses.replace(
        small, edge_index=torch.stack([source, target]), edge_weight=adjacency[target, source], provenance=made
    )
