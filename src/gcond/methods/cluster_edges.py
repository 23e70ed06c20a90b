"""Edges between groups of nodes, from the edges of their members."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from torch import Tensor

from gcond.graph import Inputs
from gcond.graph.streamed_operator import RowBlocks
from gcond.linalg.sparse import SparseMatrix


def no_edges(nodes: int) -> SparseMatrix:
    """The adjacency of so many groups without an edge."""
    return SparseMatrix.from_scipy(scipy.sparse.csr_matrix((nodes, nodes), dtype=np.float32))


def edges_between(inputs: Inputs, group: Tensor, nodes: int) -> SparseMatrix:
    """Weights [n, n] between the groups of all nodes, beside a self-loop of 1 for what a group has within.

    ``between_rs / √(within_r within_s)``; within are a group's inner edges and one self-loop for each of its nodes.
    """
    adjacency = inputs.adjacency
    if not isinstance(adjacency, SparseMatrix | RowBlocks):
        return no_edges(nodes)
    between = scipy.sparse.csr_matrix((nodes, nodes))
    member = _indicators(group, nodes)
    size = np.asarray(member.sum(1)).ravel()
    whole = [(slice(0, len(group)), adjacency)] if isinstance(adjacency, SparseMatrix) else adjacency
    for where, rows in whole:
        between += (member[:, where] @ rows.to_scipy().astype(np.float64) @ member.T).tocsr()
    within = between.diagonal() + size  # a node's own self-loop stays within
    scale = scipy.sparse.diags(within**-0.5)
    weights = scale @ (between - scipy.sparse.diags(between.diagonal())) @ scale
    if adjacency.symmetric:
        weights = scipy.sparse.triu(weights)  # sums in another order differ in their last digit
        weights = weights + weights.T
    weights = weights.tocsr().astype(np.float32)
    weights.eliminate_zeros()
    return SparseMatrix.from_scipy(weights, symmetric=adjacency.symmetric)


def _indicators(group: Tensor, nodes: int) -> scipy.sparse.csc_matrix:
    index = group.numpy()
    ones = (np.ones(len(index)), (index, np.arange(len(index))))
    return scipy.sparse.csc_matrix(ones, shape=(nodes, len(index)))
