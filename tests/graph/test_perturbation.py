"""Noise: as much is changed as was asked for, and nothing else."""

from __future__ import annotations

import dataclasses

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conftest import random_graph
from gcond.errors import GcondError
from gcond.graph.perturbation import Noise, perturbed
from gcond.graph.source_graph import PARTS, SourceGraph
from gcond.linalg.sparse import SparseMatrix, dense

NONE = Noise(0, 0, 0)


def edges(graph: SourceGraph) -> nx.Graph:
    made = nx.from_scipy_sparse_array(graph.adjacency.to_scipy(), create_using=nx.DiGraph)
    return made if graph.directed else made.to_undirected()


def checked(graph: SourceGraph) -> SourceGraph:
    """The same tensors through the door that checks everything."""
    parts = {part: graph.mask(part) for part in PARTS}
    return SourceGraph.build(
        name=graph.name,
        x=graph.x,
        edge_index=graph.adjacency.edge_index,
        edge_weight=graph.adjacency.values,
        y=graph.y,
        directed=graph.directed,
        setting=graph.setting,
        **parts,
    )


@given(
    seed=st.integers(0, 9),
    share=st.floats(0.01, 0.6),
    directed=st.booleans(),
    weighted=st.booleans(),
    density=st.sampled_from([0.05, 1.0]),
    setting=st.sampled_from(["transductive", "inductive"]),
)
def test_as_much_is_changed_as_was_asked_for(*, seed, share, directed, weighted, density, setting):
    graph = random_graph(setting, seed=seed, directed=directed, weighted=weighted, density=density)
    noisy = perturbed(graph, Noise(share, share, share), seed)

    before, after = set(edges(graph).edges), set(edges(noisy).edges)
    moved = round(share * graph.num_edges)
    assert (len(before - after), len(after - before)) == (moved, moved)
    assert noisy.adjacency.values.sort().values.equal(graph.adjacency.values.sort().values)

    old, new = dense(graph.x), dense(noisy.x)
    if isinstance(graph.x, SparseMatrix):
        filled = int((old != 0).sum())
        assert int(((old != 0) & (new == 0)).sum()) == round(share * filled)
        assert int(((old == 0) & (new != 0)).sum()) == round(share * filled)
        assert old.sort(1).values.equal(new.sort(1).values)  # each row keeps its numbers
    else:
        changed = old != new
        assert int(changed.sum()) == round(share * old.numel())
        for column in range(old.shape[1]):
            assert set(new[:, column].tolist()) <= set(old[:, column].tolist())

    other = graph.y != noisy.y
    assert not bool(other[~(graph.train_mask | graph.val_mask)].any())
    for mask in (graph.train_mask, graph.val_mask):
        asked, can = round(share * int(mask.sum())), int(mask.sum())
        if mask is graph.train_mask:
            can -= graph.num_classes
        assert int(other[mask].sum()) == min(asked, can)
    assert bool((noisy.class_counts() > 0).all())

    assert checked(noisy).notes == ()
    assert checked(noisy).sha256 == noisy.sha256
    for part in PARTS:
        assert noisy.mask(part).equal(graph.mask(part))


def test_the_same_seed_draws_the_same_noise_and_another_one_another():
    graph = random_graph()
    first, again, other = (perturbed(graph, Noise(0.2, 0.2, 0.2), seed) for seed in (3, 3, 4))
    assert first.sha256 == again.sha256 != other.sha256


@pytest.mark.parametrize("density", [0.05, 1.0])
def test_each_kind_is_drawn_alone_as_it_is_beside_others(density):
    graph = random_graph(density=density)
    noise = Noise(0.1, 0.1, 0.1)
    mixed = perturbed(graph, noise, 1)
    only = {kind: perturbed(graph, noise.only(kind), 1) for kind in noise.kinds}
    assert dense(only["features"].x).equal(dense(mixed.x))
    assert only["labels"].y.equal(mixed.y)
    assert set(edges(only["edges"]).edges) == set(edges(mixed).edges)
    for kind, graph_of_kind in only.items():
        assert (graph_of_kind.y is graph.y) == (kind != "labels")
        assert (graph_of_kind.x is graph.x) == (kind != "features")
        assert (graph_of_kind.adjacency is graph.adjacency) == (kind != "edges")


def test_the_graph_itself_is_left_alone():
    graph = random_graph(density=0.05)
    before = graph.sha256
    assert perturbed(graph, NONE, 0) is graph
    perturbed(graph, Noise(0.5, 0.5, 0.5), 0)
    assert dataclasses.replace(graph).sha256 == before


def test_every_other_class_is_as_likely():
    graph = random_graph(sizes=(4000, 4000, 4000, 4000), features=2)
    noisy = perturbed(graph, Noise(0, 0, 0.5), 0)
    step = (noisy.y - graph.y)[graph.train_mask] % 4
    counts = torch.bincount(step, minlength=4).double()
    assert counts[0] == graph.train_mask.sum() // 2
    expected = float(counts[1:].mean())
    chi_squared = float(((counts[1:] - expected) ** 2 / expected).sum())
    assert chi_squared < 13.8  # of two degrees of freedom: one seed in a thousand


def test_constant_columns_and_full_rows_stay():
    graph = random_graph()
    flat = dataclasses.replace(graph, x=torch.ones_like(dense(graph.x)))
    assert dense(perturbed(flat, Noise(0, 0.5, 0), 0).x).equal(dense(flat.x))
    x = torch.zeros(graph.num_nodes, 12)
    x[0] = 1
    full = dataclasses.replace(
        graph, x=SparseMatrix.from_scipy(__import__("scipy.sparse").sparse.csr_matrix(x.numpy()))
    )
    assert dense(perturbed(full, Noise(0, 0.5, 0), 0).x).equal(x)


def test_structural_features_follow_the_edges():
    graph = random_graph()
    bare = SourceGraph.build(
        name="bare",
        x=None,
        edge_index=graph.adjacency.edge_index,
        y=graph.y,
        train=graph.train_mask,
        val=graph.val_mask,
        test=graph.test_mask,
    )
    noisy = perturbed(bare, Noise(0.2, 0, 0), 0)
    assert noisy.transform == bare.transform
    assert not dense(noisy.x).equal(dense(bare.x))


def test_dense_graphs_use_the_pairs_that_are_left():
    n = 12
    pairs = torch.combinations(torch.arange(n)).T[:, :-3]
    graph = random_graph(sizes=(4, 4, 4))
    almost = SourceGraph.build(
        name="almost complete",
        x=dense(graph.x),
        edge_index=torch.cat([pairs, pairs.flip(0)], 1),
        y=torch.arange(n) % 3,
        train=torch.arange(6),
        val=torch.arange(6, 9),
        test=torch.arange(9, 12),
    )
    noisy = perturbed(almost, Noise(3 / 63, 0, 0), 0)
    assert noisy.num_edges == 63
    assert all(noisy.adjacency.to_dense()[i, j] == 1 for i, j in ((9, 10), (9, 11), (10, 11)))
    with pytest.raises(GcondError, match="only 3 pairs of nodes are not joined"):
        perturbed(almost, Noise(0.5, 0, 0), 0)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_shares_are_shares(share):
    with pytest.raises(ValueError, match="share of labels"):
        Noise(labels=share)
