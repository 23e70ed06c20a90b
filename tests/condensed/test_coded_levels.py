from __future__ import annotations

import hashlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcond.condensed.coded_levels import MOST, pack_levels, unpack_levels
from gcond.errors import GcondError


def there_and_back(levels):
    coded = pack_levels(levels)
    signed = bool((levels < 0).any())
    largest = int(np.abs(levels).max())
    return coded, unpack_levels(coded["codes"], coded["rest"], *levels.shape, largest=largest, signed=signed)


def skewed(rows, columns, seed=0):
    """Counts of words: some are frequent in all rows, most are rare."""
    stream = np.random.default_rng(seed)
    return stream.poisson(3 * stream.random(columns) ** 6, (rows, columns)).astype(np.int64)


@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 60)),
    most=st.sampled_from([0, 1, 7, 8, 9, 100, MOST - 1]),
    signed=st.booleans(),
    rare=st.sampled_from([0.0, 0.5, 0.99]),
    seed=st.integers(0, 2**32),
)
def test_levels_come_back(shape, most, signed, rare, seed):
    stream = np.random.default_rng(seed)
    levels = stream.integers(-most if signed else 0, most + 1, shape)
    levels = np.where(stream.random(shape) < rare, 0, levels)
    assert (there_and_back(levels)[1] == levels).all()


@pytest.mark.parametrize("shape", [(1, 40_000), (40_000, 1), (300, 1_000), (9_000, 70)])
def test_many_levels_come_back(shape):
    """More than one state, blocks within rows and over many of them."""
    levels = skewed(*shape)
    assert (there_and_back(levels)[1] == levels).all()


def test_every_magnitude_around_a_power_of_two_comes_back():
    near = np.array([2**power + by for power in range(20) for by in (-1, 0, 1)])
    levels = np.concatenate([near, -near])[:, None]
    assert (there_and_back(levels)[1] == levels).all()


def test_bytes_are_near_what_the_columns_would_need_if_they_were_known():
    levels = skewed(60, 2_000)
    coded = pack_levels(levels)
    entropy = 0.0
    for column in levels.T:
        share = np.bincount(column) / len(column)
        entropy -= len(column) * float((share[share > 0] * np.log2(share[share > 0])).sum())
    assert 8 * sum(map(len, coded.values())) < 1.15 * entropy


def test_the_same_bytes_everywhere():
    place = np.arange(35_000)
    coded = pack_levels(np.where(place * place % 101 < 20, place * 31 % 23 - 5, 0).reshape(50, 700))
    assert (
        hashlib.sha256(b"".join(coded[name].tobytes() for name in ("codes", "rest"))).hexdigest()[:16]
        == "c6d86892a28d7dff"
    )


@given(st.binary(min_size=4, max_size=60), st.binary(max_size=9), st.sampled_from([0, 5, 300]), st.booleans())
def test_bytes_of_anything_end_in_levels_or_a_sentence(codes, rest, largest, signed):
    parts = [np.frombuffer(part, np.uint8) for part in (codes, rest)]
    with suppress(GcondError):
        assert unpack_levels(*parts, 7, 9, largest=largest, signed=signed).shape == (7, 9)
