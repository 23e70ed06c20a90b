"""A condensed graph as the numbers that the interactive view draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gcond.reports.page.layout import positions
from gcond.statistics import density, describe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gcond.artefact import CondensedGraph

MOST_PAIRS = 5000
"""The heaviest pairs that are drawn: more are a grey disc to the eye, and megabytes to the file. Counts are of all."""
_STOPS = 100
_GRID = 1000


def draw(graph: CondensedGraph, class_names: tuple[str, ...] = ()) -> dict[str, Any]:
    """What the page's script needs of ``graph``, as JSON.

    ``edges`` is a flat list ``i, j, weight``, heaviest first, a pair once; ``stops`` has for each place of the
    slider ``[δ, pairs left, edges left, density, isolated nodes, share of edges within a class]``. What is left at
    δ are edges of weight *above* δ, as condensing itself drops "up to δ"; they are the first ones of the list.
    """
    labels = graph.hard_labels.numpy()
    pairs, heaviest = _pairs(graph.edge_index.numpy(), graph.edge_weight.numpy())
    place = positions(labels, pairs[:MOST_PAIRS], heaviest[:MOST_PAIRS].astype(np.float64))
    edges = [
        value
        for (i, j), weight in zip(pairs[:MOST_PAIRS].tolist(), heaviest[:MOST_PAIRS].tolist(), strict=True)
        for value in (i, j, float(f"{weight:.4g}"))
    ]
    names = _class_names(graph.num_classes, class_names or (graph.provenance.class_names if graph.provenance else ()))
    return {
        "nodes": graph.num_nodes,
        "labels": labels.tolist(),
        "names": names,
        "soft": graph.y.dim() == 2,
        "places": np.rint(place * _GRID).astype(int).tolist(),
        "edges": edges,
        "pairs": len(pairs),
        "stops": _stops(graph, pairs, heaviest),
        "origin": graph.source_index.tolist() if graph.source_index is not None else None,
    }


def _class_names(classes: int, names: tuple[str, ...]) -> list[str]:
    return list(names) if len(names) == classes else [f"class {label}" for label in range(classes)]


def _pairs(ends: NDArray[np.int64], weights: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Joined nodes [P, 2] and the heavier of their two directions [P], heaviest first."""
    both = np.sort(ends.T, axis=1)
    pairs, where = np.unique(both, axis=0, return_inverse=True)
    heaviest = np.zeros(len(pairs), dtype=np.float32)
    np.maximum.at(heaviest, where.reshape(-1), weights)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -heaviest))
    return pairs[order], heaviest[order]


def _stops(
    graph: CondensedGraph, pairs: NDArray[np.int64], heaviest: NDArray[np.float32]
) -> list[list[float | int | None]]:
    # Weights stay float32: as a double, 0.1 in float32 is above 0.1, and condensing does not see it so.
    labels, ends, weights = graph.hard_labels.numpy(), graph.edge_index.numpy(), graph.edge_weight.numpy()
    # One edge a pair where all are stored in both directions, as the tables count them.
    directed = describe(graph).edges != graph.num_edges // 2
    found: list[list[float | int | None]] = []
    for delta in deltas(heaviest):
        left, drawn = ends[:, weights > delta], int((heaviest > delta).sum())
        count = left.shape[1] if directed else left.shape[1] // 2
        isolated = graph.num_nodes - len(np.unique(left))
        same = round(float((labels[left[0]] == labels[left[1]]).mean()), 4) if count else None
        dense = density(graph.num_nodes, count, directed=directed)
        found.append([delta, drawn, count, float(f"{dense:.4g}"), isolated, same])
    return found


def deltas(heaviest: NDArray[np.float32]) -> list[float]:
    """Where the slider can stand: 0 and round numbers up to the heaviest weight; only 0 where all weigh the same."""
    if len(heaviest) == 0 or float(heaviest[0]) - float(heaviest[-1]) < 1e-6:
        return [0.0]
    top = float(heaviest[0])
    power = 10.0 ** math.floor(math.log10(top / _STOPS))
    step = next(unit * power for unit in (1, 2, 5, 10) if top / (unit * power) <= _STOPS)
    return [float(f"{k * step:.6g}") for k in range(math.ceil(top / step) + 1)]
