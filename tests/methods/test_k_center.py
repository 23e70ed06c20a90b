from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.methods.k_center import spread
from reference.selection import best_squared_radius, k_center, squared_radius


@st.composite
def grids(draw, most=14):
    """Whole-number points on a coarse grid, so that ties and repeated points are common, and a count."""
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(st.integers(-3, 3), min_size=width, max_size=width), min_size=1, max_size=most))
    return rows, draw(st.integers(1, len(rows)))


@given(grids())
def test_equals_brute_force_in_exact_arithmetic(case):
    rows, count = case
    assert spread(torch.tensor(rows, dtype=torch.float64), count).tolist() == k_center(rows, count)


@given(grids(most=8))
def test_radius_is_at_most_twice_the_best(case):
    rows, count = case
    chosen = spread(torch.tensor(rows, dtype=torch.float64), count).tolist()
    assert squared_radius(rows, chosen) <= 4 * best_squared_radius(rows, count)


@pytest.mark.parametrize("seed", range(5))
def test_equals_brute_force_on_gaussian_points(seed):
    points = torch.randn(40, 5, generator=torch.Generator().manual_seed(seed)).double()
    assert spread(points, 25).tolist() == k_center(points.tolist(), 25)


def test_all_points_are_a_permutation():
    points = torch.randn(17, 3, generator=torch.Generator().manual_seed(0)).double()
    assert sorted(spread(points, 17).tolist()) == list(range(17))


def test_equal_points_are_each_taken_once():
    assert sorted(spread(torch.ones(6, 2, dtype=torch.float64), 6).tolist()) == list(range(6))


def test_one_pick_for_each_far_cluster():
    centres = torch.tensor([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [100.0, 100.0]], dtype=torch.float64)
    points = centres.repeat_interleave(5, 0) + torch.rand(20, 2, generator=torch.Generator().manual_seed(0))
    assert sorted((spread(points, 4) // 5).tolist()) == [0, 1, 2, 3]
