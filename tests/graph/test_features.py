from __future__ import annotations

import json

import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler, normalize
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from gcond.errors import GcondError
from gcond.graph.feature_kinds import CHOICES, KINDS, MEANINGS
from gcond.graph.features import SPARSE_BELOW, FeatureTransform, column_scales, compact, fit_transform
from gcond.linalg.sparse import SparseMatrix


@st.composite
def matrices(draw):
    shape = draw(st.tuples(st.integers(1, 20), st.integers(1, 8)))
    stream = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    return torch.rand(shape, generator=stream) * (torch.rand(shape, generator=stream) < draw(st.floats(0, 1)))


def sparse(x):
    return SparseMatrix.from_scipy(scipy.sparse.csr_matrix(x.numpy()))


def made(kind, x, train=None, seen=None):
    """Features and the transform that made them; sparse ones come out as dense ones do."""
    train = torch.ones(len(x), dtype=torch.bool) if train is None else train
    transform = fit_transform(kind, x, seen=seen, train=train)
    result = transform.apply(x)
    of_sparse = fit_transform(kind, sparse(x), seen=seen, train=train)
    other = of_sparse.apply(sparse(x))
    torch.testing.assert_close(other.to_dense() if isinstance(other, SparseMatrix) else other, result)
    assert of_sparse.kind == transform.kind == kind
    return result, transform


@given(matrices())
def test_row_normalise_binary_rows_as_pyg_does(x):
    # Words that are there or not: PyG counts sums below one as one, and first subtracts the least number of all.
    x = (x > 0).float()
    x[0, 0] = 0
    before = x.clone()
    expected = NormalizeFeatures()(Data(x=x.clone())).x
    dense, transform = made("row-normalise", x)
    torch.testing.assert_close(dense, expected)
    assert transform == FeatureTransform("row-normalise")
    assert torch.equal(x, before)


@given(matrices())
def test_rows_sum_to_one_or_stay_zero(x):
    dense, _ = made("row-normalise", x)
    sums = torch.where(x.sum(1) > 0, 1.0, 0.0)
    torch.testing.assert_close(dense.sum(1), sums)


def test_rows_with_negative_entries_are_divided_by_their_size():
    x = torch.tensor([[1.0, -1.0], [-3.0, 1.0], [0.0, 0.0]])
    dense, _ = made("row-normalise", x)
    torch.testing.assert_close(dense, torch.tensor([[0.5, -0.5], [-0.75, 0.25], [0.0, 0.0]]))


@given(matrices())
def test_unit_rows_as_scikit_learn_does(x):
    expected = torch.from_numpy(normalize(x.double().numpy())).float()
    torch.testing.assert_close(made("unit-rows", x)[0], expected)
    torch.testing.assert_close(made("unit-rows", -x)[0], -expected)


@given(matrices())
def test_tf_idf_as_scikit_learn_does(x):
    expected = TfidfTransformer().fit_transform(scipy.sparse.csr_matrix(x.double().numpy())).toarray()
    torch.testing.assert_close(made("tf-idf", x)[0], torch.from_numpy(expected).float())


