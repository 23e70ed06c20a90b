from __future__ import annotations

import pytest
import scipy.sparse
import torch

from gcond.linalg import random_projection
from gcond.linalg.random_projection import WIDTH, projected_features
from gcond.linalg.sparse import SparseMatrix


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def sparse(rows=60, columns=3000, seed=0):
    drawn = scipy.sparse.random(rows, columns, 0.05, format="csr", dtype="float32", random_state=seed)
    return SparseMatrix.from_scipy(drawn)


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(random_projection, "MOST_ENTRIES", 100_000)
    monkeypatch.setattr(random_projection, "MOST_SIDE", 40)


def test_small_matrices_are_left_as_they_are():
    x = sparse()
    assert torch.equal(projected_features(x, stream()), x.to_dense())
    rows = torch.randn(5, 9)
    assert projected_features(rows, stream()) is rows


def test_large_sparse_ones_are_folded_and_inner_products_stay(small_limits):
    x = sparse()
    folded = projected_features(x, stream())
    assert folded.shape == (60, WIDTH)
    unit = torch.nn.functional.normalize(x.to_dense())
    angles = torch.nn.functional.normalize(folded)
    off = angles @ angles.T - unit @ unit.T
    assert float(off.square().mean().sqrt()) < 1.2 / WIDTH**0.5
    assert float(off.abs().max()) < 5 / WIDTH**0.5
    lengths = folded.norm(dim=1) / x.to_dense().norm(dim=1)
    assert float((lengths - 1).abs().max()) < 5 / WIDTH**0.5


def test_folding_is_one_linear_map_that_the_stream_decides(small_limits):
    x = sparse()
    folded = projected_features(x, stream(4))
    assert torch.equal(folded, projected_features(x, stream(4)))
    assert not torch.equal(folded, projected_features(x, stream(5)))
    rows = torch.tensor([3, 7])
    twice = SparseMatrix.from_scipy(scipy.sparse.vstack([x.to_scipy()] * 2))
    assert torch.allclose(projected_features(twice, stream(4))[rows + 60], folded[rows], atol=1e-6)


def test_few_columns_are_never_folded(small_limits):
    x = sparse(1000, WIDTH)
    assert torch.equal(projected_features(x, stream(), labelled=1000), x.to_dense())


def test_what_is_dense_already_is_folded_only_to_be_decomposed(small_limits):
    x = sparse().to_dense()
    assert projected_features(x, stream()) is x
    assert projected_features(x, stream(), labelled=40) is x
    folded = projected_features(x, stream(), labelled=41)
    assert torch.allclose(folded, projected_features(sparse(), stream()), atol=1e-5)


def test_more_columns_than_asked_for_are_folded_into_so_many():
    x = torch.randn(6, 40, generator=stream())
    assert projected_features(x, stream(), within=40) is x
    folded = projected_features(x, stream(), within=9)
    assert folded.shape == (6, 9)
    signs = folded.T @ torch.linalg.pinv(x).T  # [9, 40] on the rows' span
    assert torch.allclose(x @ signs.T, folded, atol=1e-4)
    many = projected_features(x.repeat(1, 100), stream(), within=2000)
    assert torch.allclose(many.norm(dim=1), x.repeat(1, 100).norm(dim=1), rtol=0.1)
