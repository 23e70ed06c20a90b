"""Where the nodes of a small graph stand when it is drawn."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_CLASS = 0.1
"""Weight of the spring to the middle of a node's class, where 1 is the heaviest edge, and grows with the edges that it
has to stand up to. Without it nodes that have no edges would lie anywhere, and many condensed graphs have such."""
_CENTRE = 1.5
"""Pull to the middle of the picture, against empty space between classes that no edge joins."""
_STEPS = 150
_FEWER_STEPS = 60
_MANY_NODES = 400


def positions(labels: NDArray[np.int64], pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """[n, 2] in the unit square, by the forces of Fruchterman and Reingold (1991).

    Edges ``pairs`` [E, 2] pull by their ``weights`` [E], all nodes push each other away, and a hidden hub per class
    pulls its members, so that classes stay together. Everything starts from fixed places: the same graph gives
    the same picture.
    """
    n, classes = len(labels), np.unique(labels)
    hub = np.searchsorted(classes, labels) + n
    place = _start(labels, classes)
    ends = np.concatenate([pairs, np.stack([np.arange(n), hub], 1)])
    heaviest = weights.max() if len(weights) else 1.0
    strength = 2 * weights.sum() / heaviest / n
    pull = np.concatenate([weights / heaviest, np.full(n, _CLASS * (1 + strength))])
    distance = 1 / math.sqrt(len(place))
    steps = _STEPS if n <= _MANY_NODES else _FEWER_STEPS
    for step in range(steps):
        force = _forces(place, ends, pull, distance)
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        heat = 0.1 * (1 - step / steps)
        place = place + force / length * np.minimum(length, heat)
    return _into_unit_square(place[:n])


def sunflower(count: int) -> NDArray[np.float64]:
    """Points [count, 2] that fill a disc evenly, about one unit from their neighbours (Vogel, 1979)."""
    place = np.arange(count) + 0.5
    radius, angle = 0.6 * np.sqrt(place), place * math.pi * (3 - math.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


def _start(labels: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Classes on a circle, members in a sunflower spiral around the middle of theirs, and last the hubs."""
    turn = 2 * math.pi * np.arange(len(classes)) / len(classes)
    hubs = 0.35 * np.stack([np.cos(turn), np.sin(turn)], 1) * (len(classes) > 1)
    place = np.empty((len(labels), 2))
    for index, label in enumerate(classes):
        members = np.flatnonzero(labels == label)
        place[members] = hubs[index] + 0.2 / math.sqrt(len(members)) * sunflower(len(members))
    return np.concatenate([place, hubs])


def _forces(
    place: NDArray[np.float64], ends: NDArray[np.int64], pull: NDArray[np.float64], distance: float
) -> NDArray[np.float64]:
    length = (place**2).sum(1)
    square = length[:, None] + length[None] - 2 * place @ place.T
    push = distance**2 / np.maximum(square, 1e-6, out=square)
    force = place * push.sum(1)[:, None] - push @ place  # Σ_j push_ij (p_i - p_j)
    along = place[ends[:, 0]] - place[ends[:, 1]]
    spring = along * (pull * np.linalg.norm(along, axis=1) / distance)[:, None]
    np.subtract.at(force, ends[:, 0], spring)
    np.add.at(force, ends[:, 1], spring)
    return force - _CENTRE * place


def _into_unit_square(place: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same picture in [0, 1]², centred, its aspect kept."""
    low, high = place.min(0), place.max(0)
    extent = max(float((high - low).max()), 1e-9)
    return (place - (low + high) / 2) / extent + 0.5
