"""What a graph looks like in numbers, for source and condensed graphs alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.graph.source_graph import SourceGraph

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
    """Labelled nodes a class: all of a condensed graph's, the training nodes of a source graph."""
    bytes: int
    """Storage of features, labels, edges and masks as they are held."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def describe(graph: SourceGraph | CondensedGraph) -> Statistics:
    """Count and measure ``graph``."""
    return _describe_source(graph) if isinstance(graph, SourceGraph) else _describe_condensed(graph)


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


def _describe_source(graph: SourceGraph) -> Statistics:
    adjacency = graph.adjacency
    edge_index = adjacency.edge_index
    listed = graph.num_edges if graph.listed_edges is None else graph.listed_edges
    return Statistics(
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        listed_edges=listed,
        features=graph.num_features,
        classes=graph.num_classes,
        density=density(graph.num_nodes, listed, directed=graph.directed),
        homophily=edge_homophily(edge_index, graph.y),
        class_nodes=tuple(graph.class_counts().tolist()),
        bytes=graph.nbytes,
    )


def _describe_condensed(graph: CondensedGraph) -> Statistics:
    made_directed = graph.provenance is not None and graph.provenance.directed
    directed = made_directed or not _is_symmetric(graph.edge_index, graph.num_nodes)
    edges = graph.num_edges if directed else graph.num_edges // 2
    labels = graph.hard_labels
    return Statistics(
        nodes=graph.num_nodes,
        edges=edges,
        listed_edges=edges,
        features=graph.x.shape[1],
        classes=graph.num_classes,
        density=density(graph.num_nodes, edges, directed=directed),
        homophily=edge_homophily(graph.edge_index[:, graph.edge_weight >= LIGHTEST_EDGE], labels),
        class_nodes=tuple(torch.bincount(labels, minlength=graph.num_classes).tolist()),
        bytes=graph.nbytes,
    )


def _is_symmetric(edge_index: Tensor, n: int) -> bool:
    """Whether every edge is stored in both directions."""
    forward = edge_index[0] * n + edge_index[1]
    backward = edge_index[1] * n + edge_index[0]
    return torch.equal(forward.sort().values, backward.sort().values)
