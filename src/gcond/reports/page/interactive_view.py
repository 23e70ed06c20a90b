"""A condensed graph as the numbers that the interactive view draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gcond.condensed.graph_picture import joined_pairs
from gcond.graph.force_layout import positions
from gcond.graph.statistics import density
from gcond.reports.display_names import class_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gcond.condensed import CondensedGraph

MOST_PAIRS = 5000
"""The heaviest pairs that are drawn: more are a grey disc to the eye, and megabytes to the file. Counts are of all."""
_STOPS = 100
_GRID = 1000


def view_data(graph: CondensedGraph, class_names: tuple[str, ...] = ()) -> dict[str, Any]:
    """The data of ``graph`` that the page's script needs, as JSON.

    ``edges`` is a flat list ``i, j, weight``, heaviest first, a joined pair once, whichever way it is ``directed``;
    ``stops`` has for each place of the slider ``[δ, pairs left, edges left, density, isolated nodes, share of edges
    within a class]``. What is left at δ are edges of weight *above* δ, as condensing itself drops "up to δ"; they are
    the first ones of the list.
    """
    labels = graph.hard_labels.numpy()
    pairs, heaviest = joined_pairs(graph)
    directed = _is_directed(graph)
    place = positions(labels, pairs[:MOST_PAIRS], heaviest[:MOST_PAIRS].astype(np.float64))
    edges = [
        value
        for (i, j), weight in zip(pairs[:MOST_PAIRS].tolist(), heaviest[:MOST_PAIRS].tolist(), strict=True)
        for value in (i, j, float(f"{weight:.4g}"))
    ]
    names = class_names or (graph.provenance.class_names if graph.provenance else ())
    return {
        "nodes": graph.num_nodes,
        "labels": labels.tolist(),
        "names": class_labels(names, graph.num_classes),
        "soft": graph.y.dim() == 2,
        "places": np.rint(place * _GRID).astype(int).tolist(),
        "edges": edges,
        "pairs": len(pairs),
        "directed": directed,
        "stops": _stops(graph, heaviest, directed),
        "origin": graph.source_index.tolist() if graph.source_index is not None else None,
    }


def _is_directed(graph: CondensedGraph) -> bool:
    """Whether the tables count each direction; else an edge is a pair, of which both directions are stored."""
    return graph.statistics.edges != graph.num_edges // 2


def _stops(graph: CondensedGraph, heaviest: NDArray[np.float32], directed: bool) -> list[list[float | int | None]]:
    # Weights stay float32: as a double, 0.1 in float32 is above 0.1, and condensing does not see it so.
    labels, ends, weights = graph.hard_labels.numpy(), graph.edge_index.numpy(), graph.edge_weight.numpy()
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
