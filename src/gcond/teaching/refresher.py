"""Teaching again: labels for the nodes of a graph that has changed, from a teacher whose answers are remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.config.metric import Metric
from gcond.graph import LabelledView
from gcond.linalg.adam import Adam
from gcond.linalg.tall import Tall
from gcond.runtime.seeds import generator
from gcond.teaching.calibration import sharpen
from gcond.teaching.random_propagation import RandomPropagation, dropped
from gcond.teaching.ridge import ridge_scores
from gcond.teaching.stored_network import in_memory
from gcond.teaching.teacher import Taught, TeacherName, calibrated, teach

REMEMBERING_EPOCHS = 60
REMEMBERING_RATE = 0.03
"""Of the network on what is remembered, a few dozen rows: all of it takes about as long as ten epochs on Cora."""
EPOCHS = 40
RATE = 0.02
"""Of the network on the graph itself, from there."""


@torch.no_grad()
def teach_again(
    name: TeacherName,
    train: LabelledView,
    val: LabelledView,
    classes: int,
    seed: int,
    *,
    memory: tuple[Tensor, Tensor],
    before: Mapping[str, Any] | None = None,
    metric: Metric = "accuracy",
) -> Taught:
    """Labels for all nodes of ``train.inputs``, as :func:`gcond.teaching.teach` gives them, in less time.

    ``memory`` is what an earlier teacher said, rows of spread features [n, d] and their soft labels [n, C]: a condensed
    graph. The ridge has a closed form and is fitted anew on all labels that there are now, on the features that it took
    ``before`` (:func:`gcond.teaching.ridge.ridge_scores`). A network first learns the memory, which takes a moment, and
    then goes on from there on the graph for :data:`EPOCHS` epochs. There is one of them in an ensemble, too.
    """
    if name == "ridge" or len(train.nodes) == train.inputs.num_nodes:
        return teach("ridge", train, val, classes, seed, metric=metric, before=before)
    voices: list[Tall] = []
    facts: dict[str, Any] = {}
    train, val = in_memory(train, val, classes, beside_ridge=name != "network")
    if name != "network":
        ridge = ridge_scores(train, val, classes, seed, metric, before=before)
        facts = ridge.choices
        voices.append(sharpen(ridge.scores, val, seed).of(ridge.scores))
    network = replace(RandomPropagation(), epochs=EPOCHS, lr=RATE, ramp=1)
    start = _remembered(network, train, classes, seed, memory)
    found = network.log_probabilities(train, val, classes, seed, metric, start=start)
    voices.append(sharpen(found, val, seed).of(found))
    told: TeacherName = "network" if name == "network" else "both"
    return calibrated(told, voices, train, val, seed, found=facts, metric=metric)


def _remembered(
    network: RandomPropagation, train: LabelledView, classes: int, seed: int, memory: tuple[Tensor, Tensor]
) -> dict[str, Tensor]:
    """The weights of ``network`` after it has learned ``memory`` by heart, about; its rows are spread already."""
    device = train.y.device
    x, y = (each.to(device) for each in memory)
    stream = generator(seed, "remembering", device)
    weights = network.start(x.shape[1], classes, seed, device)
    adam = Adam(weights, REMEMBERING_RATE, network.weight_decay)
    leaves = {key: tensor.detach().requires_grad_() for key, tensor in weights.items()}  # the same memory
    for _ in range(REMEMBERING_EPOCHS):
        with torch.enable_grad():
            units = dropped((len(x), network.hidden), network.hidden_dropout, stream)
            hidden = F.relu(x @ leaves["in"] + leaves["in bias"]) * units
            said = (hidden @ leaves["out"] + leaves["out bias"]).log_softmax(1)
            gradients = torch.autograd.grad(-(y * said).sum(1).mean(), list(leaves.values()))
        adam.step(dict(zip(leaves, gradients, strict=True)))
    return weights
