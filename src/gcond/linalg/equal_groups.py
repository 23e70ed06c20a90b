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
def equal_groups(points: Tensor, count: int, stream: Generator, weights: Tensor | None = None) -> EqualGroups:
    """``points`` [m, d] in ``count`` groups, at most m, of sizes that are equal up to one.

    With ``weights`` [m], above 0, it is the groups' weights that are equal, as far as whole points allow.

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
        own = None if weights is None else weights[members]
        middle, direction, along = _spread_most(points[members], stream, own)
        order = along.argsort(stable=True)
        at = min(max(_place(order, half / parts, own), half), len(members) - (parts - half))
        cuts[first, parts] = Cut(middle, direction, float(along[order[at - 1]] + along[order[at]]) / 2)
        waiting += [(members[order[:at]], first, half), (members[order[at:]], first + half, parts - half)]
    return EqualGroups(group, count, cuts)


def _place(order: Tensor, share: float, weights: Tensor | None) -> int:
    """How many of the points in ``order`` have that share of them all, or of their weights, about."""
    if weights is None:
        return round(len(order) * share)
    reached = weights[order].double().cumsum(0)
    return int((reached - reached[-1] * share).abs().argmin()) + 1


def _spread_most(points: Tensor, stream: Generator, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The mean [d] of ``points``, the direction [d] of their largest spread, about, and where they lie along it [m]."""
    heavy = None if weights is None else (weights / weights.mean())[:, None]
    middle = points.mean(0) if heavy is None else (heavy * points).mean(0)
    centred = points - middle
    weighed = centred if heavy is None else heavy * centred
    along = torch.randn(len(points), generator=stream).to(points)
    for _ in range(ITERATIONS):
        direction = weighed.T @ along
        along = centred @ direction
        length = along.norm().clamp(min=1e-30)
        along = along / length
    return middle, direction / length, along
