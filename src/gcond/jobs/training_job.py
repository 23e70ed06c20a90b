"""Trainings to be done, in batches that a worker trains side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from torch import Tensor

from gcond import __version__
from gcond.condensed import CondensedGraph
from gcond.config import settings
from gcond.errors import DivergedError
from gcond.graph import LabelledView, SourceGraph
from gcond.graph.stored_graph import StoredGraph
from gcond.models import Model
from gcond.models.model import Parameters
from gcond.results import Failure, Trial
from gcond.results.trial import trial_key
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Tell
from gcond.runtime.threads import threads_for
from gcond.training import Recipe, fit, predict
from gcond.training.fit import runs_together, stackable
from gcond.training.largest_product import largest_product
from gcond.training.metrics import confusion_matrix, measured
from gcond.training.progress import longest

# What is trained on where nothing is condensed, in words.
ORIGINAL = "the whole graph"

# Runs of graphs that differ in their seed start this far apart, or by the number of runs where that is more: a method
# that makes the same graph of every seed has trainings of its own for each.
SEED_STRIDE = 10

# Epochs, and looks, that are timed beyond a first one.
TIMED_EPOCHS = 20


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """A model to be trained from each of some seeds, on a condensed graph or on the whole source."""

    graph: CondensedGraph | None
    """The graph that it is trained on; ``None`` is the whole source."""
    model: Model
    recipe: Recipe
    seeds: tuple[int, ...]
    label: str = ORIGINAL
    """The name of the graph that it is trained on, in words."""
    tested: bool = True
    """Whether the test nodes are looked at. A search chooses by validation accuracy alone, and trains architectures
    side by side, where products round otherwise than a model's own: its trials are of a kind of their own."""

    def __str__(self) -> str:
        return f"{settings.spelled(self.model.name, self.model)} on {self.label}"

    def view(self, source: SourceGraph) -> LabelledView:
        """The graph that is trained on."""
        return source.view("train") if self.graph is None else self.graph.view()

    def key(self, source: SourceGraph) -> str:
        """The same for the same graphs, model and recipe; see :func:`~gcond.results.trial.trial_key`."""
        return trial_key(
            {
                "gcond": __version__,
                "train": (self.graph or source).sha256,
                "source": source.sha256,
                "model": self.model.name,
                "settings": asdict(self.model),
                "recipe": settings.identity(self.recipe),
                "tested": self.tested,
            }
        )


@dataclass(frozen=True, eq=False)
class Run:
    """One seed of a training, and the ``key`` of its trial."""

    job: TrainingJob
    key: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.key}/{self.seed}"

    def __str__(self) -> str:
        return f"{self.job}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Runs that are trained side by side: on one graph, by one recipe, of one model or of models of one shape."""

    runs: tuple[Run, ...]

    def __str__(self) -> str:
        return str(self.runs[0].job)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(run.name for run in self.runs)

    def only(self, names: Sequence[str]) -> Batch:
        """The runs of it that are called one of ``names``."""
        return Batch(tuple(run for run in self.runs if run.name in names))


def batches(runs: Sequence[Run], source: SourceGraph) -> Iterator[Batch]:
    """``runs`` in batches, each as large as it pays to train side by side."""
    groups: dict[object, list[Run]] = {}
    for run in runs:
        job = run.job
        trained_on = None if job.graph is None else job.graph.sha256
        alike = job.model if job.tested else stackable(job.model, source.num_features, source.num_classes)
        groups.setdefault((trained_on, job.recipe, job.tested, alike), []).append(run)
    for group in groups.values():
        job = group[0].job
        together = runs_together(job.model, job.view(source), source.num_classes)
        for start in range(0, len(group), together):
            yield Batch(tuple(group[start : start + together]))


@dataclass(frozen=True, eq=False)
class TrainingGround:
    """The things that all trainings share: the graph that they are validated and tested on, and where they compute."""

    source: SourceGraph
    device: str
    threads: int | None = None
    """CPU threads of each; ``None`` is as many as its work deserves."""


def train(shared: TrainingGround, batch: Batch, tell: Tell) -> list[Trial | Failure]:
    """Do one batch: a trial for each run, or why there is none."""
    try:
        return list(_train_stack(shared, batch.runs, tell))
    except DivergedError as error:
        if len(batch.runs) == 1:
            return [Failure(str(batch.runs[0]), str(error))]
    # Who diverged does not take the others along.
    return [found for run in batch.runs for found in train(shared, Batch((run,)), tell)]


@contextmanager
def prepared(shared: TrainingGround, job: TrainingJob) -> Iterator[tuple[LabelledView, LabelledView, LabelledView]]:
    """The graph that ``job`` is trained on, validation nodes and test nodes, where they are computed on, for as long as
    its trainings take, with as many threads as these deserve."""
    source, place = shared.source, choose_device(shared.device)
    train, val, test = (view.to(place) for view in (job.view(source), source.view("val"), source.view("test")))
    # Once for all that looks at them: of a graph past memory they are read from its store.
    train, val = (view.focus(job.model.reach, job.model.precomputed) for view in (train, val))
    work = max(largest_product(job.model, view, source.num_classes) for view in (train, val))
    with threads_for(work, shared.threads):
        yield train, val, test


