"""Attention over the edges of a graph that stays on disk."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.graph.column_work import ColumnWork, Operator
from gcond.graph.streamed_operator import StreamedOperator
from gcond.linalg.sparse import multiply_narrow


@dataclass(frozen=True, eq=False)
class Attention(ColumnWork):
    r"""Every node's mean of its neighbours' columns and its own, weighed by one head of attention.

    .. math:: z_i' = \sum_j α_{ij} z_j, \quad α_{ij} = \mathrm{softmax}_j \, \mathrm{LeakyReLU}(\mathrm{to}_i
        + \mathrm{off}_j)

    over the edges j → i and i itself. The weights follow from two numbers a node, so that columns do not mix here
    either. An edge's weight says only that it is there.
    """

    to: Tensor
    """float32 [N]: a node's part in the scores of the edges into it."""
    off: Tensor
    """float32 [N]: its part in those of the edges from it."""
    slope: float
    """Of the LeakyReLU below zero."""

    def __str__(self) -> str:
        return "a head of attention"

    @property
    def products(self) -> int:
        return 1

    def __call__(self, operator: Operator, columns: Tensor) -> Tensor:
        assert isinstance(operator, StreamedOperator)
        mixed = torch.empty_like(columns)
        for where, rows in operator.blocks:
            to, own = self.to[where], self.off[where]
            source, offsets = rows.indices, rows.indptr.long()
            scores = self.off.index_select(0, source)
            # LeakyReLU rises, so a node's highest score is the one of its highest neighbour.
            highest = torch.segment_reduce(scores, "max", offsets=offsets, initial=-torch.inf)
            highest = F.leaky_relu(to + torch.maximum(highest, own), self.slope)
            counts = offsets.diff()
            scores += to.repeat_interleave(counts, output_size=len(scores))
            F.leaky_relu_(scores, self.slope)
            scores -= highest.repeat_interleave(counts, output_size=len(scores))
            weights = rows.with_values(scores.exp_(), symmetric=False)
            loop = (F.leaky_relu(to + own, self.slope) - highest).exp_()
            sums = multiply_narrow(weights.csr, columns).addcmul_(columns[where], loop[:, None])
            mixed[where] = sums / (weights.row_sums() + loop)[:, None]
            operator.hear(rows.nnz)
        return mixed
