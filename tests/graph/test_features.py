from __future__ import annotations

import json

import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from gcond.graph.features import SPARSE_BELOW, FeatureTransform, compact, row_normalise, standardise
from gcond.linalg.sparse import SparseMatrix


@st.composite
def matrices(draw):
    shape = draw(st.tuples(st.integers(1, 20), st.integers(1, 8)))
    stream = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    return torch.rand(shape, generator=stream) * (torch.rand(shape, generator=stream) < draw(st.floats(0, 1)))


def sparse(x):
    return SparseMatrix.from_scipy(scipy.sparse.csr_matrix(x.numpy()))


@given(matrices())
def test_row_normalise_binary_rows_as_pyg_does(x):
    # Words that are there or not: PyG counts sums below one as one, and first subtracts the least number of all.
    x = (x > 0).float()
    x[0, 0] = 0
    before = x.clone()
    expected = NormalizeFeatures()(Data(x=x.clone())).x
    dense, transform = row_normalise(x)
    torch.testing.assert_close(dense, expected)
    torch.testing.assert_close(row_normalise(sparse(x))[0].to_dense(), expected)
    assert transform == FeatureTransform("row-normalise")
    assert torch.equal(x, before)


@given(matrices())
def test_rows_sum_to_one_or_stay_zero(x):
    dense, _ = row_normalise(x)
    sums = torch.where(x.sum(1) > 0, 1.0, 0.0)
    torch.testing.assert_close(dense.sum(1), sums)
    torch.testing.assert_close(row_normalise(sparse(x))[0].to_dense(), dense)


def test_standardise_as_scikit_learn_does():
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * 3 + 5
    x[:, 2] = 7  # a constant feature
    train = torch.arange(50) % 3 == 0
    scaler = StandardScaler().fit(x[train].double().numpy())
    expected = torch.from_numpy(scaler.transform(x.double().numpy())).float()
    ours, transform = standardise(x, train)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
    assert transform.mean == pytest.approx(scaler.mean_.tolist())
    assert transform.std == pytest.approx(scaler.scale_.tolist())
    assert transform.std[2] == 1


def test_standardise_reads_training_nodes_only():
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    train = torch.arange(20) < 10
    poisoned = x.clone()
    poisoned[~train] = 1e6
    assert standardise(x, train)[1] == standardise(poisoned, train)[1]
    assert torch.equal(standardise(x, train)[0][train], standardise(poisoned, train)[0][train])


@pytest.mark.parametrize(
    "transform",
    [FeatureTransform(), FeatureTransform("row-normalise"), FeatureTransform("standardise", (1.5,), (2.0,))],
)
def test_json_and_back(transform):
    assert FeatureTransform.from_json(json.loads(json.dumps(transform.to_json()))) == transform


def test_compact():
    x = torch.zeros(10, 10)
    x[0, :9] = torch.arange(1.0, 10)
    packed = compact(x)
    assert isinstance(packed, SparseMatrix)
    assert torch.equal(packed.to_dense(), x)
    assert compact(packed) is packed
    x[1, 0] = 1  # now exactly at the limit
    assert SPARSE_BELOW == 0.1
    assert compact(x) is x
