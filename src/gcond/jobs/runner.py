"""Many condensed graphs and many trainings, kept in a folder: what is there already is not done again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from gcond.callbacks.checkpoint import Checkpoint, checkpoint_of
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.config import settings
from gcond.errors import GcondError
from gcond.evaluation.evaluate import Training
from gcond.graph.budget import Budget
from gcond.graph.source_graph import SourceGraph
from gcond.methods.method import Method
from gcond.models.model import Model
from gcond.results.failure import Failure
from gcond.results.row_log import RowLog
from gcond.results.trial import Timing, Trial
from gcond.runtime.device import choose_device
from gcond.runtime.engines.engine import Engine, Outcome
from gcond.runtime.files import check_writable, make_folder
from gcond.runtime.memory import reset_peak_rss
from gcond.runtime.tick import Tick
from gcond.training.recipe import Recipe

# Runs of graphs that differ in their seed start this far apart, or by the number of runs where that is more: a method
# that makes the same graph of every seed has trainings of its own for each.
SEED_STRIDE = 10

# What is trained on where nothing is condensed, in words.
ORIGINAL = "the whole graph"

# Epochs of a training that is only timed.
TIMED_EPOCHS = 20

J = TypeVar("J")
R = TypeVar("R")


@dataclass(frozen=True)
class Condensation:
    """A condensed graph to be made."""

    method: Method
    budget: Budget
    seed: int

    def __str__(self) -> str:
        return f"{settings.spelled(self.method.name, self.method)}, {self.budget.nodes} nodes, seed {self.seed}"

    def file(self, source: SourceGraph) -> str:
        """A name that says what it is, and that no other graph of the source has."""
        key = self.method.identify(source, self.budget, self.seed)[:12]
        return f"{self.method.name}-{self.budget.nodes}-{self.seed}-{key}.safetensors"


@dataclass(frozen=True, eq=False)
class Order:
    """A model to be trained from each of ``seeds``."""

    graph: CondensedGraph | None
    """None is the whole graph."""
    model: Model
    recipe: Recipe
    seeds: tuple[int, ...]
    label: str = ORIGINAL
    """What it is trained on, in words."""

    def __str__(self) -> str:
        return f"{settings.spelled(self.model.name, self.model)} on {self.label}"


class Sweep:
    """Condensations and trainings on one source graph.

    ``folder`` keeps the condensed graphs in ``graphs/``, trials in ``trials.jsonl`` and how long a training takes in
    ``timings.jsonl``; each is written as soon as it is done, by this process alone, whoever did the work. A killed
    sweep goes on where it was, and a condensation that learns goes on from its checkpoint where the workers see the
    folder. What fails is told in :attr:`failures`, and tried again by the next sweep.
    """

    def __init__(
        self,
        source: SourceGraph,
        folder: Path,
        engine: Engine,
        *,
        device: str = "auto",
        on_progress: Tick | None = None,
    ) -> None:
        self.source, self.folder, self.failures = source, folder, list[Failure]()
        self._engine, self._device, self._on_progress = engine, device, on_progress
        if not engine.idle:
            make_folder(folder / "graphs")
            check_writable(folder / "trials.jsonl")
        self._log = RowLog(folder / "trials.jsonl", Trial, "trial")
        self._timings = RowLog(folder / "timings.jsonl", Timing, "timing")

    def path(self, condensation: Condensation) -> Path:
        """Where a condensed graph is kept."""
        return self.folder / "graphs" / condensation.file(self.source)

    def condense(self, condensations: Iterable[Condensation]) -> dict[Condensation, CondensedGraph]:
        """The condensed graphs, but for those that failed."""
        wanted = list(dict.fromkeys(condensations))
        found = {job: graph for job in wanted if (graph := self._kept(job)) is not None}
        missing = [job for job in wanted if job not in found]
        shared = _Making(self.source, self._device, self.folder / "graphs" if self._engine.shares_files else None)
        outcomes = self._engine.map(_condense, shared, missing)
        for job, small in self._follow("condensing", outcomes, len(wanted) - len(missing), len(wanted)):
            small.save(self.path(job))
            checkpoint_of(self.path(job)).unlink(missing_ok=True)
            found[job] = small
        return {job: found[job] for job in wanted if job in found}

    def train(self, orders: Sequence[Order]) -> list[list[Trial]]:
        """The trials of each order, by seed, but for those that failed."""
        keys = [self._training(order).key for order in orders]
        wanted = {(key, seed) for key, order in zip(keys, orders, strict=True) for seed in order.seeds}
        batches = list(self._missing(orders, keys))
        known = len(wanted) - sum(len(batch.seeds) for batch in batches)
        outcomes = self._engine.map(_train, _Testing(self.source, self._device), batches)
        for _, trials in self._follow("training", outcomes, known, len(wanted), lambda batch: len(batch.seeds)):
            for trial in trials:
                self._log.add(trial)
        found = [[self._log.find(key, seed) for seed in order.seeds] for key, order in zip(keys, orders, strict=True)]
        return [[trial for trial in trials if trial is not None] for trials in found]

    def seconds(self, orders: Sequence[Order]) -> list[float | None]:
        """CPU seconds of one training of each order; None where it is not known.

        Trials were done at different times beside different work, so their own seconds do not compare. A few epochs of
        all orders are timed in one job instead, of all of them again where one is new.
        """
        keys = [(self._training(order).key, order.seeds[0]) for order in orders]
        if any(self._timings.find(*key) is None for key in keys):
            job = _Timed(tuple(replace(order, seeds=order.seeds[:1]) for order in orders))
            outcomes = self._engine.map(_time, _Testing(self.source, self._device), [job])
            for _, spent in self._follow("timing", outcomes, 0, 1):
                for key, seconds in zip(keys, spent, strict=True):
                    self._timings.add(Timing(*key, seconds))
        found = [self._timings.find(*key) for key in keys]
        return [None if timing is None else timing.cpu_seconds for timing in found]

    def _kept(self, job: Condensation) -> CondensedGraph | None:
        """The graph in the folder; a file that is damaged is as good as none."""
        try:
            return CondensedGraph.load(self.path(job)) if self.path(job).exists() else None
        except GcondError:
            return None

    def _training(self, order: Order) -> Training:
        return Training(order.graph or self.source, self.source, order.model, order.recipe)

    def _missing(self, orders: Sequence[Order], keys: Sequence[str]) -> Iterator[Order]:
        """What is not in the log yet, in batches that train side by side."""
        taken: set[tuple[str, int]] = set()
        for order, key in zip(orders, keys, strict=True):
            seeds = [s for s in order.seeds if self._log.find(key, s) is None and (key, s) not in taken]
            taken.update((key, seed) for seed in seeds)
            together = self._training(order).together() if seeds else 1
            for start in range(0, len(seeds), together):
                yield replace(order, seeds=tuple(seeds[start : start + together]))

    def _follow(
        self,
        what: str,
        outcomes: Iterable[Outcome[J, R]],
        done: int,
        total: int,
        count: Callable[[J], int] = lambda job: 1,
    ) -> Iterator[tuple[J, R]]:
        """Jobs and results as they come; failures are kept, and progress is told."""
        tick = self._on_progress or _ignore
        tick(what, done, total)
        for outcome in outcomes:
            if outcome.result is None:
                self.failures.append(Failure(str(outcome.job), outcome.error or "no result"))
            else:
                yield outcome.job, outcome.result
            done += count(outcome.job)
            tick(what, done, total)


@dataclass(frozen=True, eq=False)
class _Making:
    """What condensations share."""

    source: SourceGraph
    device: str
    checkpoints: Path | None


@dataclass(frozen=True, eq=False)
class _Timed:
    """Trainings that are timed side by side, one of each order."""

    orders: tuple[Order, ...]

    def __str__(self) -> str:
        return f"timing {self.orders[0].model.name}"


@dataclass(frozen=True, eq=False)
class _Testing:
    """What trainings share."""

    source: SourceGraph
    device: str


def _condense(shared: _Making, job: Condensation) -> CondensedGraph:
    reset_peak_rss()
    callbacks = []
    if shared.checkpoints is not None:
        place = checkpoint_of(shared.checkpoints / job.file(shared.source))
        callbacks.append(Checkpoint(place, resume=True, forgiving=True))
    return job.method.condense(shared.source, job.budget, job.seed, choose_device(shared.device), callbacks)


def _train(shared: _Testing, job: Order) -> list[Trial]:
    training = Training(job.graph or shared.source, shared.source, job.model, job.recipe)
    return training.run(job.seeds, choose_device(shared.device))


def _time(shared: _Testing, job: _Timed) -> list[float]:
    """Every order in turn, twice; the quicker of the two is the one that was disturbed less."""
    best = [math.inf] * len(job.orders)
    for _ in range(2):
        for place, order in enumerate(job.orders):
            epochs = min(TIMED_EPOCHS, order.recipe.epochs)
            start = time.process_time()
            _train(shared, replace(order, recipe=replace(order.recipe, epochs=epochs)))
            spent = (time.process_time() - start) * order.recipe.epochs / epochs
            best[place] = min(best[place], spent)
    return best


def training_seeds(seed: int, runs: int) -> tuple[int, ...]:
    """The seeds of the runs on a graph that was condensed from ``seed``."""
    first = seed * max(runs, SEED_STRIDE)
    return tuple(range(first, first + runs))


def _ignore(what: str, done: float, total: float, detail: str = "") -> None:
    pass
