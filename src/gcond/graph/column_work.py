"""Work on columns that do not mix: products with the graph, one after the other, on any number of columns at a time.

On a graph past memory a group of columns goes through all of its hops alone; on a cluster it is the unit of work.
Each is a frozen dataclass, so that it can be sent to where the columns are and says by its fields what was computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcond.graph.streamed_operator import StreamedOperator
from gcond.linalg.sparse import Adjacency

Operator = Adjacency | StreamedOperator

NARROW = 64
"""Columns that go through a graph in memory at a time: few enough to stay in the caches from hop to hop. The sum of
four hops takes 0.4 of the time of all columns at once on CiteSeer and on Coauthor CS; the numbers are the same to
rounding."""


@dataclass(frozen=True, eq=False)
class ColumnWork(ABC):
    """A function of a normalised adjacency S [N, N] and columns [N, k], each on its own."""

    held: ClassVar[int] = 2
    """Matrices as large as the columns that are in memory at once, those of the caller included."""
    keeps_rows: ClassVar[bool] = True
    """Whether there is a row for every node in what comes out."""

    @property
    @abstractmethod
    def products(self) -> int:
        """How often the columns are multiplied by S."""

    @abstractmethod
    def __call__(self, operator: Operator, columns: Tensor) -> Tensor:
        """What comes of ``columns`` [N, k], which a streamed operator overwrites: [N, k], or [rows, k]."""

    def by_narrow_groups(self, adjacency: Adjacency, columns: Tensor) -> Tensor:
        """The same of a graph in memory, :data:`NARROW` columns at a time."""
        width = columns.shape[1]
        if width <= NARROW or columns.device.type != "cpu":
            return self(adjacency, columns)
        groups = [slice(first, first + NARROW) for first in range(0, width, NARROW)]
        part = self(adjacency, columns[:, groups[0]].contiguous())
        made = part.new_empty(len(part), width)
        made[:, groups[0]] = part
        for group in groups[1:]:
            made[:, group] = self(adjacency, columns[:, group].contiguous())
        return made


@dataclass(frozen=True, eq=False)
class Hops(ColumnWork):
    """``S^hops X``."""

    hops: int

    def __str__(self) -> str:
        return f"{self.hops} hops"

    @property
    def products(self) -> int:
        return self.hops

    def __call__(self, operator: Operator, columns: Tensor) -> Tensor:
        spare = None
        for _ in range(self.hops):
            columns, spare = _hop(operator, columns, spare), columns
        return columns


@dataclass(frozen=True, eq=False)
class SumOfHops(ColumnWork):
    """``X + S X + … + S^hops X``."""

    held: ClassVar[int] = 3
    hops: int

    def __str__(self) -> str:
        return f"the sum of {self.hops} hops"

    @property
    def products(self) -> int:
        return self.hops

    def __call__(self, operator: Operator, columns: Tensor) -> Tensor:
        total, spare = columns.clone(), None
        for _ in range(self.hops):
            columns, spare = _hop(operator, columns, spare), columns
            total += columns
        return total


@dataclass(frozen=True, eq=False)
class Smoothing(ColumnWork):
    """``Q ← (1 - own) S Q + own Z`` for some steps from ``Q = Z``."""

    held: ClassVar[int] = 3
    own: float
    steps: int

    def __str__(self) -> str:
        return f"{self.steps} steps of smoothing"

    @property
    def products(self) -> int:
        return 0 if self.own == 1 else self.steps

    def __call__(self, operator: Operator, columns: Tensor) -> Tensor:
        if self.own == 1:
            return columns
        smooth, spare = columns.clone(), None
        kept = columns.mul_(self.own) if isinstance(operator, StreamedOperator) else self.own * columns
        for _ in range(self.steps):
            product = _hop(operator, smooth, spare)
            smooth, spare = torch.add(kept, product, alpha=1 - self.own, out=product), smooth
        return smooth


@dataclass(frozen=True, eq=False)
class SmoothedRows(ColumnWork):
    r"""Some rows of what :class:`Smoothing` makes with each of some shares, one below the other: [shares · m, k].

    The steps of smoothing are a polynomial in S, :math:`Q = \sum_{k<K} a (1-a)^k S^k Z + (1-a)^K S^K Z`, so that one
    pass through the hops serves every share a.
    """

    keeps_rows: ClassVar[bool] = False
    shares: tuple[float, ...]
    steps: int
    rows: Tensor
    """int64 [m]."""

    def __str__(self) -> str:
        return f"rows of {self.steps} steps of smoothing"

    @property
    def products(self) -> int:
        return self.steps

    def __call__(self, operator: Operator, columns: Tensor) -> Tensor:
        found, spare = [own * columns[self.rows] for own in self.shares], None
        for step in range(1, self.steps + 1):
            columns, spare = _hop(operator, columns, spare), columns
            rows = columns[self.rows]
            for place, own in enumerate(self.shares):
                share = (1 - own) ** step * (own if step < self.steps else 1)
                found[place].add_(rows, alpha=share)
        return torch.cat(found)


def _hop(operator: Operator, columns: Tensor, spare: Tensor | None) -> Tensor:
    """``S @ columns``; a streamed operator overwrites the columns, which nobody needs afterwards, and ``spare``."""
    return operator.consume(columns, spare) if isinstance(operator, StreamedOperator) else operator @ columns
