"""Groups of equal size whose members lie close together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

ITERATIONS = 6
"""Of the power method, for the direction that a set is cut across: any direction of large spread will do."""


class Cut(NamedTuple):
    """A cut of a set of points in two, across a direction."""

    middle: Tensor
    """[d]: the mean of the set."""
    direction: Tensor
    """[d]."""
    place: float
    """Points at most so far along the direction, from the middle, are on the left."""


@dataclass(frozen=True, eq=False)
class EqualGroups:
    """Points in groups of equal size, and the cuts by which further points fall into the same groups."""

    group: Tensor
    """int64 [m]: the group of each of the points, 0 to ``count`` - 1."""
    count: int
    cuts: dict[tuple[int, int], Cut]
    """By the first of the groups that a set was cut into, and their number."""

    def of(self, points: Tensor) -> Tensor:
        """The groups that further ``points`` [k, d] fall into: int64 [k]."""
        found = torch.zeros(len(points), dtype=torch.long)
        waiting = [(torch.arange(len(points)), 0, self.count)]
        while waiting:
            members, first, parts = waiting.pop()
            if parts == 1:
                found[members] = first
            elif len(members):
                middle, direction, place = self.cuts[first, parts]
                left = (points[members] - middle) @ direction <= place
                half = parts // 2
                waiting += [(members[left], first, half), (members[~left], first + half, parts - half)]
        return found


@torch.no_grad()
def equal_groups(points: Tensor, count: int, stream: Generator) -> EqualGroups:
    """``points`` [m, d] in ``count`` groups, at most m, of sizes that are equal up to one.

    A set is cut in two across the direction in which it is spread most, and so on, each part in proportion to the
    groups that it will hold (principal direction divisive partitioning, Boley 1998, with equal parts).

    Equal sizes matter to what is made of groups: k-means gives a few far-off points a centre each and leaves the bulk
    to a handful, so that the plain mean over centres is not the mean of the points.
    """
    group = torch.zeros(len(points), dtype=torch.long)
    cuts: dict[tuple[int, int], Cut] = {}
    waiting = [(torch.arange(len(points)), 0, count)]
    while waiting:
        members, first, parts = waiting.pop()
        if parts == 1:
            group[members] = first
            continue
        half = parts // 2
        middle, direction, along = _spread_most(points[members], stream)
        order = along.argsort(stable=True)
        at = min(max(round(len(members) * half / parts), half), len(members) - (parts - half))
        cuts[first, parts] = Cut(middle, direction, float(along[order[at - 1]] + along[order[at]]) / 2)
        waiting += [(members[order[:at]], first, half), (members[order[at:]], first + half, parts - half)]
    return EqualGroups(group, count, cuts)


def _spread_most(points: Tensor, stream: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """The mean [d] of ``points``, the direction [d] of their largest spread, about, and where they lie along it [m]."""
    middle = points.mean(0)
    centred = points - middle
    along = torch.randn(len(points), generator=stream).to(points)
    for _ in range(ITERATIONS):
        direction = centred.T @ along
        along = centred @ direction
        length = along.norm().clamp(min=1e-30)
        along = along / length
    return middle, direction / length, along
