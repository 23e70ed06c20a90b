from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.linalg.equal_groups import equal_groups


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def points(m, d, seed=0):
    return torch.randn(m, d, generator=stream(seed))


def spread_within(rows, group):
    """The sum of squared distances to the means of the groups."""
    return sum(float((rows[group == one] - rows[group == one].mean(0)).square().sum()) for one in group.unique())


@st.composite
def cases(draw):
    m = draw(st.integers(1, 120))
    count = draw(st.integers(1, m))
    rows = points(m, draw(st.integers(1, 5)), draw(st.integers(0, 50)))
    kind = draw(st.sampled_from(["any", "equal", "few", "huge", "tiny"]))
    if kind == "equal":
        rows = torch.ones_like(rows)
    elif kind == "few":
        rows = rows[torch.arange(m) % 2]
    elif kind in {"huge", "tiny"}:
        rows = rows * (1e6 if kind == "huge" else 1e-6)
    return rows, count


@given(cases(), st.integers(0, 5))
def test_every_group_has_members_and_sizes_differ_by_at_most_one(case, seed):
    rows, count = case
    group = equal_groups(rows, count, stream(seed)).group
    assert group.dtype == torch.int64
    assert group.shape == (len(rows),)
    size = torch.bincount(group, minlength=count)
    assert len(size) == count
    assert int(size.min()) >= 1
    assert int(size.max() - size.min()) <= 1


def test_as_many_groups_as_points_gives_each_its_own():
    assert equal_groups(points(37, 3), 37, stream()).group.sort().values.tolist() == list(range(37))


def test_one_group_is_everyone():
    assert equal_groups(points(9, 3), 1, stream()).group.tolist() == [0] * 9


def test_the_same_stream_gives_the_same_groups_and_the_points_stay_as_they_are():
    rows = points(50, 4)
    before = rows.clone()
    state = torch.get_rng_state()
    assert torch.equal(equal_groups(rows, 7, stream(3)).group, equal_groups(rows, 7, stream(3)).group)
    assert torch.equal(rows, before)
    assert torch.equal(torch.get_rng_state(), state)


def test_blobs_of_equal_size_are_found():
    centres = 100 * torch.eye(4)
    blob = torch.arange(4).repeat(15)
    group = equal_groups(centres[blob] + points(60, 4), 4, stream()).group
    assert all(len(group[blob == one].unique()) == 1 for one in range(4))


def test_points_on_a_line_are_cut_into_intervals():
    place = torch.randperm(40, generator=stream(1)).float()
    group = equal_groups(torch.stack([place, torch.zeros(40)], 1), 5, stream()).group
    for one in range(5):
        mine = place[group == one]
        assert float(mine.max() - mine.min()) == len(mine) - 1


@pytest.mark.parametrize("count", [2, 5, 16])
def test_groups_are_much_tighter_than_random_ones(count):
    rows = points(200, 3)
    found = spread_within(rows, equal_groups(rows, count, stream()).group)
    drawn = [torch.arange(200)[torch.randperm(200, generator=stream(seed))] % count for seed in range(20)]
    assert found < 0.85 * min(spread_within(rows, group) for group in drawn)


def test_a_far_off_point_does_not_get_a_group_alone():
    rows = points(60, 3)
    rows[0] = 1e4
    assert int(torch.bincount(equal_groups(rows, 6, stream()).group).min()) == 10


def test_further_points_fall_where_those_like_them_are():
    rows = points(400, 3)
    found = equal_groups(rows, 11, stream())
    assert float((found.of(rows) == found.group).double().mean()) > 0.99  # but for those on a cut
    assert torch.equal(found.of(rows[:0]), torch.zeros(0, dtype=torch.long))
    near = found.of(rows + 1e-4 * points(400, 3, seed=1))
    assert float((near == found.group).double().mean()) > 0.97
    further = found.of(points(4000, 3, seed=2))
    size = torch.bincount(further, minlength=11).double() / 4000
    assert float((size - 1 / 11).abs().max()) < 0.05


def test_further_points_of_one_group_are_all_in_it():
    assert equal_groups(points(9, 3), 1, stream()).of(points(5, 3)).tolist() == [0] * 5


@given(cases(), st.integers(0, 5))
def test_weights_that_are_all_the_same_change_no_size(case, seed):
    rows, count = case
    size = torch.bincount(equal_groups(rows, count, stream(seed), torch.full((len(rows),), 3.0)).group, minlength=count)
    assert int(size.min()) >= 1
    assert int(size.max() - size.min()) <= 1


def test_groups_are_equally_heavy():
    rows, weights = points(4000, 3), torch.ones(4000)
    weights[::40] = 39.0  # a hundred of them weigh as much as all others
    found = equal_groups(rows, 7, stream(), weights)
    heavy = torch.bincount(found.group, weights.double(), minlength=7)
    assert float(heavy.max() - heavy.min()) <= 2 * 39
    assert torch.bincount(found.group).float().std() > 5  # not by counting heads


def test_one_heavy_point_leaves_a_member_for_every_group():
    weights = torch.ones(12)
    weights[3] = 1e6
    found = equal_groups(points(12, 2), 5, stream(), weights)
    assert sorted(found.group.unique().tolist()) == list(range(5))
