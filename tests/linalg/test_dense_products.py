from __future__ import annotations

import pytest
import torch

from gcond.linalg import dense_products
from gcond.linalg.dense_products import FixedMatrix, multiply_dense


def drawn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (13, 37, 5), (70, 211, 33), (3, 0, 4), (0, 5, 4), (5, 4, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_quick_product_is_the_product(sizes, dtype):
    n, m, k = sizes
    left, right = drawn(n, m, dtype=dtype), drawn(m, k, seed=1, dtype=dtype)
    exact = left.double() @ right.double()
    by_columns = right.mT.contiguous().mT
    for one, other in ((left, right), (left, by_columns), (left.mT.contiguous().mT, right), (left[:, :], by_columns)):
        product = multiply_dense(one, other)
        assert product.dtype == dtype
        torch.testing.assert_close(product.double(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_a_fixed_matrix_gives_the_gradient_of_the_plain_product(monkeypatch, onednn, kept):
    if not onednn:
        monkeypatch.setattr(dense_products, "_has_onednn", lambda: False)
    if not kept:
        monkeypatch.setattr(dense_products, "_KEPT_TRANSPOSE_BYTES", 0)
    matrix, weight, ahead = drawn(17, 40), drawn(40, 9, seed=1).requires_grad_(), drawn(17, 9, seed=2)
    fixed = FixedMatrix(matrix)
    product = fixed @ weight
    (gradient,) = torch.autograd.grad(product, weight, ahead)
    torch.testing.assert_close(product, matrix @ weight, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradient, matrix.T @ ahead, rtol=1e-4, atol=1e-4)
    assert gradient.is_contiguous()
    with torch.no_grad():
        assert torch.equal(fixed @ weight, product)  # a look has the bits of a step
    assert (fixed.shape, fixed.dtype, fixed.device) == (matrix.shape, matrix.dtype, matrix.device)


def test_a_second_derivative_is_refused_and_not_wrong():
    weight = drawn(4, 3).requires_grad_()
    (gradient,) = torch.autograd.grad((FixedMatrix(drawn(5, 4)) @ weight).square().sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
