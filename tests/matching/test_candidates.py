"""A' on candidate pairs alone: the same as on all pairs where these are all, and otherwise on those that are near."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings

from gcond.linalg.learned_matrix import LearnedMatrix
from gcond.linalg.sparse import edge_list, gcn_normalise, mean_normalise, scaled_laplacian
from gcond.matching import pairs
from gcond.matching.candidates import Candidates, nearest
from gcond.matching.pairs import all_pairs, pair_scores, pattern_pairs
from gcond.matching.sparsification import sparsify
from gcond.matching.structure import PairwiseMLP

NODES, FEATURES = 8, 5


def nodes(n: int = NODES, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, FEATURES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def phi_of(structure, seed: int = 0) -> dict[str, torch.Tensor]:
    stream = torch.Generator().manual_seed(seed)
    fresh = structure.init(NODES, FEATURES, stream)
    moved = {key: tensor + 0.3 * torch.randn(tensor.shape, generator=stream) for key, tensor in fresh.items()}
    return {key: tensor.double().requires_grad_() for key, tensor in moved.items()}


def structures(neighbours: int, *, symmetric: bool, memory: int | None = None):
    return (
        PairwiseMLP(4, symmetric),
        PairwiseMLP(4, symmetric, memory=memory, neighbours=neighbours),
    )


def mask_of(candidates: Candidates) -> torch.Tensor:
    mask = torch.zeros(candidates.pattern.n, candidates.pattern.n, dtype=torch.bool)
    mask[candidates.pattern.target, candidates.pattern.source] = True
    return mask


@given(n=st.integers(2, 12), count=st.integers(1, 14), seed=st.integers(0, 1000))
@settings(max_examples=30)
def test_the_nearest_are_the_nearest(n, count, seed):
    x = nodes(n, seed)
    target, source = nearest(x, count)
    apart = torch.cdist(x, x).fill_diagonal_(torch.inf)
    assert (target != source).all()
    for node in range(n):
        own = source[target == node]
        assert len(own.unique()) == len(own) == min(count, n - 1)
        expected = apart[node].sort().values[: len(own)]
        torch.testing.assert_close(apart[node, own].sort().values, expected)


def test_the_nearest_are_found_in_blocks(monkeypatch):
    x = nodes(12)
    whole = nearest(x, 3)
    monkeypatch.setattr("gcond.matching.candidates.BLOCK", 30)
    for one, other in zip(nearest(x, 3), whole, strict=True):
        assert torch.equal(one, other)


def test_equal_nodes_are_no_neighbours_of_themselves():
    target, source = nearest(torch.ones(5, 3), 2)
    assert (target != source).all()


def test_candidates_have_their_reverses_and_the_diagonal():
    candidates = Candidates.of(torch.tensor([0, 2, 2]), torch.tensor([1, 0, 1]), 4)
    mask = mask_of(candidates)
    assert torch.equal(mask, mask.T)
    assert mask.diagonal().all()
    assert int(mask.sum()) == 4 + 6
    order, pattern = candidates.pattern.order, candidates.pattern
    assert torch.equal(pattern.target[order], pattern.source)  # each entry's reverse
    assert torch.equal(pattern.source[order], pattern.target)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("memory", [None, 3 * 5 * 4 * 8 * NODES, 1])
def test_all_others_as_neighbours_are_all_pairs(symmetric, memory):
    """Values and all derivatives, of A' itself and through each of its normalised forms."""
    dense, sparse = structures(NODES - 1, symmetric=symmetric, memory=memory)
    upstream = torch.randn(NODES, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    for form in (lambda a: a, gcn_normalise, mean_normalise, scaled_laplacian):
        found = []
        for structure in (dense, sparse):
            x, phi = nodes().requires_grad_(), phi_of(structure)
            product = form(structure.adjacency(phi, x)) @ (upstream + x[:, :3])
            found.append((product, *torch.autograd.grad(product.square().sum(), [x, *phi.values()])))
        assert found[0][1].abs().max() > 1e-3
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("symmetric", [True, False])
def test_few_neighbours_are_the_mlp_on_these_pairs(symmetric):
    """By PyTorch's own batch normalisation: all pairs for the first layer, those that are looked at for the second."""
    structure = PairwiseMLP(4, symmetric, neighbours=2)
    x, phi = nodes(), phi_of(structure)
    candidates = structure.candidates(x)
    target, source = candidates.pattern.target, candidates.pattern.source
    assert 2 * NODES + NODES <= len(target) < NODES**2
    whole = (x @ phi["target"])[:, None] + (x @ phi["source"])[None]
    first = F.batch_norm(whole.flatten(0, 1), None, None, phi["gamma0"], phi["beta0"], training=True)
    first = first.view(NODES, NODES, -1)[target, source].relu()
    second = F.batch_norm(first @ phi["weight1"], None, None, phi["gamma1"], phi["beta1"], training=True)
    score = torch.zeros(NODES, NODES, dtype=x.dtype)
    score[target, source] = second.relu() @ phi["weight2"] + phi["bias2"]
    score = (score + score.T) / 2 if symmetric else score
    expected = torch.sigmoid(score) * mask_of(candidates).fill_diagonal_(False)
    torch.testing.assert_close(structure.adjacency(phi, x).to_dense(), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("symmetric", [True, False])
def test_weights_are_symmetric_to_the_last_bit_where_it_is_said(symmetric):
    structure = PairwiseMLP(4, symmetric, neighbours=3)
    x = nodes(40).float()
    phi = {key: tensor.float() for key, tensor in phi_of(structure).items()}
    adjacency = structure.adjacency(phi, x)
    assert isinstance(adjacency, LearnedMatrix)
    whole = adjacency.to_dense()
    assert torch.equal(whole, whole.T) == symmetric == adjacency.symmetric
    assert not whole.diagonal().any()


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("symmetric", [True, False])
def test_blocks_equal_the_whole(symmetric, many, monkeypatch):
    x = nodes(30, seed=3)
    found = []
    for block in (10**9, 50, 1):
        structure = PairwiseMLP(4, symmetric, neighbours=5)
        if many:
            monkeypatch.setattr(pairs, "KEPT_PAIRS", 10 if block < 10**9 else 10**9)
            monkeypatch.setattr(pairs, "BLOCK_PAIRS", block)
        else:
            structure = PairwiseMLP(4, symmetric, neighbours=5, memory=block * 5 * 4 * 8)
        own, phi = x.clone().requires_grad_(), phi_of(structure)
        among = structure.candidates(own)
        assert (len(among.blocks) == 1) == (block == 10**9)
        adjacency = structure.adjacency(phi, own, among)
        found.append((adjacency.values, *torch.autograd.grad(adjacency.values.square().sum(), [own, *phi.values()])))
    for part in found[1:]:
        for one, other in zip(found[0], part, strict=True):
            torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-11)


def test_blocks_are_whole_rows_and_all_of_them():
    candidates = Candidates.of(*nearest(nodes(30), 4), 30)
    for together in (None, 1, 7, 40, 10**6):
        blocks = pattern_pairs(candidates.pattern, together)
        assert [block.first for block in blocks] == [0, *(block.last for block in blocks[:-1])]
        assert blocks[-1].last == 30
        sizes = [block.place.stop - block.place.start for block in blocks]
        assert sum(sizes) == len(candidates.pattern.source)
        if together is not None:
            assert all(
                size <= together or block.last == block.first + 1 for size, block in zip(sizes, blocks, strict=True)
            )


def test_all_pairs_in_the_blocks_of_many_equal_the_whole(monkeypatch):
    """In float32, where blocks have products of their own."""
    stream = torch.Generator().manual_seed(0)
    shapes = {"left": (30, 16), "right": (30, 16), "weight": (16, 16), "gamma": (16,), "beta": (16,), "out": (16,)}
    values = {name: torch.randn(shape, generator=stream).requires_grad_() for name, shape in shapes.items()}
    found = []
    for kept in (10**9, 10):
        monkeypatch.setattr(pairs, "KEPT_PAIRS", kept)
        monkeypatch.setattr(pairs, "BLOCK_PAIRS", 64)
        blocks = all_pairs(30, 30)
        assert len(blocks) == (1 if kept > 10 else 15)
        score = pair_scores(**values, blocks=blocks)
        found.append((score, *torch.autograd.grad(score.square().mean(), list(values.values()))))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shrink", [False, True])
def test_thresholds_are_those_of_the_dense_matrix(shrink):
    structure = PairwiseMLP(4, False, neighbours=3)
    adjacency = structure.adjacency(phi_of(structure), nodes())
    whole = adjacency.to_dense()
    for delta in (0.0, 0.3, 0.5, 1.0):
        found, expected = sparsify(adjacency, delta, shrink=shrink), sparsify(whole, delta, shrink=shrink)
        torch.testing.assert_close(found.to_dense(), expected)
        assert torch.equal(edge_list(found)[0], edge_list(expected)[0])
        assert not found.values.requires_grad


def test_the_candidates_of_the_same_features_are_the_same():
    structure = PairwiseMLP(4, neighbours=3)
    one, other = (structure.candidates(nodes(20)).pattern for _ in range(2))
    assert torch.equal(one.target, other.target)
    assert torch.equal(one.source, other.source)


def test_memory_and_work_grow_with_the_nodes_and_not_with_their_pairs():
    few, all_of_them = PairwiseMLP(128, neighbours=32), PairwiseMLP(128)
    assert few.work(10_000, 100) == pytest.approx(2 * few.work(5_000, 100))
    assert all_of_them.work(10_000, 100) > 3.9 * all_of_them.work(5_000, 100)
    assert few.entries(5_000) == 5_000 * 65
    assert few.block_bytes(5_000) < 20e6
    assert few.entries(20) == 400  # no more than there are
