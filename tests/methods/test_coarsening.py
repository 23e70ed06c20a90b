from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcond.errors import GcondError
from gcond.graph.source_graph import SourceGraph
from gcond.linalg.sparse import dense
from gcond.methods.coarsening import LabelsKept, finish, shares
from gcond.methods.condense import condense

VARIANTS = ("variation-neighbourhoods", "heavy-edge")
both = pytest.mark.parametrize("variant", VARIANTS)


def build(edges, y, train, classes, features=3, **options):
    n = len(y)
    x = torch.randn(n, features, generator=torch.Generator().manual_seed(1))
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    rest = [node for node in range(n) if node not in set(train)]
    return SourceGraph.build(
        name="hand-made",
        x=x,
        edge_index=torch.cat([edge_index, edge_index.flip(0)], 1),
        y=torch.tensor(y),
        train=torch.tensor(train),
        val=torch.tensor(rest[:1], dtype=torch.long),
        test=torch.tensor(rest[1:2], dtype=torch.long),
        num_classes=classes,
        **options,
    )


@both
def test_the_file_is_what_the_clusters_say(variant, setting, make_graph):
    for options in ({}, {"weighted": True}, {"directed": True, "weighted": True}, {"features": 60, "density": 0.05}):
        graph = make_graph(setting, **options)
        small = condense(graph, method="coarsening", nodes=9, variant=variant)
        seen = torch.ones(graph.num_nodes, dtype=torch.bool) if setting == "transductive" else graph.train_mask
        cluster = small.cluster
        assert cluster.shape == (graph.num_nodes,)
        assert bool((cluster[~seen] == -1).all())
        x, adjacency = dense(graph.x).double(), graph.adjacency.to_dense().double()
        for r in range(9):
            members = cluster == r
            assert torch.allclose(small.x[r].double(), x[members].mean(0), atol=1e-6)
            votes = torch.bincount(graph.y[members & graph.train_mask], minlength=3)
            assert votes.sum() > 0
            assert votes[small.y[r]] == votes.max()
            for s in range(9):
                expected = adjacency[members][:, cluster == s].sum() if r != s else 0.0
                assert float(small.adjacency()[r, s]) == pytest.approx(float(expected), rel=1e-5)
        assert small.y.tolist() == sorted(small.y.tolist())


@both
def test_a_connected_graph_loses_no_node(variant, make_graph):
    graph = make_graph("transductive")
    assert scipy.sparse.csgraph.connected_components(graph.adjacency.to_scipy())[0] == 1
    for nodes in (3, 10, int(graph.train_mask.sum())):
        cluster = condense(graph, method="coarsening", nodes=nodes, variant=variant).cluster
        assert sorted(cluster.unique().tolist()) == list(range(nodes))


@both
def test_as_many_nodes_as_labels_gives_each_label_its_own(variant, make_graph):
    graph = make_graph("transductive")
    small = condense(graph, method="coarsening", nodes=int(graph.train_mask.sum()), variant=variant)
    assert len(small.cluster[graph.train_mask].unique()) == small.num_nodes
    assert torch.equal(small.y[small.cluster[graph.train_mask]], graph.y[graph.train_mask])


@both
def test_components_without_a_label_are_dropped(variant):
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (5, 6)]
    graph = build(edges, [0, 0, 1, 1, 1, 0, 1, 0], [0, 1, 3, 4], 2)
    small = condense(graph, method="coarsening", nodes=2, variant=variant)
    assert small.cluster.tolist()[5:] == [-1, -1, -1]
    assert min(small.cluster.tolist()[:5]) == 0


@both
def test_a_class_stays_though_it_is_outvoted_everywhere(variant):
    # A star whose centre is the only node of class 1: its neighbourhood outvotes it.
    leaves = list(range(1, 11))
    y = [1] + [0] * 5 + [2] * 5 + [0, 0]
    graph = build([(0, leaf) for leaf in leaves] + [(0, 11), (0, 12)], y, [0, *leaves], 3)
    small = condense(graph, method="coarsening", nodes=3, variant=variant)
    assert small.y.tolist() == [0, 1, 2]
    assert small.cluster[0] == 1
    assert bool((small.cluster >= 0).all())


@both
def test_a_graph_without_edges_is_joined_by_class(variant):
    graph = build([], [0, 1, 2] * 5, list(range(12)), 3)
    small = condense(graph, method="coarsening", nodes=5, variant=variant)
    assert small.num_nodes == 5
    assert small.num_edges == 0
    assert small.hard_labels.unique().tolist() == [0, 1, 2]
    assert torch.equal(small.y[small.cluster[:12]], graph.y[:12])


