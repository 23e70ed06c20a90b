"""Sparse products and normalised adjacencies, against SciPy and PyG."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import get_laplacian, to_dense_adj

from gcond.linalg.sparse import (
    Identity,
    SparseMatrix,
    _SparseProduct,
    gcn_normalise,
    mean_normalise,
    multiply,
    multiply_narrow,
    scaled_laplacian,
    take_rows,
)


@st.composite
def matrices(draw, square: bool = False):
    """SciPy CSR matrices with empty rows and columns, sometimes without any entry."""
    rows = draw(st.integers(1, 12))
    columns = rows if square else draw(st.integers(1, 12))
    density = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    dense = rng.uniform(0.01, 2, (rows, columns)) * (rng.random((rows, columns)) < density)
    return scipy.sparse.csr_matrix(dense.astype(dtype))


def graph(directed: bool = False, n: int = 17, seed: int = 0) -> torch.Tensor:
    """A dense weighted adjacency (row = target) with two isolated nodes and no self-loop."""
    rng = np.random.default_rng(seed)
    dense = rng.uniform(0, 2, (n, n)) * (rng.random((n, n)) < 0.25)
    dense[-2:], dense[:, -2:] = 0, 0
    np.fill_diagonal(dense, 0)
    return torch.from_numpy(dense if directed else np.triu(dense) + np.triu(dense).T)


def sparse(dense: torch.Tensor) -> SparseMatrix:
    symmetric = dense.shape[0] == dense.shape[1] and torch.equal(dense, dense.T)
    return SparseMatrix.from_scipy(scipy.sparse.csr_matrix(dense.numpy()), symmetric=symmetric)


def edges(dense: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    target, source = dense.nonzero(as_tuple=True)
    return torch.stack([source, target]), dense[dense != 0]


@given(matrices(), st.integers(1, 5), st.integers(0, 3))
def test_product_is_scipys(matrix, columns, runs):
    shape = (*([runs] if runs else []), matrix.shape[1], columns)
    dense = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    dense = dense.to(torch.from_numpy(matrix.data).dtype)
    found = SparseMatrix.from_scipy(matrix) @ dense
    torch.testing.assert_close(found, torch.from_numpy(matrix.toarray()) @ dense, rtol=1e-5, atol=1e-6)
    assert found.dtype == dense.dtype


@given(matrices())
def test_transpose_and_conversions(matrix):
    ours = SparseMatrix.from_scipy(matrix)
    expected = torch.from_numpy(matrix.toarray())
    assert ours.shape == matrix.shape
    assert ours.nnz == matrix.nnz
    assert torch.equal(ours.to_dense(), expected)
    assert torch.equal(ours.T.to_dense(), expected.T)
    assert ours.T.T is ours
    assert (ours.to_scipy() != matrix).nnz == 0
    assert ours.indices.dtype == ours.indptr.dtype == torch.int32
    target = torch.repeat_interleave(torch.arange(matrix.shape[0]), torch.from_numpy(np.diff(matrix.indptr)).long())
    assert torch.equal(ours.row_index, target)
    torch.testing.assert_close(ours.row_sums(), expected.sum(1))
    twice = ours.with_values(2 * ours.values, symmetric=False)
    assert torch.equal(twice.to_dense(), 2 * expected)
    assert ours.to(dtype=torch.float64).dtype == torch.float64
    held = sum(part.nbytes for part in (ours.indptr, ours.indices, ours.values))
    assert held == 4 * (len(matrix.indptr) + matrix.nnz) + matrix.data.nbytes


@given(matrices(square=True), st.data())
def test_rows_and_submatrix(matrix, data):
    n = matrix.shape[0]
    index = torch.tensor(data.draw(st.lists(st.integers(0, n - 1), max_size=n)), dtype=torch.long)
    ours, dense = SparseMatrix.from_scipy(matrix), torch.from_numpy(matrix.toarray())
    assert torch.equal(ours.rows(index).to_dense(), dense[index])
    assert torch.equal(take_rows(ours, index).to_dense(), take_rows(dense, index))
    distinct = index.unique()
    assert torch.equal(ours.submatrix(distinct).to_dense(), dense[distinct][:, distinct])


def test_submatrix_of_a_symmetric_matrix_stays_symmetric():
    ours = sparse(graph())
    part = ours.submatrix(torch.tensor([5, 0, 9]))
    assert part.symmetric
    assert torch.equal(part.to_dense(), part.to_dense().T)


def test_from_scipy_sums_duplicates_and_leaves_the_original_alone():
    given_ = scipy.sparse.csr_matrix(
        (np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2)
    )
    assert SparseMatrix.from_scipy(given_).to_dense().tolist() == [[0, 3], [5, 0]]
    assert given_.data.tolist() == [1, 2, 5]


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("runs", [(), (3,)])
def test_product_has_two_derivatives(symmetric, runs):
    matrix = sparse(graph(directed=not symmetric, n=6))
    dense = torch.randn(*runs, 6, 2, dtype=torch.float64, requires_grad=True)

    def function(d):
        return (matrix @ d).tanh()

    assert gradcheck(function, dense)
    assert gradgradcheck(function, dense)


def test_product_under_vmap():
    matrix = sparse(graph(directed=True))
    dense = torch.randn(3, 17, 4, 2, dtype=torch.float64)
    expected = torch.stack([matrix @ dense[..., i] for i in range(2)])
    assert torch.equal(torch.func.vmap(lambda d: matrix @ d, in_dims=3)(dense), expected)


def test_products_with_the_identity():
    dense = torch.randn(3, 4, 2)
    assert torch.equal(Identity() @ dense, dense)
    assert torch.equal(Identity(-1.0) @ dense, -dense)


@pytest.mark.parametrize("directed", [False, True])
def test_gcn_normalisation_is_pygs(directed):
    dense = graph(directed)
    index, weight = gcn_norm(*edges(dense), num_nodes=len(dense))
    expected = to_dense_adj(index, edge_attr=weight, max_num_nodes=len(dense))[0].T
    torch.testing.assert_close(gcn_normalise(dense), expected)
    torch.testing.assert_close(gcn_normalise(sparse(dense)).to_dense(), expected)


@pytest.mark.parametrize("directed", [False, True])
def test_mean_rows_sum_to_one_or_nothing(directed):
    dense = graph(directed)
    degree = dense.sum(1)
    expected = torch.from_numpy(scipy.sparse.diags(1 / degree.clamp(min=1e-300).numpy()) @ dense.numpy())
    for found in (mean_normalise(dense), mean_normalise(sparse(dense)).to_dense()):
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(found.sum(1), (degree > 0).double())


def test_scaled_laplacian_is_pygs():
    dense = graph()
    index, weight = get_laplacian(*edges(dense), normalization="sym", num_nodes=len(dense))
    expected = to_dense_adj(index, edge_attr=weight, max_num_nodes=len(dense))[0] - torch.eye(len(dense))
    torch.testing.assert_close(scaled_laplacian(dense), expected)
    torch.testing.assert_close(scaled_laplacian(sparse(dense)).to_dense(), expected)


FORMS = [gcn_normalise, mean_normalise, scaled_laplacian]


@given(matrices(square=True), st.sampled_from(FORMS))
def test_sparse_and_dense_forms_agree(matrix, form):
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    dense = torch.from_numpy(matrix.toarray())
    found = form(SparseMatrix.from_scipy(matrix))
    torch.testing.assert_close(found.to_dense(), form(dense), rtol=1e-5, atol=1e-6)
    assert found.dtype == dense.dtype
    x = torch.ones(len(dense), 2, dtype=dense.dtype)
    torch.testing.assert_close(found.T @ x, form(dense).T @ x, rtol=1e-5, atol=1e-5)  # a wrong ``symmetric`` shows here


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_dense_adjacency_have_two_derivatives(form):
    edge = graph(n=7) > 0
    weight = graph(n=7)[edge].requires_grad_()

    def function(w):
        return form(torch.zeros(7, 7, dtype=torch.float64).masked_scatter(edge, w))

    assert gradcheck(function, weight)
    assert gradgradcheck(function, weight)


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_the_identity_are_those_of_its_dense_self(form):
    found = form(Identity())
    x = torch.randn(5, 2)
    torch.testing.assert_close(found @ x, form(torch.eye(5)) @ x)


@pytest.mark.parametrize("form", FORMS)
def test_forms_leave_the_adjacency_alone(form):
    dense = graph()
    matrix = sparse(dense)
    form(matrix)
    form(dense)
    assert torch.equal(matrix.to_dense(), graph())
    assert torch.equal(dense, graph())


@pytest.mark.parametrize("shape", [(17, 5), (3, 17, 5)])
def test_outside_autograd_the_product_is_the_kernel_alone(shape, monkeypatch):
    """Bit for bit the same, without an autograd function around it; inside it with one."""
    matrix = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(graph().float().numpy()))
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    calls = []
    apply = _SparseProduct.apply
    monkeypatch.setattr(_SparseProduct, "apply", lambda *args: calls.append(1) or apply(*args))
    with torch.no_grad():
        plain = matrix @ x.clone().requires_grad_()
    assert calls == []
    followed = matrix @ x.clone().requires_grad_()
    assert followed.requires_grad
    assert torch.equal(followed, plain)
    assert len(calls) == 1


@pytest.mark.parametrize("columns", [1, 8, 64, 65])
def test_a_product_of_few_columns_is_the_same(columns):
    matrix = sparse((graph(directed=True, n=40) * torch.rand(40, 40)).float())
    x = torch.randn(40, columns)
    torch.testing.assert_close(multiply_narrow(matrix.csr, x), multiply(matrix.csr, x))


@pytest.mark.parametrize("columns", [1, 8, 24, 64])
def test_numbers_of_a_column_do_not_depend_on_those_beside_it(columns):
    matrix = sparse((graph(directed=True, n=40) * torch.rand(40, 40)).float())
    x = torch.randn(40, 100)
    assert torch.equal(matrix @ x[:, :columns].contiguous(), (matrix @ x)[:, :columns])


@pytest.mark.parametrize("directed", [False, True])
def test_a_narrow_matrix_is_the_same_there_and_back(directed):
    plain = graph(directed=directed, n=40).double()
    matrix = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(plain.numpy()), symmetric=not directed)
    x = torch.randn(40, 8, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(matrix.narrow @ x, plain @ x)
    torch.testing.assert_close(matrix.narrow.T @ x, plain.T @ x)
    assert torch.autograd.gradcheck(lambda columns: matrix.narrow @ columns, x)
    assert matrix.narrow is matrix.narrow
