"""Local variation neighbourhoods (Loukas, JMLR 2019) from first principles: dense matrices, one set at a time.

Follows the paper and the author's code, with two differences that gcond documents:
averages weigh a merged node by its ``mass``, and a set that would reduce too far is cut, not skipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass
class AtLeast:
    """The rule of plain coarsening: ``target`` nodes, or as near above it as contractions get."""

    nodes: int
    target: int

    def admit(self, members):
        return members[: self.nodes - self.target + 1]

    def merge(self, members):
        self.nodes -= len(members) - 1

    def follow(self, step, size):
        pass


def dense_laplacian(W):
    return np.diag(W.sum(1)) - W


def projection(sets, mass):
    """P: one row a cluster, with the shares of its nodes in their mean."""
    n = len(mass)
    inside = {node for members in sets for node in members}
    clusters = sorted([sorted(members) for members in sets] + [[node] for node in range(n) if node not in inside])
    P = np.zeros((len(clusters), n))
    for row, members in enumerate(clusters):
        for node in members:
            P[row, node] = mass[node] / sum(mass[other] for other in members)
    return P


def subgraph_cost(W, A, mass, members):
    """‖Π_S^⊥ A_S‖ in the norm of L_S, over |S| - 1; L_S counts the edges that leave S twice."""
    members = list(members)
    inner = W[np.ix_(members, members)]
    L = np.diag(2 * W.sum(1)[members] - inner.sum(1)) - inner
    share = np.array([mass[node] for node in members]) / sum(mass[node] for node in members)
    B = (np.eye(len(members)) - np.outer(np.ones(len(members)), share)) @ A[members]
    return np.linalg.norm(B.T @ L @ B) / (len(members) - 1)


def neighbourhood_sets(W, A, mass, target, level_ratio):
    """The contraction sets of one level: always the cheapest candidate of all."""
    n = len(W)
    target = max(target, min(math.ceil(n * (1 - level_ratio)), n - 1))
    family = []
    for centre in range(n):
        near = sorted(np.flatnonzero(W[centre]), key=lambda node: (-W[centre, node], node))
        if near:
            members = [centre, *(int(node) for node in near)]
            family.append([subgraph_cost(W, A, mass, members), centre, members])
    marked: set[int] = set()
    sets = []
    left = n
    while family and left > target:
        candidate = min(family)
        family.remove(candidate)
        _, centre, members = candidate
        free = [node for node in members if node not in marked][: left - target + 1]
        if free == members:
            marked.update(members)
            sets.append(members)
            left -= len(members) - 1
        elif len(free) > 1:
            family.append([subgraph_cost(W, A, mass, free), centre, free])
    return sets


def orthonormal(L, B):
    """B (BᵀLB)^{+½}."""
    values, vectors = np.linalg.eigh(B.T @ L @ B)
    root = [value**-0.5 if value > 1e-12 * values.max() else 0.0 for value in values]
    return B @ vectors @ np.diag(root) @ vectors.T


def coarsen(W, B, target, level_ratio):
    """Levels until the target or until nothing can be merged: the total P, the last W, and σ of every level."""
    P, mass, sigmas = np.eye(len(W)), np.ones(len(W)), []
    while True:
        L = dense_laplacian(W)
        A = orthonormal(L, B)
        sets = neighbourhood_sets(W, A, mass, target, level_ratio)
        if not sets:
            return P, W, sigmas
        step = projection(sets, mass)
        lift = (step > 0).astype(float).T
        sigmas.append(semi_norm(L, A - lift @ step @ A))
        W = lift.T @ W @ lift
        np.fill_diagonal(W, 0)
        P, B, mass = step @ P, step @ B, lift.T @ mass


def semi_norm(L, Y):
    """‖L^½ Y‖₂, with L^½ made explicitly."""
    values, vectors = np.linalg.eigh(L)
    return np.linalg.norm(np.diag(np.sqrt(np.maximum(values, 0))) @ vectors.T @ Y, 2)
