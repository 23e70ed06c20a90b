"""What makes A'."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from gcond.linalg.sparse import Identity
from gcond.matching.sparsification import sparsify
from gcond.matching.structure import FreeStructure, NoStructure, PairwiseMLP

FEATURES = 5
MADE = [
    PairwiseMLP(hidden=4),
    PairwiseMLP(hidden=4, symmetric=False),
    FreeStructure(),
    FreeStructure(symmetric=False),
]


def nodes(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, FEATURES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def phi_of(structure, n: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Φ as it might be after some steps, in float64."""
    stream = torch.Generator().manual_seed(seed)
    fresh = structure.init(n, FEATURES, stream)
    return {key: (tensor + 0.3 * torch.randn(tensor.shape, generator=stream)).double() for key, tensor in fresh.items()}


@pytest.mark.parametrize("structure", MADE, ids=repr)
@given(n=st.integers(2, 9), seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_weights_from_0_to_1_and_no_self_loops(structure, n, seed):
    adjacency = structure.adjacency(phi_of(structure, n, seed), nodes(n, seed))
    assert adjacency.shape == (n, n)
    assert adjacency.diagonal().eq(0).all()
    off = adjacency[~torch.eye(n, dtype=torch.bool)]
    assert ((off > 0) & (off < 1)).all()


@pytest.mark.parametrize("structure", MADE, ids=repr)
def test_symmetric_where_it_is_said(structure):
    adjacency = structure.adjacency(phi_of(structure, 7), nodes(7))
    assert torch.equal(adjacency, adjacency.T) == structure.symmetric


@pytest.mark.parametrize("structure", MADE[:2], ids=repr)
@given(order=st.permutations(range(7)), seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_the_order_of_the_nodes_does_not_matter(structure, order, seed):
    phi, x = phi_of(structure, 7, seed), nodes(7, seed)
    expected = structure.adjacency(phi, x)[order][:, order]
    torch.testing.assert_close(structure.adjacency(phi, x[order]), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("structure", MADE[:2], ids=repr)
def test_equal_nodes_have_equal_edges(structure):
    x = nodes(6)
    x[4] = x[1]
    adjacency = structure.adjacency(phi_of(structure, 6), x)
    others = [0, 2, 3, 5]
    torch.testing.assert_close(adjacency[1, others], adjacency[4, others])
    torch.testing.assert_close(adjacency[others, 1], adjacency[others, 4])


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("memory", [1, 2 * 5 * 7 * 4 * 8, 3 * 5 * 7 * 4 * 8, 10**9])
def test_blocks_equal_the_whole(memory, symmetric):
    structure = PairwiseMLP(hidden=4, symmetric=symmetric)
    blocks = PairwiseMLP(hidden=4, symmetric=symmetric, memory=memory)
    assert blocks.rows(7, 8) == {1: 1, 2240: 2, 3360: 3, 10**9: 10**9 // 1120}[memory]
    found = []
    for one in (structure, blocks):
        phi, x = phi_of(structure, 7), nodes(7).requires_grad_()
        for tensor in phi.values():
            tensor.requires_grad_()
        adjacency = one.adjacency(phi, x)
        found.append((adjacency, *torch.autograd.grad(adjacency.square().sum(), [x, *phi.values()])))
    for whole, part in zip(*found, strict=True):
        torch.testing.assert_close(part, whole, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("memory", [None, 1])
@pytest.mark.parametrize("symmetric", [True, False])
def test_finished_it_makes_the_same_graph_again(symmetric, memory):
    structure = PairwiseMLP(hidden=4, symmetric=symmetric, memory=memory)
    phi, x = phi_of(structure, 6), nodes(6)
    kept = structure.finish(phi, x)
    assert set(kept) == set(phi) | {"mean0", "variance0", "mean1", "variance1"}
    torch.testing.assert_close(structure.adjacency(kept, x), structure.adjacency(phi, x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("symmetric", [True, False])
def test_finished_it_leaves_old_edges_alone_when_nodes_come(symmetric):
    structure = PairwiseMLP(hidden=4, symmetric=symmetric)
    phi, x = phi_of(structure, 6), nodes(6)
    grown = torch.cat([x, 3 + nodes(4, seed=1)])
    old = structure.adjacency(phi, x)
    torch.testing.assert_close(structure.adjacency(structure.finish(phi, x), grown)[:6, :6], old)
    moved = structure.adjacency(phi, grown)[:6, :6]  # batch statistics would move with the new nodes
    assert (moved - old).abs().max() > 0.01


def test_finishing_copies():
    structure = PairwiseMLP(hidden=4)
    phi, x = phi_of(structure, 6), nodes(6)
    kept = structure.finish(phi, x)
    kept["weight1"].zero_()
    assert phi["weight1"].abs().min() > 0


@pytest.mark.parametrize("cls", [PairwiseMLP, FreeStructure])
def test_a_low_bias_starts_from_a_sparse_graph(cls):
    mean = {}
    for bias in (0.0, -3.0):
        structure = cls(edge_bias=bias)
        phi = structure.init(20, FEATURES, torch.Generator().manual_seed(0))
        mean[bias] = float(structure.adjacency(phi, nodes(20).float()).sum() / (20 * 19))
    assert 0.3 < mean[0.0] < 0.7
    assert mean[-3.0] < 0.1


@pytest.mark.parametrize("structure", MADE, ids=repr)
def test_the_same_seed_gives_the_same_start(structure):
    one, same, other = (structure.init(6, FEATURES, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    for key, tensor in one.items():
        assert torch.equal(tensor, same[key])
    assert any(not torch.equal(tensor, other[key]) for key, tensor in one.items())


def test_no_structure_is_the_identity():
    structure = NoStructure()
    assert structure.init(6, FEATURES, torch.Generator()) == {}
    assert structure.adjacency({}, nodes(6)) == Identity()
    assert structure.finish({}, nodes(6)) == {}


ADJACENCY = torch.tensor([[0.0, 0.05, 0.3], [0.05, 0.0, 0.1], [0.3, 0.1, 0.0]])


def test_threshold_drops_up_to_delta_and_keeps_the_rest():
    expected = torch.tensor([[0.0, 0.0, 0.3], [0.0, 0.0, 0.1], [0.3, 0.1, 0.0]])
    assert torch.equal(sparsify(ADJACENCY, 0.05), expected)


def test_shrinking_takes_delta_off_the_rest():
    expected = torch.tensor([[0.0, 0.0, 0.25], [0.0, 0.0, 0.05], [0.25, 0.05, 0.0]])
    torch.testing.assert_close(sparsify(ADJACENCY, 0.05, shrink=True), expected)


@pytest.mark.parametrize("shrink", [False, True])
def test_delta_0_changes_nothing(shrink):
    assert torch.equal(sparsify(ADJACENCY, 0.0, shrink=shrink), ADJACENCY)


@given(delta=st.floats(0, 0.99), seed=st.integers(0, 1000))
@settings(max_examples=25)
def test_both_ways_keep_the_same_edges(delta, seed):
    weights = torch.rand(6, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    before = weights.clone()
    threshold, shrunk = sparsify(weights, delta), sparsify(weights, delta, shrink=True)
    assert torch.equal(threshold > 0, shrunk > 0)
    assert torch.equal(threshold > 0, weights > delta)
    assert torch.equal(weights, before)
