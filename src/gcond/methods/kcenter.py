"""K-center."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcond.methods.embedding import SelectionByEmbedding


@dataclass(frozen=True)
class KCenter(SelectionByEmbedding):
    r"""Nodes spread so that every node of their class is close to one of them in a GCN's embedding.

    Greedy, from the node closest to the mean of the class on: always the node furthest from those picked,

    .. math:: x_{i+1} = \arg\max_x \min_{j \le i} \| x - x_j \|

    which covers the class with at most twice the smallest radius that any choice of as many nodes has.
    A tie goes to the node of the lowest index.
    """

    name: ClassVar[str] = "k-center"
    summary: ClassVar[str] = "labelled nodes that cover their class in a GCN's embedding, furthest first"
    citation: ClassVar[str] = (
        "Sener and Savarese, Active Learning for Convolutional Neural Networks: A Core-Set Approach, ICLR 2018; "
        "Farahani and Hekmatfar, Facility Location, 2009"
    )

    def pick(self, points: Tensor, count: int) -> Tensor:
        return spread(points, count)


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
