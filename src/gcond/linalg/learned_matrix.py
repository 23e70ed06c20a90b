"""Sparse matrices whose numbers are computed: a learned A' that has weights on some pairs of nodes alone."""

from __future__ import annotations

import torch
from torch import Tensor

from gcond.linalg.edge_products import Pattern
from gcond.linalg.sparse import SparseMatrix


class LearnedMatrix(SparseMatrix):
    """The numbers ``values`` [E] at the places of ``pattern``, which has all of the diagonal: n × n.

    Everything that is made of it by products, sums of rows and scaling is differentiable in the numbers as often as
    one likes, as it is of a dense tensor. A' itself has 0 on its diagonal; a place for every self-loop is there so that
    ``A' + I`` has the same pattern.
    """

    def __init__(self, pattern: Pattern, values: Tensor, *, symmetric: bool = False) -> None:
        self.pattern = pattern
        self.symmetric = symmetric
        self._values = values

    @property
    def csr(self) -> Tensor:
        return self.pattern.csr(self._values.detach())

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def indptr(self) -> Tensor:
        return self.pattern.offsets

    @property
    def indices(self) -> Tensor:
        return self.pattern.source

    @property
    def row_index(self) -> Tensor:
        return self.pattern.target

    @property
    def shape(self) -> tuple[int, int]:
        return (self.pattern.n, self.pattern.n)

    @property
    def dtype(self) -> torch.dtype:
        return self._values.dtype

    @property
    def device(self) -> torch.device:
        return self._values.device

    @property
    def T(self) -> LearnedMatrix:  # noqa: N802 (the name every matrix library uses)
        return self if self.symmetric else LearnedMatrix(self.pattern.T, self._values[self.pattern.order])

    def row_sums(self) -> Tensor:
        return self._values.new_zeros(self.pattern.n).index_add(0, self.pattern.target, self._values)

    def with_values(self, values: Tensor, *, symmetric: bool) -> LearnedMatrix:
        return LearnedMatrix(self.pattern, values, symmetric=symmetric)

    def with_loops(self) -> LearnedMatrix:
        return self.with_values(self._values + self.pattern.diagonal.to(self.dtype), symmetric=self.symmetric)

    def scaled_on_both_sides(self, scale: Tensor) -> LearnedMatrix:
        factors = scale.index_select(0, self.pattern.target) * scale.index_select(0, self.pattern.source)
        return self.with_values(factors * self._values, symmetric=self.symmetric)

    def detach(self) -> LearnedMatrix:
        return self.with_values(self._values.detach(), symmetric=self.symmetric)

    def above(self, least: float, less: float = 0.0) -> SparseMatrix:
        """The entries above ``least``, each less ``less``, with no place for any other and no way back to theirs."""
        values = self._values.detach()
        kept = values > least
        offsets = torch.zeros_like(self.pattern.offsets)
        offsets[1:] = torch.bincount(self.pattern.target[kept], minlength=self.pattern.n).cumsum(0)
        parts = (offsets, self.pattern.source[kept], values[kept] - less)
        return SparseMatrix.from_parts(*parts, self.shape, symmetric=self.symmetric)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> SparseMatrix:
        return SparseMatrix.from_parts(
            self.indptr, self.indices, self._values.detach(), self.shape, symmetric=self.symmetric
        ).to(device, dtype)

    def __matmul__(self, dense: Tensor) -> Tensor:
        if dense.dim() == 2:
            return self.pattern.weigh(self._values[None], dense[None])[0]
        return self.pattern.weigh(self._values.expand(len(dense), -1), dense)

    def __repr__(self) -> str:
        return f"LearnedMatrix(shape={self.shape}, nnz={self.nnz}, dtype={self.dtype})"
