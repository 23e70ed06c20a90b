"""The jobs of an architecture search: runs that are trained as a stack, on one side."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.errors import DivergedError
from gcond.graph.labelled_view import LabelledView
from gcond.graph.source_graph import SourceGraph
from gcond.models.model import Model
from gcond.results.search import Side
from gcond.runtime.device import choose_device
from gcond.training.fit import accuracy, fit, runs_together
from gcond.training.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Ground:
    """What all jobs of a search share."""

    small: CondensedGraph
    source: SourceGraph
    recipes: dict[Side, Recipe]
    device: str


@dataclass(frozen=True)
class Job:
    """Runs on one side that can be trained as a stack: a model and a seed each."""

    side: Side
    models: tuple[Model, ...]
    seeds: tuple[int, ...]
    test: bool = False


@dataclass(frozen=True)
class Measured:
    """What came of one run, or why nothing did."""

    val: float = math.nan
    epoch: int = 0
    test: float | None = None
    seconds: float = 0.0
    error: str | None = None


def train(ground: Ground, job: Job) -> list[Measured]:
    """Work one job off: a measurement for each of its runs."""
    place = choose_device(ground.device)
    view = (ground.source.view("train") if job.side == "whole" else ground.small.view()).to(place)
    together = runs_together(job.models[0], view, ground.source.num_classes)
    measured: list[Measured] = []
    for start in range(0, len(job.models), together):
        models, seeds = job.models[start : start + together], job.seeds[start : start + together]
        try:
            measured += _train_stack(ground, job, view, models, seeds)
        except DivergedError:
            for model, seed in zip(models, seeds, strict=True):  # who diverged does not take the others along
                try:
                    measured += _train_stack(ground, job, view, (model,), (seed,))
                except DivergedError as error:
                    measured.append(Measured(error=str(error)))
    return measured


def _train_stack(
    ground: Ground, job: Job, view: LabelledView, models: tuple[Model, ...], seeds: tuple[int, ...]
) -> list[Measured]:
    start = time.perf_counter()
    source, place = ground.source, view.y.device
    # A winner is trained exactly as `evaluate` would train it.
    stack = models[0] if job.test else models
    fitted = fit(
        stack,
        view,
        source.view("val").to(place),
        classes=source.num_classes,
        seeds=seeds,
        recipe=ground.recipes[job.side],
    )
    tests: list[float | None] = [None] * len(models)
    if job.test:
        tests = accuracy(stack, fitted.parameters, source.view("test").to(place)).tolist()
    seconds = (time.perf_counter() - start) / len(models)
    columns = zip(fitted.val_accuracy.tolist(), fitted.epoch.tolist(), tests, strict=True)
    return [Measured(val, epoch, tested, seconds) for val, epoch, tested in columns]
