"""Greedy covering: points spread so that every other is close to one of them."""

from __future__ import annotations

import torch
from torch import Tensor


def spread(points: Tensor, count: int) -> Tensor:
    """``count`` different rows of ``points`` [m, k], furthest first, in the order they are picked: int64 [count].

    The distance of each row to its nearest pick is carried along, so a pick costs m distances.
    """
    m = len(points)
    # m times the distance to the mean: without the division whole numbers stay whole, and ties stay ties.
    picked = torch.empty(count, dtype=torch.long)
    picked[0] = (m * points - points.sum(0)).square().sum(1).argmin()
    nearest = torch.full((m,), torch.inf, dtype=points.dtype)
    for i in range(1, count):
        previous = picked[i - 1]
        torch.minimum(nearest, (points - points[previous]).square().sum(1), out=nearest)
        # Below every distance: a row that was picked is never picked again, even among equal rows.
        nearest[previous] = -1
        picked[i] = nearest.argmax()
    return picked
