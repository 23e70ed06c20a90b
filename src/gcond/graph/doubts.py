"""Reasons why nothing can be learned from a graph that is otherwise in order."""

from __future__ import annotations

import torch

from gcond.linalg.sparse import Matrix, SparseMatrix

SAME_FEATURES = "all nodes have the same features, which tell nothing"


def doubts(x: Matrix, classes: int) -> tuple[str, ...]:
    """A sentence for each reason."""
    said = []
    if classes == 1:
        said.append("there is one class only, so that every answer is right: label nodes of a second one")
    if is_constant(x):
        said.append(f"{SAME_FEATURES}: features='structural' makes others")
    return tuple(said)


def is_constant(x: Matrix) -> bool:
    """Whether all of several rows are the same; sparse ones have their columns in order."""
    n = x.shape[0]
    if n < 2:
        return False
    if isinstance(x, SparseMatrix):
        if len(x.values) % n or bool((x.indptr.diff() != len(x.values) // n).any()):
            return False
        parts = x.indices.reshape(n, -1), x.values.reshape(n, -1)
        return all(bool((part == part[0]).all()) for part in parts)
    low, high = torch.aminmax(x, dim=0)
    return torch.equal(low, high)
