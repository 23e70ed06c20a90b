"""Closeness: how far the nodes of a condensed graph are from those of its source, beside how far these are apart.

For each condensed node, the Euclidean distance to the nearest source node and, as a share of that to the second
nearest, how much it points at that one alone; for source nodes the same to the others among them. Source nodes are
those that condensing saw: all, or in the inductive setting the training nodes. It is done for the features, X' against
X, and for what two hops make of them, :math:`\\hat A'^2 X'` against :math:`\\hat A^2 X`.

Distances tell of copies and near copies. They do not tell that nothing else can be found out: a mean of nodes lies
nearer to all of them than they do to each other, and who knows more than features can combine it with that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch

from gcond.condensed import CondensedGraph
from gcond.graph import Inputs, SourceGraph
from gcond.graph.inputs import Chain
from gcond.linalg.sparse import Matrix, SparseMatrix, dense
from gcond.results import Closeness, Spread
from gcond.results.audit import Space
from gcond.runtime.memory import SAFE_SHARE, available_bytes
from gcond.runtime.seeds import generator

MOST_SAMPLED = 1000
"""Source nodes from which distances to the others are measured, at most."""
HOPS = 2
BLOCK_BYTES = 64 * 2**20
"""Of distances that are held at once, about."""

Array = Any  # of NumPy, or a CSR matrix of SciPy's


def closeness(small: CondensedGraph, source: SourceGraph, subject: str) -> Iterator[Closeness | str]:
    """A measurement for each space, or a sentence on why there is none."""
    seen = source.training_graph()
    if seen.num_nodes < 3:
        yield f"{subject}: distances need three source nodes or more, and there are {seen.num_nodes}"
        return
    yield _measured(small.x, seen.x, "features", subject)
    inputs = seen.view("train").inputs
    needed = 20 * inputs.num_nodes * inputs.num_features  # as floats, as doubles, and as a product with its indices
    if needed > SAFE_SHARE * available_bytes():
        yield f"{subject}: distances after {HOPS} hops need {needed / 1e9:.1f} GB, which is more than there is"
        return
    yield _measured(_propagated(small.view().inputs), _propagated(inputs), "propagated", subject)


def nearest_two(queries: Matrix, points: Matrix, exclude: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The two nearest of ``points`` [N, d] to each of ``queries`` [m, d]: indices int64 and distances float64, [m, 2].

    ``exclude`` [m] is a point for each query that does not count, itself as a rule. Candidates are found by products
    and their distances by differences, so that a copy is at 0.
    """
    there, asked = _array(points), _array(queries)
    lengths = _squared_lengths(there)
    found = np.empty((asked.shape[0], 2), dtype=np.int64)
    distances = np.empty((asked.shape[0], 2))
    rows_at_once = max(1, BLOCK_BYTES // (8 * max(there.shape)))
    for start in range(0, asked.shape[0], rows_at_once):
        block = asked[start : start + rows_at_once]
        product = block @ there.T
        product = product.toarray() if scipy.sparse.issparse(product) else np.asarray(product)
        squared = lengths - 2 * product  # less what is the same for all points
        rows = np.arange(len(squared))
        if exclude is not None:
            squared[rows, exclude[start : start + rows_at_once]] = np.inf
        two = np.argpartition(squared, 1, axis=1)[:, :2]
        for place in range(2):
            difference = _rows(block) - _rows(there[two[:, place]])
            distances[start + rows, place] = np.sqrt((difference**2).sum(1))
        found[start + rows] = two
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(found, order, 1), np.take_along_axis(distances, order, 1)


def _measured(own: Matrix, points: Matrix, space: Space, subject: str) -> Closeness:
    _, near = nearest_two(own, points)
    nodes = points.shape[0]
    drawn = torch.randperm(nodes, generator=generator(0, "closeness"))[:MOST_SAMPLED].sort().values
    sample = points.rows(drawn) if isinstance(points, SparseMatrix) else points[drawn]
    _, apart = nearest_two(sample, points, drawn.numpy())
    return Closeness(
        subject=subject,
        space=space,
        nearest=_spread(near[:, 0]),
        between=_spread(apart[:, 0]),
        ratio=_spread(_ratio(near)),
        between_ratio=_spread(_ratio(apart)),
        closer=float((near[:, 0] < np.median(apart[:, 0])).mean()),
        copies=int((near[:, 0] == 0).sum()),
        sampled=len(drawn),
    )


def _ratio(near: np.ndarray) -> np.ndarray:
    """Nearest by second nearest; 1 where both are at 0, which points at neither."""
    return np.divide(near[:, 0], near[:, 1], out=np.ones(len(near)), where=near[:, 1] > 0)


def _spread(values: np.ndarray) -> Spread:
    return Spread(*np.quantile(values, (0, 0.05, 0.5, 0.95, 1)).tolist())


@torch.no_grad()
def _propagated(inputs: Inputs) -> Matrix:
    found = inputs.features("gcn", HOPS)
    return found.dense() if isinstance(found, Chain) else dense(found)


def _array(x: Matrix) -> Array:
    """As doubles, sparse where it is sparse."""
    return x.to_scipy().astype(np.float64) if isinstance(x, SparseMatrix) else x.double().numpy()


def _rows(x: Array) -> np.ndarray:
    return np.asarray(x.toarray() if scipy.sparse.issparse(x) else x)


def _squared_lengths(x: Array) -> np.ndarray:
    squares = x.multiply(x) if scipy.sparse.issparse(x) else x * x
    return np.asarray(squares.sum(1)).ravel()
