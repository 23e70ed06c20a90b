"""``gcond.evaluate``: train on a graph, choose the epoch by validation, test on the source graph, repeat."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gcond.condensed import CondensedGraph, Provenance, Score, Scores
from gcond.condensed.origin import load_origin, source_difference, transform_difference
from gcond.config import settings
from gcond.data import load
from gcond.errors import GcondError, warn
from gcond.evaluation.recommended import RECOMMENDED, lent_advice, own_advice
from gcond.graph import SourceGraph
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.source_graph import Part
from gcond.jobs import ORIGINAL, Runner, TrainingJob
from gcond.models import Model, resolve
from gcond.results import RunFolder, Trial
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Engine, LocalEngine
from gcond.runtime.progress_tick import Tick
from gcond.runtime.tensor_file import read_metadata_kind
from gcond.runtime.threads import check_threads
from gcond.runtime.torch_settings import with_usual_torch
from gcond.training import Recipe, recipe_for
from gcond.training.metrics import deviation, over_runs

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcond.graph.features import FeatureTransform


@with_usual_torch
def evaluate(
    graph: CondensedGraph | SourceGraph | str | Path,
    *,
    on: SourceGraph | Data | str | Path | None = None,
    features: FeatureChoice | FeatureTransform | None = None,
    models: str | Model | Sequence[str | Model] = "gcn",
    runs: int = 10,
    seed: int = 0,
    recipe: Recipe | Mapping[str, Any] | str | Path | None = None,
    folder: str | Path | None = None,
    engine: Engine | None = None,
    device: str = "auto",
    threads: int | None = None,
    on_progress: Tick | None = None,
    **training: Any,
) -> Scores:
    """Train each model ``runs`` times on ``graph`` and test it on the source graph ``on``.

    ``graph`` is a condensed graph or its file; a :class:`SourceGraph`, or what :func:`gcond.load` takes, is the
    whole-graph reference and needs no ``on``; ``features`` is its transform, as for :func:`gcond.load`. ``on`` is
    anything that :func:`gcond.load` takes, used in the setting, with the directions and with the feature transform
    that the condensed graph was made with. ``models`` are names, ``"all"``, or models of your own.

    The epoch is chosen by validation accuracy, or by ``metric="macro-f1"`` or ``"balanced-accuracy"``, and the test
    nodes are looked at once, with those weights; every score has all metrics. Run ``i`` starts from seed ``seed + i``
    and gives the same numbers whichever runs are done beside it. ``recipe`` and the settings of the training given by
    name (``epochs=200``) override the models' own. ``folder`` is a run folder in which finished runs are kept and
    found; ``engine`` does the work (:func:`gcond.open_engine`), by default this process, with ``threads`` CPU threads
    or as many as the work deserves.

    ``recipe="recommended"`` takes what :func:`gcond.recommend` found for the condensed graph: its recipe, and for
    models given by name its architecture. A condensed file as ``recipe`` lends its recommendation to another graph, so
    that the whole one, which is then read with the same transform, can be trained alike.
    """
    check_one_number_of_threads(engine, threads)
    runs = settings.whole_number(runs, "runs", least=1)
    seed = settings.whole_number(seed, "seed")
    asked = asked_trainings(graph, on, features=features, models=models, recipe=recipe, training=training)
    choose_device(device)
    seeds, source = tuple(range(seed, seed + runs)), asked.source
    jobs = [TrainingJob(asked.small, model, how, seeds, asked.label) for model, how in asked.wanted]
    with working(engine, threads) as workers:
        runner = Runner(source, RunFolder(folder), workers, device=device, on_progress=on_progress)
        found = runner.train(jobs)
        runner.raise_first_failure()
    if not all(found):
        raise GcondError("not all of these trainings are done yet: do them, and look again")
    return Scores(_score(source, job, trials) for job, trials in zip(jobs, found, strict=True))


@dataclass(frozen=True, eq=False)
class Asked:
    """Trainings that are asked for: on which graph, tested where, of which models by which recipes."""

    small: CondensedGraph | None
    """The graph that is trained on; ``None`` is the whole source."""
    source: SourceGraph
    wanted: list[tuple[Model, Recipe]]
    label: str
    """The name of the graph that is trained on, in words."""


def asked_trainings(
    graph: CondensedGraph | SourceGraph | str | Path,
    on: SourceGraph | Data | str | Path | None,
    *,
    features: FeatureChoice | FeatureTransform | None,
    models: str | Model | Sequence[str | Model],
    recipe: Recipe | Mapping[str, Any] | str | Path | None,
    training: Mapping[str, Any],
    parts: Sequence[Part] = ("val", "test"),
) -> Asked:
    """What the arguments of :func:`evaluate` stand for; the source must have the ``parts``."""
    file = str(graph) if isinstance(graph, str | Path) else ""
    advice = lent_advice(recipe)
    graph = trained_on(graph, on, features, like=advice.graph.provenance if advice is not None else None)
    source = source_of(graph, on)
    check_fit(graph, source, parts)
    if advice is not None:
        _check_alike(advice.graph.provenance, source)
    elif recipe == RECOMMENDED:
        advice = own_advice(graph, file)
    small, label = (graph, "the condensed graph") if isinstance(graph, CondensedGraph) else (None, ORIGINAL)
    if advice is not None:
        wanted = [(model, asked_recipe(model, advice.recipe(model), training)) for model in advice.models(models)]
    else:
        given = None if isinstance(recipe, str | Path) else recipe
        wanted = [(model, asked_recipe(model, given, training)) for model in resolve(models)]
    return Asked(small, source, wanted, label)


def check_one_number_of_threads(engine: Engine | None, threads: int | None) -> None:
    """Refuse a number of threads beside an engine, which has its own."""
    if engine is not None and threads is not None:
        raise GcondError(f"the engine has its own threads: give threads={threads} to gcond.open_engine, or no engine")


@contextmanager
def working(engine: Engine | None, threads: int | None = None) -> Iterator[Engine]:
    """``engine``, which its owner closes, or this process where there is none, with ``threads`` for each job."""
    if engine is not None:
        yield engine
        return
    with LocalEngine(workers=1, threads=check_threads(threads), strict=True) as own:
        yield own


def trained_on(
    graph: CondensedGraph | SourceGraph | str | Path,
    on: SourceGraph | Data | str | Path | None = None,
    features: FeatureChoice | FeatureTransform | None = None,
    like: Provenance | None = None,
) -> CondensedGraph | SourceGraph:
    """``graph`` itself, or what a path or name stands for: a condensed file, or without ``on`` a source graph.

    The source graph is read as it was for ``like``, if that is given.
    """
    if not isinstance(graph, CondensedGraph | SourceGraph | str | Path):
        kind = type(graph).__name__
        raise GcondError(f"a {kind} cannot be evaluated: give a CondensedGraph, or a SourceGraph for the reference")
    if isinstance(graph, str | Path) and (on is not None or read_metadata_kind(graph) == "condensed"):
        graph = CondensedGraph.load(graph)
    if isinstance(graph, str | Path):
        return load_origin(like, graph, features=features)
    if features is None:
        return graph
    if isinstance(graph, SourceGraph):
        return load(graph, features=features)
    raise GcondError("features= is for a whole graph: a condensed one is tested on the features that it was made from")


def source_of(graph: CondensedGraph | SourceGraph, on: SourceGraph | Data | str | Path | None) -> SourceGraph:
    """The graph that ``graph`` is tested on: ``on``, read as it was for ``graph``."""
    if on is None:
        if isinstance(graph, SourceGraph):
            return graph
        raise GcondError("a condensed graph is tested on its source: give the source graph as on=")
    if isinstance(graph, CondensedGraph):
        source = load_origin(graph.provenance, on)
        if said := source_difference(graph.provenance, source):
            warn(said)
        return source
    if isinstance(on, SourceGraph):
        return on
    return load(on, setting=graph.setting, directed=graph.directed, features=graph.transform)


def _check_alike(made: Provenance | None, source: SourceGraph) -> None:
    """Warn where a recommendation was found with other features than those it is lent to."""
    if made is not None and (said := transform_difference(made, source)):
        warn(f"the recipe was found for other features of '{source.name}': {said}")


def asked_recipe(
    model: Model, recipe: Recipe | Mapping[str, Any] | None, training: Mapping[str, Any] | None = None
) -> Recipe:
    """The recipe as given, or the model's own with what is given on top; settings by name go before both."""
    found = recipe_for(model, recipe)
    if not training:
        return found
    return settings.build(Recipe, {**asdict(found), **training}, "the training recipe")


