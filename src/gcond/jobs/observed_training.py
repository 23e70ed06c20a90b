"""Trainings that are looked at from several sides: tested on other graphs than they saw, and asked what they know."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcond.errors import DivergedError
from gcond.graph import SourceGraph
from gcond.jobs.training_job import TrainingGround, TrainingJob, prepared
from gcond.models import Model
from gcond.models.model import Parameters
from gcond.results import Failure, Observation
from gcond.results.trial import trial_key
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Tell
from gcond.runtime.seeds import generator
from gcond.training import fit, predict
from gcond.training.metrics import confusion_matrix
from gcond.training.node_scores import node_scores

MOST_ASKED = 2000
"""Training nodes, and test nodes, whose confidence is asked for, at most: an AUC is then known to about 0.02."""


@dataclass(frozen=True)
class ObservedTraining:
    """A training, and where it is looked at; graphs are named, since many jobs share them."""

    training: TrainingJob
    within: str
    """The graph that it is validated on, and trained on where the whole graph is."""
    tested_on: tuple[str, ...]
    asked_on: str = ""
    """The graph on which it is asked for its confidence in training and test nodes; nothing where it is not."""

    def __str__(self) -> str:
        return f"{self.training} of {self.within}" if self.within else str(self.training)

    def key(self, graphs: Mapping[str, SourceGraph]) -> str:
        """The same for the same training and the same looks at it."""
        looks = {
            "training": self.training.key(graphs[self.within]),
            "tested": {name: graphs[name].sha256 for name in self.tested_on},
            "asked": graphs[self.asked_on].sha256 if self.asked_on else "",
        }
        return trial_key(looks)


@dataclass(frozen=True, eq=False)
class ObservedBatch:
    """The seeds of one training that are done one after the other by one worker."""

    job: ObservedTraining
    key: str

    def __str__(self) -> str:
        return str(self.job)

    @property
    def seeds(self) -> dict[str, int]:
        """Each seed, by the name of its piece of work."""
        return {f"{self.key}/{seed}": seed for seed in self.job.training.seeds}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.seeds)

    def only(self, names: Sequence[str]) -> ObservedBatch:
        left = tuple(seed for name, seed in self.seeds.items() if name in names)
        return ObservedBatch(replace(self.job, training=replace(self.job.training, seeds=left)), self.key)


@dataclass(frozen=True, eq=False)
class Grounds:
    """The graphs that jobs name, and where they compute."""

    graphs: dict[str, SourceGraph]
    device: str
    threads: int | None = None


def observe(shared: Grounds, batch: ObservedBatch, tell: Tell) -> list[Observation | Failure]:
    """Do one batch: an observation for each seed, or why there is none."""
    found: list[Observation | Failure] = []
    job, seeds = batch.job.training, batch.job.training.seeds
    with prepared(TrainingGround(shared.graphs[batch.job.within], shared.device, shared.threads), job) as views:
        train, val, _ = views
        for place, seed in enumerate(seeds):

            def on_epoch(epoch: int, before: int = place) -> None:
                tell((before + epoch / job.recipe.epochs) / len(seeds))

            start = time.process_time()
            classes = shared.graphs[batch.job.within].num_classes
            try:
                fitted = fit(job.model, train, val, classes=classes, seeds=[seed], recipe=job.recipe, on_epoch=on_epoch)
            except DivergedError as error:
                found.append(Failure(f"{batch}, seed {seed}", str(error)))
                continue
            weights = fitted.parameters[0]
            members, others = _confidences(shared, batch.job, weights)
            found.append(
                Observation(
                    key=batch.key,
                    seed=seed,
                    model=job.model.name,
                    confusions=dict(_confusions(shared, batch.job, weights)),
                    cpu_seconds=time.process_time() - start,
                    members=members,
                    others=others,
                )
            )
    return found


def asked_nodes(graph: SourceGraph) -> tuple[Tensor, Tensor]:
    """Training nodes and test nodes, at most :data:`MOST_ASKED` of each, drawn from a seed of its own: int64 each."""
    drawn = []
    for part in ("train", "test"):
        nodes = graph.mask(part).nonzero().squeeze(1)
        order = torch.randperm(len(nodes), generator=generator(0, f"membership of {part}"))
        drawn.append(nodes[order[:MOST_ASKED]].sort().values)
    return drawn[0], drawn[1]


def confidence(model: Model, weights: Parameters, graph: SourceGraph, nodes: Tensor, *, device: str) -> Tensor:
    """The log-probability that a model gives to the labels of ``nodes`` [m], on the graph that each belongs to: [m]."""
    scores = node_scores(model, weights, graph, nodes, classes=graph.num_classes, device=device)
    return scores.double().log_softmax(1).gather(1, graph.y[nodes, None]).squeeze(1)


def _confidences(shared: Grounds, job: ObservedTraining, weights: Parameters) -> tuple[tuple[float, ...], ...]:
    if not job.asked_on:
        return (), ()
    graph = shared.graphs[job.asked_on]
    return tuple(
        tuple(confidence(job.training.model, weights, graph, nodes, device=shared.device).tolist())
        for nodes in asked_nodes(graph)
    )


def _confusions(
    shared: Grounds, job: ObservedTraining, weights: Parameters
) -> Iterator[tuple[str, tuple[tuple[int, ...], ...]]]:
    place = choose_device(shared.device)
    for name in job.tested_on:
        graph = shared.graphs[name]
        test = graph.view("test").to(place)
        (found,) = confusion_matrix(predict(job.training.model, [weights], test), test.y, graph.num_classes).tolist()
        yield name, tuple(map(tuple, found))
