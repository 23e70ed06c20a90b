"""Sparsification of A': light edges are dropped when a graph is finished, and others from the finished graph."""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.linalg.sparse import Identity
from gcond.matching.structure import PairwiseMLP, kept_width
from gcond.runtime.memory import parse_bytes


def sparsify(adjacency: Tensor, delta: float, *, shrink: bool = False) -> Tensor:
    """A' without weights up to ``delta``; with ``shrink`` the others lose it too, the paper's ``ReLU(A' - δ)``."""
    if shrink:
        return F.relu(adjacency - delta)
    return torch.where(adjacency > delta, adjacency, 0.0)


def thresholded(small: CondensedGraph, delta: float) -> CondensedGraph:
    """``small`` with A' thresholded at ``delta`` instead of at the δ that it was saved with."""
    if not 0 <= delta < 1:
        raise GcondError(f"threshold {delta} is not usable: it must be at least 0 and below 1")
    if delta < (kept := lowest_threshold(small)):
        raise GcondError(
            f"threshold {delta:g} is below {kept:g}, up to which this graph's edges were dropped: use {kept:g} or more"
        )
    adjacency = sparsify(unthresholded(small), delta, shrink=shrinks(small))
    target, source = adjacency.nonzero(as_tuple=True)
    made = small.provenance
    return dataclasses.replace(
        small,
        edge_index=torch.stack([source, target]),
        edge_weight=adjacency[target, source],
        provenance=made and dataclasses.replace(made, scores=()),  # they are of another graph
    )


@torch.no_grad()
def unthresholded(small: CondensedGraph) -> Tensor:
    """A' [n, n] (row = target) as it was before it was thresholded.

    Where the file keeps Φ, g_Φ(X') is made again, with the statistics of BN that it was finished with. Without Φ it is
    what the file has, in which everything up to the δ it was saved with is 0.
    """
    adjacency, made = small.adjacency(), small.provenance
    if (hidden := kept_width(small.structure)) is not None:
        memory = made.settings.get("memory") if made is not None else None
        # A directed source does not ask for both directions of every edge, but may have got them.
        mutual = isinstance(adjacency, Tensor) and torch.equal(adjacency, adjacency.T)
        symmetric = not (made is not None and made.directed) or mutual
        structure = PairwiseMLP(hidden, symmetric, memory=parse_bytes(memory if isinstance(memory, str) else "1GB"))
        return structure.adjacency(structure.kept(small.structure, small.x.shape[1]), small.x)
    if isinstance(adjacency, Identity):
        raise GcondError("this graph has no edges (A' = I): there is nothing that a threshold could drop")
    taken = shipped_delta(small) if shrinks(small) else None
    return adjacency if taken is None else torch.where(adjacency > 0, adjacency + taken, 0.0)


def shipped_delta(small: CondensedGraph) -> float | None:
    """The threshold that ``small`` was saved with, if its method has one."""
    made = small.provenance
    delta = made.choices.get("delta", made.settings.get("delta")) if made is not None else None
    return float(delta) if isinstance(delta, int | float) else None


def shrinks(small: CondensedGraph) -> bool:
    """Whether the threshold was also taken off the weights that it left, so that they start from 0."""
    return small.provenance is not None and small.provenance.settings.get("sparsify") == "shrink"


def lowest_threshold(small: CondensedGraph) -> float:
    """The weight up to which edges cannot be had any more; 0 where Φ makes them again."""
    return 0.0 if kept_width(small.structure) is not None else (shipped_delta(small) or 0.0)