def test_tf_idf_counts_the_nodes_that_training_sees():
    x = (torch.rand(40, 6, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    seen = torch.arange(0, 40, 2)
    fitted = TfidfTransformer().fit(scipy.sparse.csr_matrix(x[seen].double().numpy()))
    expected = fitted.transform(scipy.sparse.csr_matrix(x.double().numpy())).toarray()
    result, transform = made("tf-idf", x, seen=seen)
    torch.testing.assert_close(result, torch.from_numpy(expected).float())
    poisoned = x.clone()
    poisoned[1::2] = 1
    assert made("tf-idf", poisoned, seen=seen)[1] == transform
    assert made("unit-columns", 9 * poisoned + x, seen=seen)[1] != made("unit-columns", x, seen=seen)[1]


def test_tf_idf_is_of_counts():
    x = torch.tensor([[1.0, -0.5]])
    with pytest.raises(GcondError, match="some features are negative"):
        fit_transform("tf-idf", x, seen=None, train=torch.tensor([True]))
    with pytest.raises(GcondError, match="some features are negative"):
        FeatureTransform("tf-idf", occurrences=(1, 1), rows=1).apply(sparse(x))


def test_standardise_as_scikit_learn_does():
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * 3 + 5
    x[:, 2] = 7  # a constant feature
    train = torch.arange(50) % 3 == 0
    scaler = StandardScaler().fit(x[train].double().numpy())
    expected = torch.from_numpy(scaler.transform(x.double().numpy())).float()
    ours, transform = made("standardise", x, train)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
    assert transform.mean == pytest.approx(scaler.mean_.tolist())
    assert transform.std == pytest.approx(scaler.scale_.tolist())
    assert transform.std[2] == 1


def test_standardise_reads_training_nodes_only():
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    train = torch.arange(20) < 10
    poisoned = x.clone()
    poisoned[~train] = 1e6
    ours, theirs = made("standardise", x, train), made("standardise", poisoned, train)
    assert ours[1] == theirs[1]
    assert torch.equal(ours[0][train], theirs[0][train])


@pytest.mark.parametrize("factor", [1e-25, 1e-6, 1.0, 1e6, 1e15])
def test_standardise_whatever_the_scale(factor):
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)) + 2
    x[:, 1] = 0.1  # its mean in doubles is not quite its value
    ours, transform = made("standardise", x * factor)
    torch.testing.assert_close(ours[:, ::2], made("standardise", x)[0][:, ::2], rtol=1e-4, atol=1e-4)
    assert transform.std[1] == 1


def test_unit_columns_undoes_the_scale_of_columns_and_leaves_words_alone():
    words = (torch.rand(60, 5, generator=torch.Generator().manual_seed(0)) < 0.3).float()
    words[:, 4] = 0
    factors = torch.tensor([1e-6, 1e6, 3.0, 1e-30, 1.0])
    assert made("unit-columns", words)[1].scale == (1.0,) * 5
    torch.testing.assert_close(made("unit-columns", words * factors)[0], words)
    assert column_scales(words * factors)[:4].tolist() == pytest.approx(factors[:4].tolist())


@pytest.mark.parametrize("kind", ["row-normalise", "unit-rows", "tf-idf", "standardise", "unit-columns"])
@pytest.mark.parametrize("factor", [1e-43, 1e-38, 1e30])
def test_results_are_finite_at_the_ends_of_float32(kind, factor):
    x = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 1.0, 0.0]]) * factor
    assert made(kind, x)[0].isfinite().all()


@pytest.mark.parametrize("kind", ["row-normalise", "unit-rows", "tf-idf", "unit-columns"])
def test_sparse_stays_sparse(kind):
    x = sparse(torch.eye(4))
    assert isinstance(fit_transform(kind, x, seen=None, train=torch.arange(4)).apply(x), SparseMatrix)


def test_recorded_statistics_are_used_and_must_fit():
    x = torch.rand(10, 3, generator=torch.Generator().manual_seed(0))
    for kind in ("tf-idf", "standardise", "unit-columns"):
        transform = fit_transform(kind, x, seen=None, train=torch.arange(10))
        recorded = FeatureTransform.from_json(json.loads(json.dumps(transform.to_json())))
        assert torch.equal(recorded.apply(x[:4]), transform.apply(x)[:4])
        with pytest.raises(GcondError, match="made for 3 features, and there are 2"):
            recorded.apply(x[:, :2])


def test_unknown_and_structural_kinds_are_refused_here():
    with pytest.raises(GcondError, match="did you mean 'standardise'"):
        fit_transform("standardize", torch.eye(2), seen=None, train=torch.arange(2))
    with pytest.raises(GcondError, match="made from edges"):
        FeatureTransform("structural").apply(torch.eye(2))


def test_every_kind_has_a_meaning():
    assert ("auto", *KINDS) == CHOICES == tuple(MEANINGS)


@pytest.mark.parametrize(
    "damaged", [{}, None, 3.5, {"kind": "whitened"}, {"kind": "standardise", "mean": ["a"]}, {"kind": "none", "std": 3}]
)
def test_damaged_records_are_refused(damaged):
    with pytest.raises(GcondError, match="recorded"):
        FeatureTransform.from_json(damaged)


@pytest.mark.parametrize(
    "transform",
    [
        FeatureTransform(),
        FeatureTransform("row-normalise"),
        FeatureTransform("standardise", (1.5,), (2.0,)),
        FeatureTransform("tf-idf", occurrences=(3, 0), rows=7),
        FeatureTransform("unit-columns", scale=(0.1,)),
    ],
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
