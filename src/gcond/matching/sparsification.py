"""Sparsification of A': light edges are dropped when a graph is finished, and others from the finished graph."""

from __future__ import annotations

import dataclasses
from typing import overload

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.linalg.learned_matrix import LearnedMatrix
from gcond.linalg.sparse import Adjacency, Identity, SparseMatrix, dense, edge_list
from gcond.matching.candidates import Candidates
from gcond.matching.structure import PairwiseMLP, kept_width
from gcond.runtime.memory import parse_bytes


@overload
def sparsify(adjacency: Tensor, delta: float, *, shrink: bool = False) -> Tensor: ...
@overload
def sparsify(adjacency: LearnedMatrix, delta: float, *, shrink: bool = False) -> SparseMatrix: ...
def sparsify(adjacency: Tensor | LearnedMatrix, delta: float, *, shrink: bool = False) -> Tensor | SparseMatrix:
    """A' without weights up to ``delta``; with ``shrink`` the others lose it too, the paper's ``ReLU(A' - δ)``."""
    if isinstance(adjacency, LearnedMatrix):
        return adjacency.above(delta, delta if shrink else 0.0)
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
    edge_index, edge_weight = edge_list(sparsify(unthresholded(small), delta, shrink=shrinks(small)))
    made = small.provenance
    return dataclasses.replace(
        small,
        edge_index=edge_index,
        edge_weight=edge_weight,
        provenance=made and dataclasses.replace(made, scores=()),  # they are of another graph
    )


@torch.no_grad()
def unthresholded(small: CondensedGraph) -> Tensor | LearnedMatrix:
    """A' [n, n] (row = target) as it was before it was thresholded.

    Where the file keeps Φ, g_Φ(X') is made again, with the statistics of BN that it was finished with, and on the pairs
    that it was learned on where those were not all. Without Φ it is what the file has, in which everything up to the δ
    it was saved with is 0.
    """
    adjacency, made = small.adjacency(), small.provenance
    if (hidden := kept_width(small.structure)) is not None:
        memory = made.settings.get("memory") if made is not None else None
        # A directed source does not ask for both directions of every edge, but may have got them.
        symmetric = not (made is not None and made.directed) or _mutual(adjacency)
        bytes_ = parse_bytes(memory if isinstance(memory, str) else "1GB")
        structure = PairwiseMLP(hidden, symmetric, memory=bytes_, neighbours=learned_neighbours(small))
        among = structure.candidates(small.x)
        if among is not None:  # and what has an edge: old nodes of a grown graph may have been joined by another rule
            pattern, (source, target) = among.pattern, small.edge_index
            both = torch.cat([pattern.target, target]), torch.cat([pattern.source, source])
            among = Candidates.of(*both, small.num_nodes, among.together)
        return structure.adjacency(structure.kept(small.structure, small.x.shape[1]), small.x, among)
    if isinstance(adjacency, Identity):
        raise GcondError("this graph has no edges (A' = I): there is nothing that a threshold could drop")
    adjacency = dense(adjacency)
    taken = shipped_delta(small) if shrinks(small) else None
    return adjacency if taken is None else torch.where(adjacency > 0, adjacency + taken, 0.0)


def learned_neighbours(small: CondensedGraph) -> int | None:
    """The neighbours that a node could have an edge with when ``small`` was made; ``None`` where it was all."""
    made = small.provenance
    chosen = made.choices.get("neighbours", made.settings.get("neighbours")) if made is not None else None
    return chosen if isinstance(chosen, int) and chosen > 0 else None


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


def _mutual(adjacency: Adjacency) -> bool:
    """Whether every edge has its reverse, of the same weight."""
    if isinstance(adjacency, SparseMatrix):
        matrix = adjacency.to_scipy()
        return bool((matrix != matrix.T).nnz == 0)
    return isinstance(adjacency, Tensor) and torch.equal(adjacency, adjacency.T)
