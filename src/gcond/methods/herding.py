"""Herding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcond.methods.selection_by_embedding import SelectionByEmbedding


@dataclass(frozen=True)
class Herding(SelectionByEmbedding):
    r"""Nodes whose running mean stays closest to the mean of their class in a GCN's embedding.

    .. math:: x_{i+1} = \arg\min_{x \notin \{x_1 … x_i\}} \Big\| (i + 1) μ - \sum_{j \le i} x_j - x \Big\|

    A tie goes to the node of the lowest index.
    """

    name: ClassVar[str] = "herding"
    summary: ClassVar[str] = "labelled nodes whose mean follows the mean of their class in a GCN's embedding"
    citation: ClassVar[str] = "Welling, Herding Dynamical Weights to Learn, ICML 2009"

    def pick(self, points: Tensor, count: int) -> Tensor:
        m = len(points)
        total = points.sum(0)
        rest = torch.zeros_like(total)
        taken = torch.zeros(m, dtype=torch.bool)
        picked = torch.empty(count, dtype=torch.long)
        for i in range(count):
            # m times the formula's vector: without the division by m whole numbers stay whole, and ties stay ties.
            rest = rest + total
            distance = (rest - m * points).square().sum(1).masked_fill(taken, math.inf)
            picked[i] = best = distance.argmin()
            taken[best] = True
            rest = rest - m * points[best]
        return picked