def streamed_prediction(
    shared: TrainingGround, job: TrainingJob, parameters: Sequence[Parameters], test: LabelledView
) -> Tensor:
    """The classes by each of R sets of weights on a graph past memory, all of which is gone through: int64 [R, m].

    Threads are as many as that deserves; it is for after :func:`prepared`, whose are those that training deserves.
    """
    with threads_for(largest_product(job.model, test, shared.source.num_classes), shared.threads):
        return predict(job.model, parameters, test)


def _train_stack(shared: TrainingGround, runs: Sequence[Run], tell: Tell) -> Iterator[Trial]:
    job, source = runs[0].job, shared.source
    stack = job.model if job.tested else [run.job.model for run in runs]
    start = time.process_time()
    with prepared(shared, job) as (train, val, test):
        fitted = fit(
            stack,
            train,
            val,
            classes=source.num_classes,
            seeds=[run.seed for run in runs],
            recipe=job.recipe,
            on_epoch=lambda epoch: tell(epoch / job.recipe.epochs),
        )
        past_memory, predicted = isinstance(source, StoredGraph), None
        if job.tested and not past_memory:
            predicted = predict(stack, fitted.parameters, test)
    if job.tested and past_memory:
        predicted = streamed_prediction(shared, job, fitted.parameters, test)
    tested, confusions = [None] * len(runs), [None] * len(runs)
    if predicted is not None:
        tested = measured(predicted, test.y, source.num_classes).tolist()
        confusions = confusion_matrix(predicted, test.y, source.num_classes).tolist()
    seconds = (time.process_time() - start) / len(runs)
    condensed = job.graph.sha256 if job.graph is not None else None
    found = (fitted.val_accuracy.tolist(), tested, fitted.epoch.tolist())
    counts = (fitted.epochs.tolist(), fitted.looks.tolist(), confusions)
    for run, val_score, test_accuracy, epoch, epochs, looks, confusion in zip(runs, *found, *counts, strict=True):
        scores = (val_score, test_accuracy, epoch)
        kept = (epochs, looks, None if confusion is None else tuple(map(tuple, confusion)))
        yield Trial(run.key, source.name, condensed, run.job.model.name, run.seed, *scores, seconds, *kept)


@dataclass(frozen=True)
class Length:
    """How long a training is."""

    epochs: float
    looks: float
    """At the validation nodes, to choose the epoch."""

    @classmethod
    def of(cls, trials: Sequence[Trial], recipe: Recipe) -> Length:
        """The mean over ``trials``; where none was counted, the most that ``recipe`` allows."""
        counted = [(trial.epochs, trial.looks) for trial in trials]
        known = [(epochs, looks) for epochs, looks in counted if epochs is not None and looks is not None]
        if not known:
            end = longest(recipe)
            return cls(end.epoch, end.looks)
        return cls(*(fmean(part) for part in zip(*known, strict=True)))


@dataclass(frozen=True, eq=False)
class TimedTogether:
    """Trainings that are timed side by side, one of each job, and how long each is."""

    jobs: tuple[TrainingJob, ...]
    lengths: tuple[Length, ...]

    def __str__(self) -> str:
        return f"timing {self.jobs[0].model.name}"


def time_together(shared: TrainingGround, timed: TimedTogether, tell: Tell) -> list[float]:
    """CPU seconds of one training of each job, from what an epoch, a look and the rest cost in short ones.

    Looks are many at first and few later, and a run may end before its recipe does, so a short training scaled up
    would not be a long one. Every job in turn, twice; the quicker one was disturbed less.
    """
    several = 1 + TIMED_EPOCHS
    short: dict[str, dict[str, Any]] = {
        "one": {"epochs": 1, "validate_every": 1, "patience": 0},
        "rarely": {"epochs": several, "validate_every": several, "patience": 0},
        "always": {"epochs": several, "validate_every": 1, "patience": 0},
    }
    best = [dict.fromkeys(short, math.inf) for _ in timed.jobs]
    for again in range(2):
        for place, job in enumerate(timed.jobs):
            for name, limits in short.items():
                brief = replace(job, recipe=replace(job.recipe, **limits))
                (trial,) = _train_stack(shared, [Run(brief, "", job.seeds[0])], lambda fraction: None)
                best[place][name] = min(best[place][name], trial.cpu_seconds)
            tell((again * len(best) + place + 1) / (2 * len(best)))
    return [_seconds(found, length) for found, length in zip(best, timed.lengths, strict=True)]


def _seconds(found: Mapping[str, float], length: Length) -> float:
    """CPU seconds of a training of that length, where ``found`` has those of three short ones."""
    epoch = max(0.0, found["rarely"] - found["one"]) / TIMED_EPOCHS
    look = max(0.0, found["always"] - found["rarely"]) / TIMED_EPOCHS
    return found["one"] + (length.epochs - 1) * epoch + max(0.0, length.looks - 1) * look


def training_seeds(seed: int, runs: int) -> tuple[int, ...]:
    """The seeds of the runs on a graph that was condensed from ``seed``."""
    first = seed * max(runs, SEED_STRIDE)
    return tuple(range(first, first + runs))
