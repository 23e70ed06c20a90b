"""The mass of the classes in the labels of a condensed graph, and the groups and weights by which it is met."""

from __future__ import annotations

import torch
from torch import Tensor

from gcond.graph.budget import nodes_per_class
from gcond.linalg.tall import Tall, row_blocks

MASS_ROUNDS = 50
"""Of making the classes' shares of the labels even; it converges in a few."""


def label_mass(nodes: int, shares: Tensor) -> Tensor:
    """What the labels of ``nodes`` add up to in each class: ``shares`` [C] of them, but no less than one: float64 [C].

    A class that is rarer than one node in all of them has a node all the same; the others make room in proportion.
    """
    mass = nodes * shares.double()
    lifted = torch.zeros(len(shares), dtype=torch.bool)
    while bool((low := (mass < 1) & ~lifted).any()) and not bool((lifted | low).all()):
        lifted |= low
        free = shares.double().masked_fill(lifted, 0)
        mass = torch.where(lifted, 1.0, (nodes - int(lifted.sum())) * free / free.sum())
    return mass


def node_weights(nodes: int, labelled: Tensor) -> Tensor:
    """Weights of ``nodes`` by which the ``labelled`` ones (int64 [L]) count as much as all others together: [N]."""
    weights = torch.ones(nodes)
    weights[labelled] = max(1.0, (nodes - len(labelled)) / len(labelled))
    return weights


def group_quota(nodes: int, labels: Tall, predicted: Tensor, mass: Tensor, weights: Tensor | None = None) -> Tensor:
    """Groups per class so that their mean labels add up to ``mass`` [C], about: int64 [C], in all ``nodes``.

    With M [C, C] the mean labels of the nodes of each predicted class, by ``weights`` [N] if given, groups q solve
    ``q M = mass``; every class gets one at least and no more than it has nodes.
    """
    classes = len(mass)
    size = torch.bincount(predicted, minlength=classes)
    heaviness = size if weights is None else torch.bincount(predicted, weights.double(), minlength=classes)
    total = torch.zeros(classes, classes, dtype=torch.float64)
    for where, rows in row_blocks(labels):
        block = rows.double()
        total.index_add_(0, predicted[where], block if weights is None else weights[where, None] * block)
    mean = total / heaviness[:, None].clamp(min=1)
    wanted = torch.linalg.lstsq(mean.T, mass[:, None]).solution.squeeze(1)
    # Where labels are so soft that no groups would add up to the mass, no class goes beyond twice its own.
    wanted = torch.minimum(wanted.clamp(min=0), 2 * mass).clamp(min=1e-6)
    return nodes_per_class(nodes, wanted, most=size)


def evened(labels: Tensor, mass: Tensor, own: Tensor) -> Tensor:
    """Soft labels [n, C] whose columns add up to ``mass`` [C], rows to 1: each class weighed by one factor.

    Where that would leave a class without a node that is likeliest of it, the nodes of that class by ``own`` (int64
    [n]) stay as they were.
    """
    even = labels
    for _ in range(MASS_ROUNDS):
        even = even * (mass.to(labels) / even.sum(0).clamp(min=1e-12))
        even = even / even.sum(1, keepdim=True)
    kept = torch.zeros(len(mass), dtype=torch.bool)
    while bool((lost := (torch.bincount(even.argmax(1), minlength=len(mass)) == 0) & ~kept).any()):
        kept |= lost
        even = torch.where(lost[own][:, None], labels, even)
    return even
