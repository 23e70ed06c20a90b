"""Features for a graph that has none, made from its edges alone.

*Roles* say what a node's surroundings are like: its degree, its core number, how much its neighbours know each other,
how soon a random walk is back, and the degrees around it. They mean the same in every graph. *Positions* say where in
the graph a node is: its row of the leading eigenvectors of Â, which random walks leave last. They mean nothing in
another graph, and so in the inductive setting, where every part is a graph of its own, there are only roles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gcond.graph.features import FeatureTransform, standardise
from gcond.graph.learning_setting import Setting
from gcond.linalg.sparse import SparseMatrix, gcn_normalise
from gcond.runtime.seeds import generator

POSITIONS = 112
"""Eigenvectors at most; with the roles about as many columns as a usual embedding has."""
ROUNDS = 8
"""Of two products with Â and an orthogonalisation each: eigenvectors need not be exact to tell places apart."""
ROLE_WEIGHT = 0.1
"""Standardised roles against positions, whose rows have length 1."""


def structural_features(
    adjacency: SparseMatrix, parts: Sequence[Tensor], setting: Setting, recorded: FeatureTransform | None = None
) -> tuple[Tensor, FeatureTransform]:
    """float32 [N, d], and the transform that says so.

    ``parts`` are the masks of training, validation and test nodes. In the inductive setting each part's features come
    from the edges among its own nodes. Roles are standardised by nodes that training sees, or as ``recorded``.
    """
    if setting == "transductive":
        roles = role_columns(adjacency)
        seen = torch.ones(len(roles), dtype=torch.bool)
    else:
        roles = _roles_by_part(adjacency, parts)
        seen = parts[0]
    if recorded is None or not recorded.mean:
        scaler = standardise(roles, seen)
        recorded = FeatureTransform("structural", scaler.mean, scaler.std)
    scaled = FeatureTransform("standardise", recorded.mean, recorded.std).apply(roles)
    assert isinstance(scaled, Tensor)
    if setting == "inductive":
        return scaled, recorded
    return torch.cat([ROLE_WEIGHT * scaled, position_columns(adjacency)], dim=1), recorded


def _roles_by_part(adjacency: SparseMatrix, parts: Sequence[Tensor]) -> Tensor:
    """Each part's roles among its own nodes; nodes in no part, which nobody sees, are a part too."""
    others = ~torch.stack(list(parts)).any(0)
    found: Tensor | None = None
    for mask in (*parts, others):
        nodes = mask.nonzero().squeeze(1)
        if len(nodes):
            roles = role_columns(adjacency.submatrix(nodes))
            found = torch.zeros(len(mask), roles.shape[1]) if found is None else found
            found[nodes] = roles
    assert found is not None
    return found


def role_columns(adjacency: SparseMatrix) -> Tensor:
    """What the surroundings of each node are like, whatever the weights and directions of edges: float32 [N, 9]."""
    pattern = _pattern(adjacency)
    degree = np.diff(pattern.indptr).astype(np.float64)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    walk = scipy.sparse.diags_array(inverse) @ pattern
    log_degree = np.log1p(degree)
    around = walk @ log_degree
    deviation = np.sqrt(np.maximum(walk @ log_degree**2 - around**2, 0))
    pairs = degree * (degree - 1) / 2
    clustering = np.divide(triangles(pattern), pairs, out=np.zeros_like(pairs), where=pairs > 0)
    columns = [
        log_degree,
        np.log1p(core_numbers(pattern)),
        clustering,
        walk @ clustering,
        inverse * (pattern @ inverse),  # a random walk is back after two steps
        around,
        deviation,
        walk @ around,
        walk @ (degree == 1),
    ]
    return torch.from_numpy(np.stack(columns, axis=1)).float()


def position_columns(adjacency: SparseMatrix) -> Tensor:
    """Rows of the leading eigenvectors of Â, weighed by their eigenvalues and of length 1: float32 [N, k].

    By subspace iteration from a fixed start; the largest entry of every eigenvector is positive.
    """
    undirected = adjacency
    if not adjacency.symmetric:
        undirected = SparseMatrix.from_scipy(_pattern(adjacency).astype(np.float32), symmetric=True)
    operator = gcn_normalise(undirected)
    n = adjacency.shape[0]
    basis = torch.empty(n, min(POSITIONS, n)).normal_(generator=generator(0, "structural positions"))
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(operator @ (operator @ basis))[0]
    within = basis.mT @ (operator @ basis)
    values, vectors = torch.linalg.eigh((within + within.mT) / 2)
    leading = (basis @ vectors).flip(1)
    largest = leading.gather(0, leading.abs().argmax(0, keepdim=True))
    leading = leading * torch.where(largest < 0, -1.0, 1.0) * values.flip(0)
    unit = FeatureTransform("unit-rows").apply(leading)
    assert isinstance(unit, Tensor)
    return unit


def core_numbers(pattern: scipy.sparse.csr_array) -> np.ndarray:
    """The largest k for which a node is among nodes that all have k neighbours among themselves: int64 [N]."""
    n = pattern.shape[0]
    degree = np.diff(pattern.indptr).astype(np.int64)
    core, left = np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool)
    k = 0
    while left.any():
        k = max(k, int(degree[left].min()))
        peeled = np.flatnonzero(left & (degree <= k))
        while len(peeled):
            core[peeled] = k
            left[peeled] = False
            touched = pattern[peeled].indices
            degree -= np.bincount(touched, minlength=n)
            touched = np.unique(touched)
            peeled = touched[left[touched] & (degree[touched] <= k)]
    return core


def triangles(pattern: scipy.sparse.csr_array) -> np.ndarray:
    """Triangles that each node is in: float64 [N].

    Edges are taken from the end of lower degree to the other, so that hubs, from which few go out, cost no more than
    other nodes.
    """
    degree = np.diff(pattern.indptr)
    rank = np.empty(len(degree), dtype=np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(len(degree))
    edges = pattern.tocoo()
    up = rank[edges.row] < rank[edges.col]
    upward = scipy.sparse.csr_array((np.ones(int(up.sum())), (edges.row[up], edges.col[up])), shape=pattern.shape)
    # Of a triangle with ends in the order a, b, c: (a, c) by how many b are between, and (b, c) by how many a see both.
    ends, upper = (upward @ upward).multiply(upward), (upward.T @ upward).multiply(upward)
    return np.asarray(ends.sum(0) + ends.sum(1) + upper.sum(1)).ravel()


def _pattern(adjacency: SparseMatrix) -> scipy.sparse.csr_array:
    """1 wherever there is an edge in either direction."""
    matrix = scipy.sparse.csr_array(adjacency.to_scipy(), dtype=np.float64)
    matrix.data = np.ones_like(matrix.data)
    if not adjacency.symmetric:
        matrix = matrix.maximum(matrix.T).tocsr()
    return matrix
