from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.streamed import packed

from gcond.graph import spread_features
from gcond.graph.inputs import Inputs
from gcond.graph.spread_features import SpreadFeatures, group_means
from gcond.graph.stored_inputs import Streaming
from gcond.linalg.sparse import Identity, dense, gcn_normalise

SHAPES = [
    {},
    {"features": 700, "density": 0.05},
    {"features": 700, "density": 0.05, "directed": True, "weighted": True},
    {"directed": True},
]


def literal(graph, hops):
    operator = dense(gcn_normalise(graph.adjacency)).double()
    return torch.linalg.matrix_power(operator, hops) @ dense(graph.x).double()


def some_groups(count, nodes, seed=0):
    drawn = torch.randint(nodes, (count,), generator=torch.Generator().manual_seed(seed))
    drawn[:nodes] = torch.arange(nodes)
    return drawn


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("hops", [0, 1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_means_are_those_of_the_dense_product(shape, hops, folded, make_graph, monkeypatch):
    graph = make_graph(**shape)
    monkeypatch.setattr(spread_features, "WIDTH", 3 if folded else graph.num_features)
    if folded:
        monkeypatch.setattr(spread_features, "BLOCK", 3 * graph.num_nodes)  # three groups at a time, ten in all
    spread = SpreadFeatures.of(graph.view("train").inputs, hops, seed=0)
    assert spread.points.shape[1] == (3 if folded else graph.num_features)
    group = some_groups(graph.num_nodes, 10)
    means, rows = spread.means(group, 10), literal(graph, hops)
    assert means.dtype == torch.float32
    for one in range(10):
        assert torch.allclose(means[one].double(), rows[group == one].mean(0), atol=1e-5)


@pytest.mark.parametrize("folded", [False, True])
def test_without_edges_and_on_dense_adjacencies_the_means_are_right_as_well(folded, make_graph, monkeypatch):
    graph = make_graph(features=700, density=0.05, directed=True)
    monkeypatch.setattr(spread_features, "WIDTH", 256 if folded else 700)
    group = some_groups(graph.num_nodes, 7)
    for adjacency in (Identity(), dense(graph.adjacency)):
        inputs = Inputs(graph.x, adjacency)
        rows = dense(graph.x) if isinstance(adjacency, Identity) else literal(graph, 2).float()
        expected = group_means(rows, group, 7)
        assert torch.allclose(SpreadFeatures.of(inputs, 2, seed=0).means(group, 7), expected, atol=1e-5)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 20))
def test_group_means_by_numpy(count, width, seed):
    nodes = 1 + seed % count
    group = some_groups(count, nodes, seed)
    rows = torch.randn(count, width, generator=torch.Generator().manual_seed(seed))
    expected = np.stack([rows.numpy()[group.numpy() == one].mean(0) for one in range(nodes)])
    assert np.allclose(group_means(rows, group, nodes).numpy(), expected, atol=1e-5)


def test_the_mean_of_very_many_equal_rows_is_such_a_row():
    rows = torch.full((300_000, 1), 0.1)
    assert torch.equal(group_means(rows, torch.zeros(300_000, dtype=torch.long), 1), rows[:1])


def test_means_in_blocks_are_the_same(make_graph, monkeypatch):
    rows = torch.randn(30, 11, generator=torch.Generator().manual_seed(0))
    group = some_groups(30, 4)
    whole = group_means(rows, group, 4)
    monkeypatch.setattr(spread_features, "BLOCK", 1)
    assert torch.equal(group_means(rows, group, 4), whole)


def test_groups_stay_within_their_class_and_are_equally_large(make_graph):
    graph = make_graph()
    spread = SpreadFeatures.of(graph.view("train").inputs, 2, seed=0)
    classes = some_groups(graph.num_nodes, 3)
    quota = torch.tensor([4, 1, 6])
    group = spread.groups(classes, quota, seed=0)
    owner = torch.repeat_interleave(torch.arange(3), quota)
    assert torch.equal(owner[group], classes)
    size = torch.bincount(group, minlength=11)
    for one in range(3):
        assert int(size[owner == one].max() - size[owner == one].min()) <= 1
    assert torch.equal(group, spread.groups(classes, quota, seed=0))


def test_what_is_drawn_to_fit_depends_on_the_limit_alone(make_graph, tmp_path):
    graph = packed(make_graph(), tmp_path)
    taken = [graph.with_streaming(Streaming(limit)).inputs.may_take for limit in (10**6, 10**9, 2 * 10**9)]
    assert taken[0] == 10**6 // 16
    assert taken[2] - taken[1] == 10**9
    assert taken[1] < 10**9


def test_lengths_of_points_do_not_move_nodes_between_groups(make_graph):
    graph = make_graph()
    spread = SpreadFeatures.of(graph.view("train").inputs, 2, seed=0)
    lengths = 1 + torch.arange(graph.num_nodes)[:, None]
    longer = SpreadFeatures(spread.inputs, 2, 0, spread.points * lengths)
    classes, quota = some_groups(graph.num_nodes, 3), torch.tensor([4, 4, 4])
    assert torch.equal(spread.groups(classes, quota, seed=0), longer.groups(classes, quota, seed=0))


@pytest.mark.parametrize("width", [3, 700])
def test_other_rows_are_folded_as_the_points_are(width, make_graph, monkeypatch):
    monkeypatch.setattr(spread_features, "WIDTH", width)
    graph = make_graph(features=700, density=0.05)
    spread = SpreadFeatures.of(graph.view("train").inputs, 2, seed=3)
    assert torch.allclose(spread.fold(literal(graph, 2).float()), spread.points, atol=1e-4)
