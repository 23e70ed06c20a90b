"""What the threshold δ of A' does: the same condensed graph with more or fewer of its edges, each trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.errors import GcondError
from gcond.evaluation.evaluate import Progress, Score, evaluate
from gcond.graph.source_graph import SourceGraph
from gcond.matching.sparsification import lowest_threshold, shipped_delta, thresholded, unthresholded
from gcond.training.recipe import Recipe

DELTAS = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""The paper's (appendix, effect of the threshold)."""


@dataclass(frozen=True)
class ThresholdPoint:
    """One threshold: what it leaves of A', and what a model reaches on that."""

    delta: float
    density: float
    """Entries of A' that are left, as a share of n²; the paper calls it sparsity."""
    mean: float
    """Mean test accuracy, a fraction."""
    std: float
    n: int
    """Trainings."""


def threshold_sweep(
    small: CondensedGraph,
    source: SourceGraph,
    deltas: Sequence[float] | None = None,
    runs: int = 3,
    *,
    model: str = "gcn",
    seed: int = 0,
    recipe: Recipe | Mapping[str, Any] | None = None,
    device: str = "auto",
    trials: str | Path | None = None,
    on_progress: Progress | None = None,
) -> list[ThresholdPoint]:
    """Train ``model`` on ``small`` with A' thresholded at each of ``deltas``, in their order.

    Without ``deltas`` it is the paper's, from what the file still has on, and the δ that it was saved with. Thresholds
    that leave the same graph share its score; where all do, there is nothing to compare, and it is refused.
    ``on_progress(what, done, total)`` counts epochs over all of them.
    """
    if deltas is None:
        shipped = [] if (saved := shipped_delta(small)) is None else [saved]
        deltas = sorted({delta for delta in (*DELTAS, *shipped) if delta >= lowest_threshold(small)})
    if not deltas:
        raise GcondError("no threshold is named: give at least one")
    graphs = [thresholded(small, delta) for delta in deltas]
    dense = unthresholded(small)
    weights = dense[dense > 0]
    if len(weights) == 0 or bool((weights == weights[0]).all()):
        raise GcondError("all edges of this graph weigh the same: only where weights differ does a threshold choose")
    different = {graph.sha256: graph for graph in graphs}
    if len(different) == 1 < len(set(deltas)):
        raise GcondError(
            f"all these thresholds leave the same graph, whose edges weigh {float(weights.min()):.3g} to "
            f"{float(weights.max()):.3g}: only between these does a threshold choose"
        )
    scores: dict[str, Score] = {}
    for place, (key, graph) in enumerate(different.items()):

        def tick(name: str, done: int, total: int, place: int = place) -> None:
            if on_progress:
                on_progress(name, place * total + done, len(different) * total)

        [scores[key]] = evaluate(
            graph,
            on=source,
            models=model,
            runs=runs,
            seed=seed,
            recipe=recipe,
            device=device,
            trials=trials,
            on_progress=tick,
        )
    return [
        ThresholdPoint(delta, graph.statistics.density, scores[graph.sha256].mean, scores[graph.sha256].std, runs)
        for delta, graph in zip(deltas, graphs, strict=True)
    ]
