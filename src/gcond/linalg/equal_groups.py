"""Groups of equal size whose members lie close together."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

ITERATIONS = 6
"""Of the power method, for the direction that a set is cut across: any direction of large spread will do."""


@torch.no_grad()
def equal_groups(points: Tensor, count: int, stream: Generator) -> Tensor:
    """The group of each of ``points`` [m, d], 0 to ``count`` - 1, sizes equal up to one: int64 [m].

    A set is cut in two across the direction in which it is spread most, and so on, each part in proportion to the
    groups that it will hold (principal direction divisive partitioning, Boley 1998, with equal parts). ``count`` is
    at most m.

    Equal sizes matter to what is made of groups: k-means gives a few far-off points a centre each and leaves the bulk
    to a handful, so that the plain mean over centres is not the mean of the points.
    """
    group = torch.zeros(len(points), dtype=torch.long)
    waiting = [(torch.arange(len(points)), 0, count)]
    while waiting:
        members, first, parts = waiting.pop()
        if parts == 1:
            group[members] = first
            continue
        left = parts // 2
        order = members[_along(points[members], stream).argsort(stable=True)]
        cut = min(max(round(len(members) * left / parts), left), len(members) - (parts - left))
        waiting += [(order[:cut], first, left), (order[cut:], first + left, parts - left)]
    return group


def _along(points: Tensor, stream: Generator) -> Tensor:
    """Where ``points`` lie along the direction of their largest spread, about: [m]."""
    centred = points - points.mean(0)
    place = torch.randn(len(points), generator=stream).to(points)
    for _ in range(ITERATIONS):
        place = centred @ (centred.T @ place)
        place = place / place.norm().clamp(min=1e-30)
    return place
