"""The split that is drawn where a graph has none."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.data.splits import per_class
from gcond.errors import GcondError


@given(sizes=st.lists(st.integers(3, 80), min_size=1, max_size=5), bare=st.integers(0, 5), seed=st.integers(0, 1000))
def test_parts_are_disjoint_complete_and_hold_every_class(sizes, bare, seed):
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(sizes)] + [torch.full((bare,), -1)])
    y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))]
    split = per_class(y, seed)
    everyone = torch.cat([split.train, split.val, split.test])
    assert torch.equal(everyone.sort().values, (y >= 0).nonzero().squeeze(1))
    for part, most in ((split.train, 20), (split.val, 30), (split.test, 80)):
        counts = torch.bincount(y[part], minlength=len(sizes))
        assert counts.min() >= 1
        assert counts.max() <= most
    for label, n in enumerate(sizes):
        if n > 50:
            assert int((y[split.train] == label).sum()) == 20
            assert int((y[split.val] == label).sum()) == 30


def test_class_too_small_to_split_is_named():
    y = torch.tensor([0, 0, 0, 1, 1])
    with pytest.raises(GcondError, match=r"class 'blue' has 2 labelled nodes, and a split needs 3"):
        per_class(y, 0, ("red", "blue"))
