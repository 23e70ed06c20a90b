"""How long a comparison will take, told before it starts: what is left to do, and short pieces of it that are timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from gcond.condensed import CondensedGraph
from gcond.jobs import Condensation, TrainingJob, training_seeds
from gcond.jobs.training_job import Length, TimedTogether, TrainingGround, time_together
from gcond.matching.callback import Callback
from gcond.methods.random import Random
from gcond.models import Model
from gcond.results import RunFolder
from gcond.runtime.device import choose_device
from gcond.training import Recipe

if TYPE_CHECKING:
    from gcond.matching.run import Run


STARTING = 2.5
"""CPU seconds that a process takes for Python, torch and gcond, and for what is imported on its first job; measured."""
READING = 1e9
"""Bytes of the source that a worker takes in per CPU second, roughly."""


@dataclass(frozen=True)
class ComparisonTime:
    """What a comparison has left to do."""

    graphs: int
    trainings: int
    cpu_seconds: float
    """About: every training and learning to its last epoch, as one epoch of each went, what each worker takes to start,
    and what it takes to time them in the end."""
    workers: int
    uncounted: tuple[str, ...]
    """Methods that have graphs to make and no epochs to judge by: those that do not learn."""

    @property
    def seconds(self) -> float:
        """On the clock, if every worker has a core of its own."""
        return self.cpu_seconds / self.workers


def comparison_time(
    grid: Sequence[Condensation],
    networks: Sequence[tuple[Model, Recipe]],
    runs: int,
    *,
    kept: RunFolder,
    ground: TrainingGround,
    workers: int,
) -> ComparisonTime:
    """The time for the graphs and trainings that ``kept`` lacks.

    A training is timed by short ones, on the whole graph and on as many random nodes as each budget has. A method that
    learns has its cost in graphs that are there, else its first epoch is timed, at the largest budget; the others take
    about as long as a training or two and are not counted.
    """
    source = ground.source
    there = {job: kept.graph(job.file(source)) for job in grid}
    missing = [job for job, small in there.items() if small is None]
    seconds, trainings, began = 0.0, 0, time.process_time()
    stand_ins = {job.budget: Random().condense(source, job.budget, 0) for job in grid}
    for model, recipe in networks:
        whole = TrainingJob(None, model, recipe, tuple(range(runs)))
        places: list[tuple[CondensedGraph | None, int]] = [(None, _left(whole, kept, ground))]
        for job, small in there.items():
            training = TrainingJob(small, model, recipe, training_seeds(job.seed, runs))
            places.append((stand_ins[job.budget], runs if small is None else _left(training, kept, ground)))
        trainings += sum(left for _, left in places)
        distinct = [None, *stand_ins.values()]
        timed = tuple(TrainingJob(graph, model, recipe, (0,)) for graph in distinct)
        lengths = tuple(Length.of([], recipe) for _ in timed)
        if any(left for _, left in places):
            cost = time_together(ground, TimedTogether(timed, lengths), lambda _: None)
            each = {id(graph): one for graph, one in zip(distinct, cost, strict=True)}
            seconds += sum(left * each[id(graph)] for graph, left in places)
    if missing or trainings:
        # The comparison ends in such short trainings as this began with.
        seconds += time.process_time() - began + max(1, workers) * (STARTING + source.nbytes / READING)
    learned = {job.method: job for job in sorted(missing, key=lambda job: job.budget.nodes) if _epochs(job)}
    for method, largest in learned.items():
        known = [small for job, small in there.items() if small is not None and job.method == method]
        costs = [small.provenance.cost["cpu_seconds"] for small in known if small.provenance is not None]
        one = fmean(costs) if costs else _learning_seconds(largest, ground)
        seconds += one * sum(job.method == method for job in missing)
    uncounted = tuple(dict.fromkeys(job.method.name for job in missing if not _epochs(job)))
    return ComparisonTime(len(missing), trainings, seconds, max(1, workers), uncounted)


def _left(job: TrainingJob, kept: RunFolder, ground: TrainingGround) -> int:
    """How many runs of ``job`` are not there."""
    key = job.key(ground.source)
    return sum(kept.trials.find(key, seed) is None for seed in job.seeds)


def _epochs(job: Condensation) -> int:
    return getattr(job.method, "epochs", 0) if job.method.kind == "learned" else 0


class _FirstEpoch(Callback):
    """Ends learning after its first epoch, and keeps when that began and ended."""

    def __init__(self) -> None:
        self.began = self.ended = time.process_time()

    def on_start(self, run: Run) -> None:
        self.began = self.ended = time.process_time()

    def on_epoch(self, run: Run) -> None:
        self.ended = time.process_time()
        run.stop("timed", at_once=True, look=False)


def _learning_seconds(job: Condensation, ground: TrainingGround) -> float:
    """CPU seconds of a condensation that learns, as long as its start and so many first epochs."""
    start, first = time.process_time(), _FirstEpoch()
    device = choose_device(ground.device)
    job.method.condense(ground.source, job.budget, job.seed, device, [first], threads=ground.threads)
    return (first.began - start) + _epochs(job) * (first.ended - first.began)
