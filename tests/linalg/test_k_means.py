"""k-means for many points, against scikit-learn's."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from sklearn.cluster import KMeans

from gcond.linalg import k_means as module
from gcond.linalg.k_means import k_means


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(count: int, each: int, seed: int = 0, spread: float = 0.05) -> tuple[torch.Tensor, torch.Tensor]:
    """Points about ``count`` places that are far apart, and these places."""
    places = 10 * torch.randn(count, 6, generator=stream(seed))
    noise = spread * torch.randn(count, each, 6, generator=stream(seed + 1))
    return (places[:, None] + noise).flatten(0, 1), places


def inertia(points: torch.Tensor, centres: torch.Tensor) -> float:
    return float(torch.cdist(points.double(), centres.double()).min(1).values.square().sum())


@given(seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_finds_groups_that_are_far_apart(seed):
    points, _ = blobs(7, 30, seed)
    centres = k_means(points, 7, stream(seed))
    expected = points.view(7, 30, 6).mean(1)
    apart = torch.cdist(centres, expected)
    assert sorted(apart.argmin(1).tolist()) == list(range(7))
    assert apart.min(1).values.max() < 1e-4


@pytest.mark.parametrize("seed", range(5))
def test_as_good_as_one_start_of_scikit_learn(seed):
    points = torch.randn(3000, 10, generator=stream(seed))
    theirs = [KMeans(25, n_init=1, random_state=other).fit(points.numpy()).inertia_ for other in range(5)]
    ours = inertia(points, k_means(points, 25, stream(seed)))
    assert ours < max(theirs) * 1.02


def test_centres_are_the_means_of_the_points_that_are_nearest():
    """Also of all points where a part of them has found the centres: after one more step nothing has moved far."""
    points, _ = blobs(4, 2000, spread=0.2)
    assert len(points) > module.PER_CENTRE * 4
    centres = k_means(points, 4, stream())
    own = torch.cdist(points, centres).argmin(1)
    means = torch.stack([points[own == group].mean(0) for group in range(4)])
    torch.testing.assert_close(centres, means, rtol=1e-4, atol=1e-4)


def test_the_same_seed_gives_the_same_centres_and_another_others():
    points = torch.randn(500, 8, generator=stream(3))
    before = points.clone()
    one, same, other = (k_means(points, 9, stream(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(points, before)


def test_fewer_distinct_points_than_centres_repeat():
    points = torch.tensor([[0.0, 1.0], [2.0, 3.0]]).repeat(50, 1)
    centres = k_means(points, 5, stream())
    assert centres.shape == (5, 2)
    assert bool(centres.isfinite().all())
    assert set(map(tuple, centres.round(decimals=4).tolist())) == {(0.0, 1.0), (2.0, 3.0)}


def test_groups_far_from_zero_in_float32():
    """|x|² - 2xc + |c|² of numbers like these would be noise."""
    points, _ = blobs(5, 40)
    centres, far = k_means(points, 5, stream()), k_means(points + 3000, 5, stream()) - 3000
    apart = torch.cdist(centres, far).min(1).values
    assert float(apart.max()) < 0.01
    assert np.isclose(inertia(points, far), inertia(points, centres), rtol=0.05)
