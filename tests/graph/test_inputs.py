"""What models read: propagated features and edges, the same from every form of adjacency."""

from __future__ import annotations

import pytest
import scipy.sparse
import torch

from gcond.graph.inputs import Chain, Inputs
from gcond.linalg.sparse import Identity, SparseMatrix

FORMS = ["gcn", "mean", "laplacian"]


@pytest.fixture
def x():
    stream = torch.Generator().manual_seed(0)
    return torch.randn(8, 5, generator=stream, dtype=torch.float64)


@pytest.fixture
def dense():
    stream = torch.Generator().manual_seed(1)
    weight = torch.rand(8, 8, generator=stream, dtype=torch.float64)
    return torch.where(weight < 0.4, weight, 0.0).fill_diagonal_(0)


def as_sparse(matrix):
    return SparseMatrix.from_scipy(scipy.sparse.csr_matrix(matrix.numpy()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("runs", [(), (2,)])
def test_features_are_the_same_product_from_every_form(form, hops, runs, x, dense):
    weight = torch.randn(*runs, 5, 3, dtype=torch.float64)
    operator = getattr(Inputs(x, dense), form)
    expected = torch.linalg.matrix_power(operator, hops) @ x @ weight
    for adjacency in (dense, as_sparse(dense)):
        for features in (x, as_sparse(x)):
            found = Inputs(features, adjacency).features(form, hops)
            torch.testing.assert_close(found @ weight, expected)


@pytest.mark.parametrize("form", FORMS)
def test_dense_features_are_propagated_once_and_sparse_ones_never_filled_in(form, x, dense):
    inputs = Inputs(x, dense)
    assert inputs.features(form, 2) is inputs.features(form, 2)
    assert getattr(inputs, form) is getattr(inputs, form)
    chain = Inputs(as_sparse(x), dense).features(form, 2)
    assert isinstance(chain, Chain)
    assert isinstance(chain.x, SparseMatrix)


@pytest.mark.parametrize("form", FORMS)
def test_identity_propagates_as_its_dense_self(form, x):
    bare = Inputs(x, Identity()).features(form, 3)
    torch.testing.assert_close(bare, Inputs(x, torch.eye(8, dtype=torch.float64)).features(form, 3))


def test_edges_are_those_of_positive_weight_and_one_loop_a_node(x, dense):
    dense[3, 4] = 0.0
    with_loop = dense.clone()
    with_loop[2, 2] = 0.7
    stored_zero = as_sparse(with_loop)
    stored_zero.values[0] = 0.0  # an entry that is stored but weighs nothing is no edge
    emptied = with_loop.clone()
    emptied[stored_zero.row_index[0], stored_zero.indices[0].long()] = 0
    for adjacency, weights in ((with_loop, with_loop), (as_sparse(with_loop), with_loop), (stored_zero, emptied)):
        inputs = Inputs(x, adjacency)
        target, source = inputs.edges
        assert bool((target.diff() >= 0).all())
        expected = {tuple(pair) for pair in weights.nonzero().tolist()} | {(i, i) for i in range(8)}
        assert sorted(zip(target.tolist(), source.tolist(), strict=True)) == sorted(expected)
        assert torch.equal(inputs.edge_mask == 0, inputs.pattern.csr(torch.ones(len(target))).to_dense() == 1)
        assert torch.isneginf(inputs.edge_mask[inputs.edge_mask != 0]).all()
    assert Inputs(x, Identity()).edges[0].tolist() == Inputs(x, Identity()).edges[1].tolist() == list(range(8))


def test_sizes_and_device(x, dense):
    inputs = Inputs(as_sparse(x), as_sparse(dense))
    assert (inputs.num_nodes, inputs.num_features) == (8, 5)
    assert inputs.to("cpu") is inputs


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_chain_s_dense_form_is_the_product(form, hops, x, dense):
    expected = torch.linalg.matrix_power(getattr(Inputs(x, dense), form), hops) @ x
    for adjacency in (dense, as_sparse(dense)):
        chain = Inputs(as_sparse(x), adjacency).features(form, hops)
        torch.testing.assert_close(chain.dense(), expected)
        assert chain.dense().dtype == x.dtype


def test_a_chain_of_different_operators_multiplies_in_order(x, dense):
    """As the features of a few rows have it: square matrices first, the rows asked for last."""
    rows = torch.tensor([6, 1])
    chain = Chain((as_sparse(dense), as_sparse(2 * dense.T), as_sparse(dense[rows])), as_sparse(x))
    torch.testing.assert_close(chain.dense(), dense[rows] @ (2 * dense.T) @ dense @ x)
    torch.testing.assert_close(chain.dense(), chain @ torch.eye(5, dtype=torch.float64))


def test_detached_has_the_same_numbers_and_no_way_back(x, dense):
    inputs = Inputs(x.clone().requires_grad_(), dense.clone().requires_grad_())
    for form in FORMS:
        assert inputs.features(form, 2).requires_grad
        found = inputs.detached().features(form, 2)
        assert not found.requires_grad
        torch.testing.assert_close(found, inputs.features(form, 2).detach(), rtol=0, atol=0)
    assert inputs.x.requires_grad
    assert inputs.adjacency.requires_grad


def test_detached_takes_sparse_parts_and_identities_as_they_are(x, dense):
    sparse = Inputs(as_sparse(x), as_sparse(dense))
    assert sparse.detached().x is sparse.x
    assert sparse.detached().adjacency is sparse.adjacency
    assert Inputs(x, Identity()).detached().adjacency == Identity()


@pytest.mark.parametrize("form", ["gcn", "mean", "laplacian"])
def test_with_loops_a_node_is_one_of_its_neighbours(form, x, dense):
    loops = torch.eye(len(dense), dtype=dense.dtype)
    with_loops = Inputs(x, dense, loops=True)
    expected = dense if form == "gcn" else dense + loops  # Â has them anyhow, once
    torch.testing.assert_close(getattr(with_loops, form), getattr(Inputs(x, expected), form))
    torch.testing.assert_close(getattr(with_loops.detached(), form), getattr(with_loops, form))
    sparse = getattr(Inputs(x, as_sparse(dense), loops=True), form)
    torch.testing.assert_close(sparse.to_dense(), getattr(with_loops, form))
    empty = getattr(Inputs(x, torch.zeros_like(dense), loops=True), form)
    none = getattr(Inputs(x, Identity(), loops=True), form)
    torch.testing.assert_close(empty, none.scale * loops)
