from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from gcond.graph.group_heirs import continued
from gcond.graph.inputs import Inputs
from gcond.graph.kept_groups import LARGEST, RENEWED, KeptGroups, regrouped
from gcond.graph.spread_features import SpreadFeatures


def points(count, seed=0):
    return F.normalize(torch.randn(count, 5, generator=torch.Generator().manual_seed(seed)))


@given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 15), st.integers(0, 99), st.floats(0, 1))
def test_every_group_has_a_node_and_none_is_much_larger(count, groups, before, seed, share):
    groups = min(groups, count)
    stream = torch.Generator().manual_seed(seed)
    old = torch.randint(max(1, before), (count,), generator=stream)
    old[torch.rand(count, generator=stream) < share] = -1
    found = regrouped(points(count, seed), old, groups, stream)
    sizes = torch.bincount(found, minlength=groups)
    assert found.shape == (count,)
    assert len(sizes) == groups
    assert int(sizes.min()) >= 1
    usual = -(-count // groups)
    assert int(sizes.max()) <= max(LARGEST * usual, usual + 1)


def test_nothing_moves_where_nothing_changed():
    old = torch.arange(40) % 5
    assert torch.equal(regrouped(points(40), old, 5, torch.Generator()), old)


def test_few_new_nodes_move_nobody():
    old = torch.arange(44) % 5
    old[40:] = -1
    found = regrouped(points(44), old, 5, torch.Generator())
    assert torch.equal(found[:40], old[:40])
    assert int(torch.bincount(found).max()) == 9


def test_many_new_nodes_make_new_groups_in_the_order_of_the_old():
    """Four clouds that are cut anew: each new group has the place of the old one that it goes on from."""
    centres = torch.eye(5)[[3, 1, 0, 2]]
    cloud = torch.arange(80) % 4
    near = F.normalize(centres[cloud] + 0.01 * points(80))
    old = torch.where(torch.arange(80) < 40, cloud, -1)
    assert float((old < 0).float().mean()) > RENEWED
    found = regrouped(near, old, 4, torch.Generator().manual_seed(0))
    assert torch.equal(found, cloud)


def test_more_groups_cut_the_largest_and_fewer_let_the_smallest_go():
    old = torch.tensor([0] * 20 + [1] * 10 + [2] * 2)
    more = regrouped(points(32), old, 4, torch.Generator().manual_seed(0))
    assert len(more[:20].unique()) >= 2
    fewer = regrouped(points(32), torch.arange(32) % 4, 3, torch.Generator().manual_seed(0))
    assert sorted(fewer.unique().tolist()) == [0, 1, 2]


def test_heirs():
    before = torch.tensor([0, 0, 0, 1, 1, 2, -1])
    now = torch.tensor([1, 1, 0, 2, 2, 2, 0])
    follows, shared = continued(before, now, 3, 4)
    assert follows.tolist() == [-1, 0, 1, -1]
    assert shared.tolist() == [1, 2, 2, 0]


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 5)), max_size=40))
def test_heirs_are_those_of_the_whole_table(pairs):
    before, now = (torch.tensor([pair[side] for pair in pairs], dtype=torch.long) for side in (0, 1))
    shared = torch.zeros(6, 5, dtype=torch.long)
    for old, new in pairs:
        if old >= 0 and new >= 0:
            shared[new, old] += 1
    follows, size = continued(before, now, 5, 6)
    assert torch.equal(size, shared.max(1).values)
    for new in range(6):
        origin = int(shared[new].argmax())
        heir = shared[new, origin] > 0 and int(shared[:, origin].argmax()) == new
        assert int(follows[new]) == (origin if heir else -1)


def test_means_are_of_the_features_themselves(make_graph):
    """Points may be folded, means are not."""
    graph = make_graph(features=300)
    inputs = Inputs(graph.x, graph.adjacency)
    none = torch.full((graph.num_nodes,), -1)
    kept = KeptGroups.following(inputs, 2, 0, before=none, classes_before=torch.zeros(1, dtype=torch.long))
    assert kept.points.shape[1] < 300
    group = torch.arange(graph.num_nodes) % 4
    torch.testing.assert_close(kept.means(group, 4), SpreadFeatures.of(inputs, 2, 0).means(group, 4))
