"""The statistics of a graph, for source and condensed graphs alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

LIGHTEST_EDGE = 0.5
"""Lighter edges of a condensed graph do not count in homophily (paper, statistics of condensed graphs)."""


@dataclass(frozen=True)
class Statistics:
    """One column of the paper's comparison of condensed and original graphs."""

    nodes: int
    edges: int
    """Edges that are there, an undirected pair once."""
    listed_edges: int
    """Edges as the raw file lists them, which is what papers count; ``edges`` where that is not known."""
    features: int
    classes: int
    density: float
    """``2 E / n²`` for E listed undirected edges, ``E / n²`` for directed ones; the paper calls it sparsity."""
    homophily: float | None
    """Share of edges that join nodes of one class; ``None`` where no edge counts."""
    class_nodes: tuple[int, ...]
    """Labelled nodes per class: all of a condensed graph's, the training nodes of a source graph."""
    bytes: int
    """Storage of features, labels, edges and masks as they are held."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def density(nodes: int, edges: int, *, directed: bool = False) -> float:
    """``2 E / n²`` (undirected) or ``E / n²``: Cora's 2708 nodes and 5429 edges give 0.15 %."""
    return (1 if directed else 2) * edges / nodes**2


def edge_homophily(edge_index: Tensor, y: Tensor) -> float | None:
    """Share of the edges [2, E] whose ends are of one class (Zhu et al., NeurIPS 2020).

    Edges with an unlabelled end (class -1) say nothing and do not count.
    """
    source, target = y[edge_index]
    counted = (source >= 0) & (target >= 0)
    if not bool(counted.any()):
        return None
    return float((source == target)[counted].double().mean())


def is_symmetric(edge_index: Tensor, n: int) -> bool:
    """Whether every edge is stored in both directions."""
    forward = edge_index[0] * n + edge_index[1]
    backward = edge_index[1] * n + edge_index[0]
    return torch.equal(forward.sort().values, backward.sort().values)
