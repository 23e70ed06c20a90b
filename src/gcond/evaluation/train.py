"""``gcond.train``: one model, trained as :func:`gcond.evaluate` trains, and kept."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gcond import __version__
from gcond.condensed import CondensedGraph
from gcond.config import settings
from gcond.errors import GcondError
from gcond.evaluation.evaluate import asked_trainings
from gcond.graph import LabelledView, SourceGraph
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.stored_graph import StoredGraph
from gcond.jobs.training_job import TrainingGround, TrainingJob, prepared, streamed_prediction
from gcond.models import Model
from gcond.models.model import Parameters
from gcond.runtime.device import choose_device
from gcond.runtime.progress_tick import Tick, ignore
from gcond.runtime.tensor_file import read_metadata_kind
from gcond.runtime.threads import check_threads
from gcond.runtime.torch_settings import with_usual_torch
from gcond.training import Recipe, accuracy, fit
from gcond.training.class_scores import class_scores
from gcond.training.model_record import ModelRecord, TrainedOn
from gcond.training.temperature import sharpness
from gcond.training.trained_model import WHOLE, TrainedModel, structure_of
from gcond.training.view_parts import in_parts

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcond.graph.features import FeatureTransform


@with_usual_torch
def train(
    graph: CondensedGraph | SourceGraph | str | Path,
    *,
    on: SourceGraph | Data | str | Path | None = None,
    model: str | Model = "gcn",
    features: FeatureChoice | FeatureTransform | None = None,
    seed: int = 0,
    runs: int = 1,
    recipe: Recipe | Mapping[str, Any] | str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    on_progress: Tick | None = None,
    **training: Any,
) -> TrainedModel:
    """Train one model on ``graph`` and keep it: what comes back predicts, and can be saved.

    ``graph``, ``on``, ``features``, ``recipe`` and settings of the training by name are those of
    :func:`gcond.evaluate`: seed s here gives the very weights that run s has there. A :class:`SourceGraph`, or what
    :func:`gcond.load` takes, is trained on itself. Of several ``runs``, from seeds ``seed``, ``seed + 1``, …, the one
    with the highest validation accuracy is kept, the first of equal ones. The source's test nodes are looked at once,
    by the model that is kept, and not at all where there are none.
    """
    runs = settings.whole_number(runs, "runs", least=1)
    seed = settings.whole_number(seed, "seed")
    if not isinstance(model, str | Model) or model == "all":
        raise GcondError(f"model={model!r} is not one model: give a name from gcond models, or a model of your own")
    graph, on = _of_whole(graph, on)
    asked = asked_trainings(graph, on, features=features, models=model, recipe=recipe, training=training, parts=())
    ((network, how),) = asked.wanted
    choose_device(device)
    source = asked.source
    if how.select == "best-validation" and not bool(source.val_mask.any()):
        raise GcondError(f"'{source.name}' has no val nodes to choose the best epoch by: give some, or select='last'")
    job = TrainingJob(asked.small, network, how, tuple(range(seed, seed + runs)), asked.label)
    kept, found = _best(job, TrainingGround(source, device, check_threads(threads)), on_progress or ignore)
    return TrainedModel(network, kept, _record(job, source, **found))


def _of_whole(
    graph: CondensedGraph | SourceGraph | str | Path, on: SourceGraph | Data | str | Path | None
) -> tuple[CondensedGraph | SourceGraph | str | Path, SourceGraph | Data | str | Path | None]:
    """A whole graph is trained on itself, so that an ``on`` beside it has to be the same."""
    if isinstance(graph, str | Path) and names_condensed(graph):
        graph = CondensedGraph.load(graph)
    if isinstance(graph, CondensedGraph) or on is None:
        return graph, on
    if graph is on or (isinstance(graph, str | Path) and isinstance(on, str | Path) and str(graph) == str(on)):
        return graph, None
    if isinstance(graph, SourceGraph) and isinstance(on, SourceGraph) and graph.sha256 == on.sha256:
        return graph, None
    raise GcondError("a whole graph is validated and tested on itself: leave on out, or give a condensed graph of it")


def names_condensed(path: str | Path) -> bool:
    """Whether ``path`` names a file where a condensed graph may be, of gcond's or of another tool's."""
    return Path(path).suffix == ".safetensors" and read_metadata_kind(path) != "source"


def _best(job: TrainingJob, ground: TrainingGround, tick: Tick) -> tuple[Parameters, dict[str, Any]]:
    """The weights of the run that validates best, on the CPU, and what there is to say about it."""
    start, source = time.process_time(), ground.source
    epochs, best = job.recipe.epochs, -math.inf
    kept: Parameters = {}
    found: dict[str, Any] = {}
    with prepared(ground, job) as (train_view, val, test):
        for place, seed in enumerate(job.seeds):

            def on_epoch(epoch: int, before: int = place * epochs) -> None:
                tick("training", before + epoch, len(job.seeds) * epochs)

            fitted = fit(
                job.model,
                train_view,
                val if len(val.nodes) else None,
                classes=source.num_classes,
                seeds=[seed],
                recipe=job.recipe,
                on_epoch=on_epoch,
            )
            reached = float(fitted.val_accuracy[0])
            if not kept or reached > best:
                best, kept = reached, fitted.parameters[0]
                found = {"seed": seed, "epoch": int(fitted.epoch[0])}
        found["sharpness"] = _sharpness(job.model, kept, val, source.num_classes)
        past_memory, tested = isinstance(source, StoredGraph), None
        if len(test.nodes) and not past_memory:
            tested = float(accuracy(job.model, [kept], test)[0])
    if len(test.nodes) and past_memory:
        tested = float((streamed_prediction(ground, job, [kept], test)[0] == test.y).double().mean())
    found |= {"val_accuracy": None if math.isnan(best) else best, "test_accuracy": tested}
    found["cpu_seconds"] = time.process_time() - start
    return {key: tensor.detach().cpu().contiguous() for key, tensor in kept.items()}, found


@torch.no_grad()
def _sharpness(model: Model, weights: Parameters, val: LabelledView, classes: int) -> float:
    """How far the model's scores are to be stretched, by the validation nodes."""
    if len(val.nodes) == 0:
        return 1.0
    found = [
        (part.y[places], scores)
        for part in in_parts(val.focus(model.reach, model.precomputed), model, classes)
        for _, places, scores in class_scores(model, [weights], part.inputs, part.nodes)
    ]
    return sharpness(torch.cat([scores for _, scores in found]), torch.cat([y for y, _ in found]))


