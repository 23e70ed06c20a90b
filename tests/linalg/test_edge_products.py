"""Products over edges with values that are differentiated, against dense matrices."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from gcond.linalg.edge_products import Pattern


@pytest.fixture(params=[0.0, 0.3, 1.0])
def present(request):
    stream = torch.Generator().manual_seed(3)
    return torch.rand(6, 6, generator=stream) < request.param


def filled(pattern: Pattern, values: torch.Tensor) -> torch.Tensor:
    dense = torch.zeros(len(values), pattern.n, pattern.n, dtype=values.dtype)
    dense[:, pattern.target, pattern.source] = values
    return dense


def test_products_are_those_of_dense_matrices(present):
    pattern = Pattern(*present.nonzero(as_tuple=True), 6)
    values = torch.randn(2, int(present.sum()), dtype=torch.float64)
    left, right = torch.randn(2, 2, 6, 3, dtype=torch.float64)
    torch.testing.assert_close(pattern.weigh(values, right), filled(pattern, values) @ right)
    products = (left @ right.mT)[:, pattern.target, pattern.source]
    torch.testing.assert_close(pattern.compare(left, right), products)


def test_transpose(present):
    pattern = Pattern(*present.nonzero(as_tuple=True), 6)
    values = torch.randn(2, int(present.sum()))
    assert torch.equal(filled(pattern.T, values[:, pattern.order]), filled(pattern, values).mT)
    assert torch.equal(values[:, pattern.order][:, pattern.T.order], values)
    assert pattern.T.T is pattern


def test_two_derivatives(present):
    pattern = Pattern(*present.nonzero(as_tuple=True), 6)
    values = torch.randn(2, int(present.sum()), dtype=torch.float64, requires_grad=True)
    left, right = (torch.randn(2, 6, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for check in (gradcheck, gradgradcheck):
        assert check(lambda d: pattern.weigh(values.detach(), d), right)
        assert check(pattern.compare, (left, right))
        if present.any():
            assert check(pattern.weigh, (values, right))
