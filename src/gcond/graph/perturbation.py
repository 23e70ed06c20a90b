"""Noise in a source graph: a share of its edges, feature entries and labels changed at random, from a seed.

*Edges*: that share of the edges is taken away, and as many pairs that were not joined are joined, with the weights of
those that went. *Features*: where they are sparse, as words are, that share of the entries that are not zero moves to
places of the same row that are, so that a word is replaced by another one and rows keep their scale; where they are
dense, that share of all entries takes the value that another node has in the same column, so that columns keep
theirs. *Labels*: that share of the training nodes and of the validation nodes gets another class, each as likely, since
whoever has wrong labels has them in both; a class never loses its last training node. Test labels stay: they are what
is measured by.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse
import torch
from torch import Generator, Tensor

from gcond.errors import GcondError
from gcond.graph.features import compact
from gcond.graph.source_graph import PARTS, SourceGraph
from gcond.graph.stored_graph import StoredGraph
from gcond.graph.structural_features import structural_features
from gcond.linalg.sparse import Matrix, SparseMatrix
from gcond.runtime.seeds import generator

NoiseKind = Literal["edges", "features", "labels"]
NOISE_KINDS: tuple[NoiseKind, ...] = ("edges", "features", "labels")

MOST_DRAWS = 100
"""How often a value is drawn anew that would change nothing; what has no other value to take stays as it is."""


@dataclass(frozen=True)
class Noise:
    """Shares of a graph that are changed; the usual ones are those by which robust condensation is judged."""

    edges: float = 0.01
    features: float = 0.1
    labels: float = 0.2

    def __post_init__(self) -> None:
        for kind in NOISE_KINDS:
            share = getattr(self, kind)
            if not 0 <= share < 1:
                raise ValueError(f"the share of {kind} that is changed must be at least 0 and below 1")

    @property
    def kinds(self) -> tuple[NoiseKind, ...]:
        """What it changes."""
        return tuple(kind for kind in NOISE_KINDS if getattr(self, kind) > 0)

    def only(self, *kinds: NoiseKind) -> Noise:
        """The same noise in ``kinds`` alone."""
        return Noise(**{kind: getattr(self, kind) if kind in kinds else 0.0 for kind in NOISE_KINDS})


def perturbed(graph: SourceGraph, noise: Noise, seed: int) -> SourceGraph:
    """A copy of ``graph`` with ``noise`` drawn from ``seed``; masks, test labels and all else are as they were.

    Each kind is drawn from a stream of its own: what it changes is the same whichever others are there beside it.
    Structural features, which are made from edges, are made anew where these changed.
    """
    if isinstance(graph, StoredGraph):
        raise GcondError(
            f"noise needs '{graph.name}' in memory, and it is streamed from its store: use more memory, or a part of it"
        )
    if not noise.kinds:
        return graph
    adjacency, x, y = graph.adjacency, graph.x, graph.y
    if noise.edges:
        adjacency = _rewired(graph, noise.edges, generator(seed, "noise in edges"))
        if graph.transform.kind == "structural":
            made, _ = structural_features(adjacency, tuple(map(graph.mask, PARTS)), graph.setting, graph.transform)
            x = compact(made)
    if noise.features:
        x = _other_features(x, noise.features, generator(seed, "noise in features"))
    if noise.labels:
        y = _other_labels(graph, noise.labels, generator(seed, "noise in labels"))
    return dataclasses.replace(graph, name=f"{graph.name} with noise", adjacency=adjacency, x=x, y=y, listed_edges=None)


def _rewired(graph: SourceGraph, share: float, stream: Generator) -> SparseMatrix:
    matrix, n, directed = graph.adjacency.to_scipy().tocoo(), graph.num_nodes, graph.directed
    once = np.full(matrix.nnz, True) if directed else matrix.row < matrix.col
    rows, columns, weights = matrix.row[once].astype(np.int64), matrix.col[once].astype(np.int64), matrix.data[once]
    count = round(share * len(rows))
    if count == 0:
        return graph.adjacency
    moved = torch.randperm(len(rows), generator=stream)[:count].numpy()
    rows[moved], columns[moved] = _unjoined(rows * n + columns, n, count, stream, directed=directed)
    if not directed:
        rows, columns, weights = np.r_[rows, columns], np.r_[columns, rows], np.r_[weights, weights]
    made = scipy.sparse.csr_matrix((weights, (rows, columns)), shape=(n, n))
    made.sort_indices()
    return SparseMatrix.from_scipy(made, symmetric=graph.adjacency.symmetric)


def _unjoined(
    taken: np.ndarray, n: int, count: int, stream: Generator, *, directed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """``count`` different pairs of ``n`` nodes, none of which is one of ``taken`` (row · n + column)."""
    pairs = n * (n - 1) if directed else n * (n - 1) // 2
    if count > pairs - len(taken):
        raise GcondError(
            f"{count} edges cannot be moved where only {pairs - len(taken)} pairs of nodes are not joined: "
            "use a smaller share of edges"
        )
    found = np.empty(0, dtype=np.int64)
    if len(taken) + count > pairs // 2:  # few are free: list them all, where drawing would meet the same ones again
        row, column = np.divmod(np.arange(n * n), n)
        free = np.setdiff1d(np.flatnonzero(row != column if directed else row < column), taken)
        found = free[torch.randperm(len(free), generator=stream)[:count].numpy()]
    while len(found) < count:
        ends = torch.randint(n, (2, 2 * (count - len(found))), generator=stream).numpy()
        if not directed:
            ends = np.sort(ends, axis=0)
        keys = (ends[0] * n + ends[1])[ends[0] != ends[1]]
        keys = np.r_[found, keys[~np.isin(keys, taken)]]
        found = keys[np.sort(np.unique(keys, return_index=True)[1])][:count]
    return found // n, found % n


def _other_features(x: Matrix, share: float, stream: Generator) -> Matrix:
    return _moved_entries(x, share, stream) if isinstance(x, SparseMatrix) else _borrowed_entries(x, share, stream)


def _moved_entries(x: SparseMatrix, share: float, stream: Generator) -> SparseMatrix:
    """A share of what is not zero, moved within its row to where zeros were."""
    width = x.shape[1]
    rows, columns = x.row_index.numpy(), x.indices.long().numpy().copy()
    filled = x.values.nonzero().squeeze(1).numpy()
    chosen = filled[torch.randperm(len(filled), generator=stream)[: round(share * len(filled))].numpy()]
    taken = rows * width + columns
    for _ in range(MOST_DRAWS):
        if len(chosen) == 0:
            break
        drawn = torch.randint(width, (len(chosen),), generator=stream).numpy()
        keys = rows[chosen] * width + drawn
        first = np.zeros(len(keys), dtype=bool)
        first[np.unique(keys, return_index=True)[1]] = True
        free = first & ~np.isin(keys, taken)
        columns[chosen[free]] = drawn[free]
        taken = np.r_[taken, keys[free]]
        chosen = chosen[~free]
    made = scipy.sparse.csr_matrix((x.values.numpy(), (rows, columns)), shape=x.shape)
    made.sort_indices()
    return SparseMatrix.from_scipy(made)


def _borrowed_entries(x: Tensor, share: float, stream: Generator) -> Matrix:
    """A share of all entries, each with the value that another node has in its column."""
    made, flat = x.clone(), x.flatten()
    nodes, width = x.shape
    chosen = torch.randperm(x.numel(), generator=stream)[: round(share * x.numel())]
    for _ in range(MOST_DRAWS):
        if len(chosen) == 0:
            break
        column = chosen % width
        value = flat[torch.randint(nodes, (len(chosen),), generator=stream) * width + column]
        other = value != flat[chosen]
        made.view(-1)[chosen[other]] = value[other]
        chosen = chosen[~other]
    return compact(made)


def _other_labels(graph: SourceGraph, share: float, stream: Generator) -> Tensor:
    y = graph.y.clone()
    if graph.num_classes < 2:
        return y
    for mask in (graph.train_mask, graph.val_mask):
        nodes = mask.nonzero().squeeze(1)
        nodes = nodes[torch.randperm(len(nodes), generator=stream)]
        count = round(share * len(nodes))
        if mask is graph.train_mask:
            first = torch.zeros(len(nodes), dtype=torch.bool)
            first[[int((y[nodes] == label).nonzero()[0]) for label in y[nodes].unique()]] = True
            nodes = nodes[~first]
        chosen = nodes[:count]
        step = torch.randint(1, graph.num_classes, (len(chosen),), generator=stream)
        y[chosen] = (y[chosen] + step) % graph.num_classes
    return y