def _record(job: TrainingJob, source: SourceGraph, **found: Any) -> ModelRecord:
    small = job.graph
    made = small.provenance if small is not None else None
    on: TrainedOn = {"method": WHOLE, "nodes": source.num_nodes, "sha256": source.sha256, "seed": None}
    if small is not None:
        method, seed = (made.method, made.seed) if made is not None else (None, None)
        on = {"method": method, "nodes": small.num_nodes, "sha256": small.sha256, "seed": seed}
    positions = source.transform.kind == "structural" and source.setting == "transductive"
    return ModelRecord(
        num_features=source.num_features,
        num_classes=source.num_classes,
        class_names=source.class_names,
        feature_names=source.feature_names,
        setting=source.setting,
        directed=source.directed,
        weighted=_is_weighted(source),
        transform=source.transform.to_json(),
        structure=structure_of(source) if positions else "",
        recipe=asdict(job.recipe),
        trained_on=on,
        source={
            "name": source.name,
            "sha256": source.sha256,
            "nodes": source.num_nodes,
            "edges": source.num_edges,
            "features": source.num_features,
            "bytes": source.nbytes,
        },
        runs=len(job.seeds),
        gcond_version=__version__,
        notes=small.notes if small is not None else (),
        **found,
    )


def _is_weighted(source: SourceGraph) -> bool:
    if isinstance(source, StoredGraph):
        return source.arrays.weights is not None
    return bool((source.adjacency.values != 1).any())
