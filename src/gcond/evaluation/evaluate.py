"""The protocol: train on a graph, choose the epoch by validation, test on the source graph, repeat."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from gcond import __version__
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.score import Score
from gcond.config import settings
from gcond.data import load
from gcond.errors import GcondError
from gcond.graph.labelled_view import LabelledView
from gcond.graph.source_graph import SourceGraph
from gcond.models import Model, resolve
from gcond.results.row_log import RowLog
from gcond.results.trial import Trial, trial_key
from gcond.runtime.device import choose_device
from gcond.training.fit import accuracy, fit, runs_together
from gcond.training.recipe import Recipe, recipe_for

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

Progress = Callable[[str, int, int], None]


def evaluate(
    graph: CondensedGraph | SourceGraph,
    *,
    on: SourceGraph | Data | str | Path | None = None,
    models: str | Model | Sequence[str | Model] = ("gcn",),
    runs: int = 10,
    seed: int = 0,
    recipe: Recipe | Mapping[str, Any] | None = None,
    device: str = "auto",
    trials: str | Path | None = None,
    on_progress: Progress | None = None,
) -> list[Score]:
    """Train each model ``runs`` times on ``graph`` and test it on the source graph ``on``.

    A :class:`SourceGraph` as ``graph`` is the whole-graph reference and needs no ``on``; anything else that
    :func:`gcond.load` takes as ``on`` is used in the setting, and with the directions, that the condensed graph was
    made in. The epoch is chosen by
    validation accuracy, and the test nodes are looked at once, with those weights. Run ``i`` starts from seed
    ``seed + i`` and gives the same numbers whichever runs are done beside it. ``recipe`` overrides the models' own;
    ``trials`` names a JSON-lines file that finished runs are appended to and found in.
    ``on_progress(model, done, total)`` counts epochs of all runs.
    """
    runs = settings.whole_number(runs, "runs", least=1)
    seed = settings.whole_number(seed, "seed")
    if not isinstance(graph, CondensedGraph | SourceGraph):
        kind = type(graph).__name__
        raise GcondError(f"a {kind} cannot be evaluated: give a CondensedGraph, or a SourceGraph for the reference")
    source = source_of(graph, on)
    check_fit(graph, source)
    log = RowLog(trials, Trial, "trial")
    place = choose_device(device)
    seeds = range(seed, seed + runs)
    trainings = [Training(graph, source, model, recipe_for(model, recipe)) for model in resolve(models)]
    return [_score(training, seeds, log, place, on_progress) for training in trainings]


@dataclass(frozen=True, eq=False)
class Training:
    """Everything about a trial but its seed."""

    graph: CondensedGraph | SourceGraph
    """What is trained on; the source itself as the reference."""
    source: SourceGraph
    """What it is validated and tested on."""
    model: Model
    recipe: Recipe

    @property
    def view(self) -> LabelledView:
        return self.graph.view("train") if isinstance(self.graph, SourceGraph) else self.graph.view()

    @cached_property
    def key(self) -> str:
        """The same for the same graph, model and recipe; see :func:`gcond.results.trial.trial_key`."""
        return trial_key(
            {
                "gcond": __version__,
                "train": self.graph.sha256,
                "source": self.source.sha256,
                "model": self.model.name,
                "settings": asdict(self.model),
                "recipe": recipe_identity(self.recipe),
            }
        )

    def together(self) -> int:
        """How many runs are best trained side by side."""
        return runs_together(self.model, self.view, self.source.num_classes)

    def run(
        self, seeds: Sequence[int], device: torch.device, on_epoch: Callable[[int], None] | None = None
    ) -> list[Trial]:
        """Train from each of ``seeds``, side by side, and test."""
        train, val, test = (view.to(device) for view in (self.view, self.source.view("val"), self.source.view("test")))
        start = time.process_time()
        fitted = fit(
            self.model,
            train,
            val,
            classes=self.source.num_classes,
            seeds=seeds,
            recipe=self.recipe,
            on_epoch=on_epoch,
        )
        tested = accuracy(self.model, fitted.parameters, test)
        seconds = (time.process_time() - start) / len(seeds)
        columns = zip(seeds, tested.tolist(), fitted.val_accuracy.tolist(), fitted.epoch.tolist(), strict=True)
        condensed = self.graph.sha256 if isinstance(self.graph, CondensedGraph) else None
        return [
            Trial(self.key, self.source.name, condensed, self.model.name, seed, val, test, epoch, seconds)
            for seed, test, val, epoch in columns
        ]


def recipe_identity(recipe: Recipe) -> dict[str, Any]:
    """The recipe as it enters a key: a setting that came later counts only where it is not as it was before."""
    values, usual = asdict(recipe), Recipe()
    return {key: value for key, value in values.items() if key not in _LATER or value != getattr(usual, key)}


# Settings of a recipe that trials of earlier versions do not have in their keys.
_LATER = frozenset({"validate_every"})


def _score(
    job: Training, seeds: Sequence[int], log: RowLog[Trial], device: torch.device, on_progress: Progress | None
) -> Score:
    missing = [seed for seed in seeds if log.find(job.key, seed) is None]
    together = job.together()
    epochs, total = job.recipe.epochs, job.recipe.epochs * len(seeds)
    for start in range(0, len(missing), together):
        batch = missing[start : start + together]
        before = epochs * (len(seeds) - len(missing) + start)

        def tick(epoch: int, before: int = before, width: int = len(batch)) -> None:
            if on_progress:
                on_progress(job.model.name, before + epoch * width, total)

        for trial in job.run(batch, device, tick):
            log.add(trial)
    found = [row for seed in seeds if (row := log.find(job.key, seed)) is not None]
    tests = [row.test for row in found if row.test is not None]
    return Score(
        model=job.model.name,
        settings=asdict(job.model),
        recipe=asdict(job.recipe),
        mean=fmean(tests),
        std=stdev(tests) if len(tests) > 1 else 0.0,
        runs=tuple(tests),
        val_mean=fmean(row.val for row in found),
        cpu_seconds=math.fsum(row.cpu_seconds for row in found),
        source=job.source.sha256,
        seed=seeds[0],
    )


def source_of(graph: CondensedGraph | SourceGraph, on: SourceGraph | Data | str | Path | None) -> SourceGraph:
    """The graph that ``graph`` is tested on: ``on``, in the setting that ``graph`` was made in."""
    if isinstance(on, SourceGraph):
        return on
    if on is None:
        if isinstance(graph, SourceGraph):
            return graph
        raise GcondError("a condensed graph is tested on its source: give the source graph as `on`")
    made = graph if isinstance(graph, SourceGraph) else graph.provenance
    return load(on) if made is None else load(on, setting=made.setting, directed=made.directed)


def check_fit(graph: CondensedGraph | SourceGraph, source: SourceGraph) -> None:
    """Refuse a source that cannot be tested on, or that ``graph`` cannot be of."""
    for part in ("val", "test"):
        if not bool(source.mask(part).any()):  # type: ignore[arg-type]
            raise GcondError(f"'{source.name}' has no {part} nodes: evaluation needs some to score on")
    features = graph.x.shape[1]
    if features != source.num_features:
        raise GcondError(
            f"the graph to train on has {features} features and '{source.name}' has {source.num_features}: "
            "evaluate on the source it was made from"
        )
    if graph.num_classes != source.num_classes:
        raise GcondError(
            f"the graph to train on has {graph.num_classes} classes and '{source.name}' has {source.num_classes}: "
            "evaluate on the source it was made from"
        )
