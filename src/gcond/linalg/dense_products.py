"""Products of dense matrices by the quickest kernel at hand.

PyTorch multiplies single-precision matrices by MKL, which on an AMD processor leaves half of each wide vector unused.
oneDNN, which PyTorch has for its layers, does not: one thread of such a processor multiplies [70, 1433] by [1433, 256]
2.2 times as fast. Where oneDNN is not built in, and for any other type or
device, it is the plain product; the two agree to rounding.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Larger matrices are not copied to have their transpose contiguous.
_KEPT_TRANSPOSE_BYTES = 64 * 2**20


def multiply_dense(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right``, [n, m] by [m, k], without a gradient."""
    if left.device.type != "cpu" or left.dtype != torch.float32 or right.dtype != torch.float32:
        return left @ right
    if left.dim() != 2 or right.dim() != 2 or 0 in (*left.shape, *right.shape) or not _has_onednn():
        return left @ right
    product: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.mT, None, "none", [], "")
    return product


class FixedMatrix:
    """A dense matrix [n, m] that does not change while what it multiplies learns.

    ``M @ W`` is differentiable in W, once: that is what training asks for, and millions of times.
    """

    def __init__(self, values: Tensor) -> None:
        self.values = values.detach().contiguous()

    @property
    def shape(self) -> torch.Size:
        return self.values.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    @cached_property
    def transposed(self) -> Tensor:
        """[m, n], contiguous while that costs little memory: a gradient goes through it."""
        small = self.values.nbytes <= _KEPT_TRANSPOSE_BYTES
        return self.values.mT.contiguous() if small else self.values.mT

    def __matmul__(self, weight: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return multiply_dense(self.values, weight)
        product: Tensor = _FixedProduct.apply(weight, self)  # type: ignore[no-untyped-call]
        return product

    def __repr__(self) -> str:
        return f"FixedMatrix(shape={tuple(self.shape)}, dtype={self.dtype})"


class _FixedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, matrix: FixedMatrix) -> Tensor:
        ctx.matrix = matrix
        return multiply_dense(matrix.values, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return multiply_dense(ctx.matrix.transposed, grad), None


@cache
def _has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
