"""K-center."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gcond.linalg.greedy_covering import spread
from gcond.methods.selection_by_embedding import SelectionByEmbedding


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