@both
def test_a_large_component_is_not_given_up_for_many_small_ones(variant):
    # A ring of 40 labelled nodes and 20 labelled nodes alone; ten clusters of which the ring deserves most.
    ring = [(i, (i + 1) % 40) for i in range(40)]
    y = [i // 20 for i in range(40)] + [0, 1] * 10 + [0, 1]
    graph = build(ring, y, list(range(60)), 2)
    cluster = condense(graph, method="coarsening", nodes=10, variant=variant).cluster
    assert len(cluster[:40].unique()) >= 6


@st.composite
def sources(draw):
    """Small graphs of any shape: in pieces, with classes of one node, with few or many labels; and a budget."""
    classes, n = draw(st.integers(1, 4)), draw(st.integers(6, 24))
    labelled = draw(st.integers(classes, n - 2))
    order = draw(st.permutations(range(n)))
    y = [0] * n
    for place, node in enumerate(order):
        y[node] = place if place < classes else draw(st.integers(0, classes - 1))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = draw(st.lists(pairs, unique=True, max_size=2 * n))
    graph = build(
        edges, y, sorted(order[:labelled]), classes, setting=draw(st.sampled_from(["transductive", "inductive"]))
    )
    return graph, draw(st.integers(classes, labelled)), draw(st.sampled_from([0.2, 0.99]))


@settings(max_examples=60)
@given(sources(), st.sampled_from(VARIANTS))
def test_any_graph_gives_the_budget_and_every_class(case, variant):
    graph, nodes, level_ratio = case
    small = condense(graph, method="coarsening", nodes=nodes, variant=variant, level_ratio=level_ratio)
    assert small.num_nodes == nodes
    assert small.hard_labels.unique().tolist() == list(range(graph.num_classes))
    assert bool((small.cluster[graph.train_mask] >= 0).all())
    for r in range(nodes):
        votes = torch.bincount(graph.y[(small.cluster == r) & graph.train_mask], minlength=graph.num_classes)
        assert votes.sum() > 0
        assert votes.argmax() == small.y[r]


def test_shares_follow_training_nodes():
    # Components of 4, 2 and 1 nodes, and one of 2 without a label.
    edges = np.array([(0, 1), (1, 2), (2, 3), (4, 5), (7, 8)])
    adjacency = scipy.sparse.csr_matrix((np.ones(5), edges.T), shape=(9, 9))
    votes = np.zeros((9, 1), dtype=np.int64)
    votes[:7] = 1
    component, share = shares(adjacency, votes, 7)
    assert component.tolist() == [0, 0, 0, 0, 1, 1, 2, 3, 3]
    assert share.tolist() == [4, 2, 1, 0]
    assert shares(adjacency, votes, 4)[1].tolist() == [2, 1, 1, 0]
    assert shares(adjacency, votes, 1)[1].tolist() == [1, 1, 1, 0]  # one each, though that is too many


def test_the_rule_cuts_a_set_to_what_may_be_merged():
    votes = np.array([[1, 0], [1, 0], [0, 1], [0, 0], [0, 1]])
    everything = np.array([2, 3, 0, 1, 4])
    one_component = np.zeros(5, dtype=np.int64)
    # Merging all would leave one class; the classes tie, so the lower is kept, beside what has no label.
    assert LabelsKept(votes, one_component, np.array([2])).admit(everything).tolist() == [3, 0, 1]
    assert LabelsKept(votes, one_component, np.array([4])).admit(everything).tolist() == [3, 0]
    rule = LabelsKept(votes, one_component, np.array([2]))
    rule.merge(np.array([3, 0, 1]))
    assert rule.spare.tolist() == [1]
    assert rule.of_class.tolist() == [1, 2]
    rule.follow(np.array([0, 0, 1, 0, 2]), 3)
    assert rule.votes.tolist() == [[2, 0], [0, 1], [0, 1]]
    assert rule.label.tolist() == [0, 1, 1]
    assert rule.admit(np.array([1, 2])).tolist() == [1, 2]
    assert rule.admit(np.array([0, 1])).tolist() == [0, 1]  # outvoted, but not the last of its class
    rule.merge(np.array([1, 2]))
    assert rule.admit(np.array([0, 1])).tolist() != [0, 1]


def test_what_is_left_over_joins_the_nearest_of_its_class():
    x = torch.tensor([[0.0], [0.0], [5.0], [5.0], [1.0], [4.9], [9.0]])
    votes = np.array([[1, 0], [0, 0], [1, 0], [0, 0], [1, 0], [0, 1], [0, 0]])
    merged = np.array([0, 0, 1, 1, 2, 3, 4])
    # Two clusters of class 0 stay for their size; node 4 is nearer to the first; class 1 has one; node 6 has no label.
    assert finish(merged, votes, x, 3).tolist() == [0, 0, 1, 1, 0, 2, -1]
    assert finish(merged, votes, x, 4).tolist() == [0, 0, 1, 1, 2, 3, -1]


@pytest.mark.parametrize("wrong", [{"eigenvectors": 0}, {"level_ratio": 1.0}, {"level_ratio": 0}, {"variant": "x"}])
def test_settings_that_mean_nothing_are_refused(wrong, make_graph):
    with pytest.raises(GcondError, match=next(iter(wrong))):
        condense(make_graph(), method="coarsening", nodes=9, **wrong)


def test_heavy_edges_ignore_the_seed_and_the_signals(make_graph):
    results = [
        condense(make_graph(), method="coarsening", nodes=9, seed=seed, variant="heavy-edge", eigenvectors=k)
        for seed, k in ((0, 10), (1, 2))
    ]
    assert results[0].sha256 == results[1].sha256
