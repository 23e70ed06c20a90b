"""Candidate pairs: the few pairs of nodes that may have an edge where all of them would be too many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gcond.linalg.edge_products import Pattern
from gcond.linalg.learned_matrix import LearnedMatrix
from gcond.matching.pairs import Entries, pattern_pairs

BLOCK = 4_000_000
"""Distances at a time: 16 MB."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of nodes, each in both directions, and every node with itself, as the ``pattern`` of a matrix."""

    pattern: Pattern
    together: int | None = None
    """Pairs at a time, at most, but for all of one node; ``None`` for as many as is quick."""

    @classmethod
    def of(cls, target: Tensor, source: Tensor, nodes: int, together: int | None = None) -> Candidates:
        """The pairs (target, source), int64 [E] each, with what they lack of their reverses and the diagonal."""
        loops = torch.arange(nodes, device=target.device)
        places = torch.cat([target * nodes + source, source * nodes + target, loops * nodes + loops]).unique()
        return cls(Pattern(places // nodes, places % nodes, nodes), together)

    @cached_property
    def blocks(self) -> list[Entries]:
        """The pairs in blocks of rows."""
        return pattern_pairs(self.pattern, self.together)

    @cached_property
    def upper(self) -> Tensor:
        """int64 [U]: the entries above the diagonal."""
        return (self.pattern.target < self.pattern.source).nonzero().squeeze(1)

    @cached_property
    def place(self) -> Tensor:
        """int64 [E]: which of the :attr:`upper` has the weight of an entry; on the diagonal the one after the last."""
        place = torch.full_like(self.pattern.target, len(self.upper))
        place[self.upper] = torch.arange(len(self.upper), device=place.device)
        place[self.pattern.order[self.upper]] = place[self.upper]
        return place

    def weights(self, score: Tensor, *, symmetric: bool) -> LearnedMatrix:
        """A' of a score [E] for every pair: σ of it, or of the mean of both directions; nothing on the diagonal."""
        if not symmetric:
            return LearnedMatrix(self.pattern, torch.sigmoid(score).masked_fill(self.pattern.diagonal, 0.0))
        # Entries sorted by their source are, since each has its reverse, the reverses in order: ``order`` finds them.
        both = score[self.upper] + score[self.pattern.order[self.upper]]
        weight = torch.cat([torch.sigmoid(both / 2), score.new_zeros(1)])
        return LearnedMatrix(self.pattern, weight[self.place], symmetric=True)


@torch.no_grad()
def nearest(x: Tensor, neighbours: int) -> tuple[Tensor, Tensor]:
    """Every node with each of the ``neighbours`` that are nearest to it by Euclidean distance in ``x`` [n, d].

    Nodes and their neighbours, int64 [E] each. Of equally far ones, which are taken is up to the order of the nodes;
    the same x always gives the same pairs.
    """
    n, count = len(x), min(neighbours, len(x) - 1)
    length = x.square().sum(1)
    step = max(1, BLOCK // n)
    found = []
    for first in range(0, n, step):
        rows = x[first : first + step]
        apart = torch.addmm(length[None], rows, x.mT, alpha=-2)  # less |rows|², which changes no order in a row
        apart[torch.arange(len(rows)), torch.arange(first, first + len(rows))] = torch.inf
        found.append(apart.topk(count, largest=False).indices)
    return torch.arange(n, device=x.device).repeat_interleave(count), torch.cat(found).flatten()
