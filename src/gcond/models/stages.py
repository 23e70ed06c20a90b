"""A forward pass as stages, for graphs on which a matrix [N, hidden] is too large to be held.

What a model does to the scores of all nodes is either row-wise (weights, biases, activations) or a product with the
graph, in which columns do not mix. So a pass is a list of both kinds: row-wise stages go over blocks of rows, and
products with the graph over groups of columns. :mod:`gcond.training.streamed_scores` carries them out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

from gcond.graph.column_work import ColumnWork
from gcond.graph.inputs import Form


@dataclass(frozen=True, eq=False)
class Product:
    """``S^hops X W``: features, propagated or as they are, times a first weight [d, w]."""

    weight: Tensor
    hops: int = 0
    form: Form = "gcn"

    @property
    def width(self) -> int:
        return self.weight.shape[1]


@dataclass(frozen=True, eq=False)
class Local:
    """A function of every row on its own."""

    function: Callable[[Tensor], Tensor]
    """Rows [b, w] to rows [b, ``width``]."""
    width: int
    """Columns of what comes out."""
    widest: int
    """Columns of the widest matrix within the function, by which blocks of rows are cut."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Products with the adjacency form S on the first ``columns`` columns; further ones stay as they are."""

    work: ColumnWork
    columns: int
    form: Form = "gcn"


@dataclass(frozen=True, eq=False)
class Attend:
    """Attention, each of the heads on its own: from ``[z | to | off]`` to the weighed sums of z.

    z is [N, heads · k], and ``to`` and ``off`` are [N, heads]: what a node's score is made of as the target and as the
    source of an edge (:class:`~gcond.models.streamed_attention.Attention`).
    """

    heads: int
    slope: float
    """Of the LeakyReLU below zero."""


Stage: TypeAlias = Local | Spread | Attend


@dataclass(frozen=True, eq=False)
class Stages:
    """A forward pass: the ``first`` products side by side, ``then`` one stage after the other, to class scores [N, C].

    Two row-wise stages that follow each other are one function; so the state that is ever written down is what a
    product with the graph takes and what it makes.
    """

    first: tuple[Product, ...]
    then: tuple[Stage, ...]
