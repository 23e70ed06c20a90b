"""Products over the edges of a graph whose values are computed, and may be differentiated.

:class:`gcond.linalg.sparse.SparseMatrix` has fixed numbers; attention has one number per edge that depends on
the weights. The two products here are each other's derivatives, so any order of derivative exists, and
neither makes a tensor of edges × width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gcond.linalg.sparse import SparseMatrix, multiply


class Pattern:
    """The stored entries of an n × n matrix: ``target`` (row) and ``source`` (column), int64 [E] by target."""

    def __init__(self, target: Tensor, source: Tensor, n: int) -> None:
        self.target = target
        self.source = source
        self.n = n
        self.offsets = torch.zeros(n + 1, dtype=torch.long, device=target.device)
        self.offsets[1:] = torch.bincount(target, minlength=n).cumsum(0)
        ones = torch.ones(1, device=target.device).expand(len(target))
        self._csr = SparseMatrix.from_parts(self.offsets, source, ones, (n, n)).csr

    @cached_property
    def order(self) -> Tensor:
        """int64 [E]: the entries by source, as :attr:`T` stores them."""
        return torch.argsort(self.source, stable=True)

    @cached_property
    def T(self) -> Pattern:  # noqa: N802 (the name every matrix library uses)
        transposed = Pattern(self.source[self.order], self.target[self.order], self.n)
        transposed.__dict__["T"] = self
        transposed.__dict__["order"] = torch.argsort(self.order)
        return transposed

    @cached_property
    def diagonal(self) -> Tensor:
        """bool [E]: which entries are on the diagonal."""
        return self.target == self.source

    def weigh(self, values: Tensor, dense: Tensor) -> Tensor:
        """``Σ_e values[e] · dense[source_e]`` into ``target_e``: [H, E] and [H, n, k] to [H, n, k]."""
        product: Tensor = _Weigh.apply(values, dense, self)  # type: ignore[no-untyped-call]
        return product

    def compare(self, left: Tensor, right: Tensor) -> Tensor:
        """``left[target_e] · right[source_e]`` for every entry: [H, n, k] twice to [H, E]."""
        product: Tensor = _Compare.apply(left, right, self)  # type: ignore[no-untyped-call]
        return product

    def csr(self, values: Tensor) -> Tensor:
        """The matrix that stores these numbers [E]."""
        return torch.sparse_csr_tensor(
            self._csr.crow_indices(), self._csr.col_indices(), values, (self.n, self.n), check_invariants=False
        )


class _EdgeProduct(torch.autograd.Function):
    """The base of the two products: each is remembered by its two tensors and the pattern."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Pattern], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.pattern = inputs[2]


class _Weigh(_EdgeProduct):
    @staticmethod
    def forward(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        return torch.stack([multiply(pattern.csr(v), d) for v, d in zip(values, dense, strict=True)])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        values, dense = ctx.saved_tensors
        pattern, (for_values, for_dense, _) = ctx.pattern, ctx.needs_input_grad
        to_values = pattern.compare(grad, dense) if for_values else None
        return to_values, pattern.T.weigh(values.index_select(-1, pattern.order), grad) if for_dense else None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, values: Tensor, dense: Tensor, pattern: Pattern) -> tuple[Tensor, int]:
        return _batched(pattern.weigh, info.batch_size, in_dims, values, dense), 0


class _Compare(_EdgeProduct):
    @staticmethod
    def forward(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
        blank = pattern.csr(left.new_zeros(len(pattern.source)))
        pairs = zip(left, right, strict=True)
        return torch.stack([torch.sparse.sampled_addmm(blank, a, b.mT, beta=0.0).values() for a, b in pairs])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        left, right = ctx.saved_tensors
        pattern, (for_left, for_right, _) = ctx.pattern, ctx.needs_input_grad
        to_left = pattern.weigh(grad, right) if for_left else None
        return to_left, pattern.T.weigh(grad.index_select(-1, pattern.order), left) if for_right else None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, left: Tensor, right: Tensor, pattern: Pattern) -> tuple[Tensor, int]:
        return _batched(pattern.compare, info.batch_size, in_dims, left, right), 0


def _batched(
    product: Callable[[Tensor, Tensor], Tensor], size: int, in_dims: tuple[int | None, ...], *tensors: Tensor
) -> Tensor:
    """``product`` over one more leading axis, counted among the heads."""
    first, second = (
        (tensor.expand(size, *tensor.shape) if at is None else tensor.movedim(at, 0)).flatten(0, 1)
        for tensor, at in zip(tensors, in_dims[:2], strict=True)
    )
    return torch.unflatten(product(first, second), 0, (size, -1))
