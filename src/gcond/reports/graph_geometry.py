"""The geometry of a drawn condensed graph, shared by the figures and the page's interactive view."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gcond.condensed import CondensedGraph


def joined_pairs(small: CondensedGraph) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Joined nodes [P, 2] and the heavier of their two directions [P], heaviest first."""
    pairs, place = np.unique(np.sort(small.edge_index.numpy().T, axis=1), axis=0, return_inverse=True)
    weight = np.zeros(len(pairs), dtype=np.float32)
    np.maximum.at(weight, place.reshape(-1), small.edge_weight.numpy())
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -weight))
    return pairs[order], weight[order]


def sunflower(count: int) -> NDArray[np.float64]:
    """Points [count, 2] that fill a disc evenly, about one unit from their neighbours (Vogel, 1979)."""
    place = np.arange(count) + 0.5
    radius, angle = 0.6 * np.sqrt(place), place * math.pi * (3 - math.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
