"""The effect of the threshold δ of A': the same condensed graph with more or fewer of its edges, each trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.evaluation.evaluate import check_fit, working
from gcond.graph import SourceGraph
from gcond.jobs import Runner, TrainingJob
from gcond.linalg.sparse import edge_list
from gcond.matching.sparsification import lowest_threshold, shipped_delta, thresholded, unthresholded
from gcond.models import Model, resolve
from gcond.results import RunFolder, ThresholdPoint
from gcond.runtime.engines import Engine
from gcond.runtime.progress_tick import Tick
from gcond.training import Recipe, recipe_for
from gcond.training.metrics import deviation

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
    if deltas is None:
        shipped = [] if (saved := shipped_delta(small)) is None else [saved]
        deltas = sorted({delta for delta in (*DELTAS, *shipped) if delta >= lowest_threshold(small)})
    if not deltas:
        raise GcondError("no threshold is named: give at least one")
    graphs = [thresholded(small, delta) for delta in deltas]
    _, weights = edge_list(unthresholded(small))
    if len(weights) == 0 or bool((weights == weights[0]).all()):
        raise GcondError("all edges of this graph weigh the same: only where weights differ does a threshold choose")
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
