"""A condensed graph as a small picture, for those who only want to see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcond.graph.class_colours import COLOURS
from gcond.graph.force_layout import positions

if TYPE_CHECKING:
    from gcond.condensed.condensed_graph import CondensedGraph

MOST_NODES = 400
"""A larger graph is no small picture, and placing its nodes would take seconds."""
MOST_PAIRS = 600
"""The heaviest pairs that are drawn."""
_SIDE, _MARGIN = 220, 8


def joined_pairs(small: CondensedGraph) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Joined nodes [P, 2] and the heavier of their two directions [P], heaviest first."""
    pairs, place = np.unique(np.sort(small.edge_index.numpy().T, axis=1), axis=0, return_inverse=True)
    weight = np.zeros(len(pairs), dtype=np.float32)
    np.maximum.at(weight, place.reshape(-1), small.edge_weight.numpy())
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -weight))
    return pairs[order], weight[order]


def svg(small: CondensedGraph) -> str:
    """The graph as inline SVG: a dot for each node in the colour of its class, heavier edges darker; or nothing."""
    if small.num_nodes > MOST_NODES:
        return ""
    pairs, found = joined_pairs(small)
    pairs, weights = pairs[:MOST_PAIRS], found[:MOST_PAIRS].astype(np.float64)
    labels = small.hard_labels.numpy()
    place = _MARGIN + (_SIDE - 2 * _MARGIN) * positions(labels, pairs, weights)
    heaviest = float(weights.max()) if len(weights) and weights.max() > 0 else 1.0
    lines = (
        f'<line x1="{place[i, 0]:.1f}" y1="{place[i, 1]:.1f}" x2="{place[j, 0]:.1f}" y2="{place[j, 1]:.1f}" '
        f'stroke-opacity="{0.15 + 0.45 * weight / heaviest:.2f}"/>'
        for (i, j), weight in zip(pairs.tolist(), weights.tolist(), strict=True)
    )
    dots = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[label % len(COLOURS)]}"/>'
        for (x, y), label in zip(place.tolist(), labels.tolist(), strict=True)
    )
    size = f'width="{_SIDE}" height="{_SIDE}" viewBox="0 0 {_SIDE} {_SIDE}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="the condensed graph">'
        f'<g stroke="#222222">{"".join(lines)}</g><g stroke="#ffffff" stroke-width="0.8">{"".join(dots)}</g></svg>'
    )
