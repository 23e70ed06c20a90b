from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.condensed.entry_places import NAMES, pack_places, unpack_places


@st.composite
def matrices(draw):
    rows, columns = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    count = draw(st.integers(0, rows * columns))
    stream = np.random.default_rng(draw(st.integers(0, 99)))
    return rows, columns, np.sort(stream.permutation(rows * columns)[:count])


def tensors(packed):
    return {name: torch.from_numpy(packed[name]) if name in packed else None for name in NAMES}


@given(matrices())
def test_places_come_back(case):
    rows, columns, there = case
    assert unpack_places(tensors(pack_places(there, rows * columns)), rows, columns).tolist() == there.tolist()


@given(matrices())
def test_they_never_take_more_than_a_bit_for_each_place(case):
    rows, columns, there = case
    packed = pack_places(there, rows * columns)
    assert sum(each.nbytes for each in packed.values()) <= math.ceil(rows * columns / 8)


def test_they_take_little_more_than_there_is_to_say():
    """Against the entropy of places that are drawn at random."""
    stream, places = np.random.default_rng(0), 200_000
    for share in (0.2, 0.1, 0.03, 0.005):
        there = np.flatnonzero(stream.random(places) < share)
        least = places * (-share * math.log2(share) - (1 - share) * math.log2(1 - share)) / 8
        assert least < sum(each.nbytes for each in pack_places(there, places).values()) < 1.25 * least