def as_given(recipe: Recipe | Mapping[str, Any] | None, training: Mapping[str, Any]) -> dict[str, Any]:
    """The training settings that were asked for, as values and not as text."""
    if isinstance(recipe, Recipe):
        return settings.as_dict(recipe) | dict(training)
    asked = {**(recipe or {}), **training}
    built = settings.as_dict(settings.build(Recipe, asked, "the training recipe"))
    return {key: built[key] for key in asked}


def check_fit(
    graph: CondensedGraph | SourceGraph, source: SourceGraph, parts: Sequence[Part] = ("val", "test")
) -> None:
    """Refuse a source that lacks one of the ``parts`` that are scored on, or that ``graph`` cannot be of."""
    for part in parts:
        if not bool(source.mask(part).any()):
            raise GcondError(f"'{source.name}' has no {part} nodes: some are needed to score on")
    features = graph.x.shape[1]
    unknown = isinstance(graph, CondensedGraph) and graph.provenance is None and graph.y.dim() == 1
    if unknown and graph.num_classes < source.num_classes and features == source.num_features:
        return  # its y does not tell of classes that it has no node of
    for what, own, there in (
        ("features", features, source.num_features),
        ("classes", graph.num_classes, source.num_classes),
    ):
        if own != there:
            raise GcondError(
                f"the graph to train on has {own} {what} and '{source.name}' has {there}: "
                "give the source it was made from"
            )


def _score(source: SourceGraph, job: TrainingJob, trials: Sequence[Trial]) -> Score:
    tests = [trial.test for trial in trials if trial.test is not None]
    return Score(
        model=job.model.name,
        settings=asdict(job.model),
        recipe=asdict(job.recipe),
        mean=fmean(tests),
        std=deviation(tests),
        runs=tuple(tests),
        val_mean=fmean(trial.val for trial in trials),
        cpu_seconds=math.fsum(trial.cpu_seconds for trial in trials),
        source=source.sha256,
        seed=job.seeds[0],
        metrics=over_runs([trial.confusion for trial in trials]),
    )
