from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.methods.herding import Herding
from reference.selection import herding


@st.composite
def grids(draw):
    """Whole-number points on a coarse grid, so that ties and repeated points are common, and a count."""
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(st.integers(-3, 3), min_size=width, max_size=width), min_size=1, max_size=14))
    return rows, draw(st.integers(1, len(rows)))


@given(grids())
def test_equals_brute_force_in_exact_arithmetic(case):
    rows, count = case
    assert Herding().pick(torch.tensor(rows, dtype=torch.float64), count).tolist() == herding(rows, count)


@pytest.mark.parametrize("seed", range(5))
def test_equals_brute_force_on_gaussian_points(seed):
    points = torch.randn(40, 5, generator=torch.Generator().manual_seed(seed)).double()
    assert Herding().pick(points, 25).tolist() == herding(points.tolist(), 25)


def test_all_points_are_a_permutation():
    points = torch.randn(17, 3, generator=torch.Generator().manual_seed(0)).double()
    assert sorted(Herding().pick(points, 17).tolist()) == list(range(17))


def test_equal_points_are_taken_in_order():
    assert Herding().pick(torch.ones(6, 2, dtype=torch.float64), 4).tolist() == [0, 1, 2, 3]


def test_picked_mean_is_closer_than_that_of_random_picks():
    stream = torch.Generator().manual_seed(1)
    points = torch.randn(200, 8, generator=stream).double()
    error = (points[Herding().pick(points, 20)].mean(0) - points.mean(0)).norm()
    random = [points[torch.randperm(200, generator=stream)[:20]].mean(0) - points.mean(0) for _ in range(200)]
    assert error < 0.5 * min(difference.norm() for difference in random)


def test_points_are_left_alone():
    points = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    before = points.clone()
    Herding().pick(points, 5)
    assert torch.equal(points, before)
