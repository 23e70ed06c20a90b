from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.condensed import Compaction
from gcond.condensed.compaction import (
    LARGEST_STEP,
    SMALLEST_STEP,
    compacted,
    cut,
    relative_step,
    rounded_labels,
    rounded_weights,
)
from gcond.errors import GcondError


@st.composite
def features(draw):
    """Features of any scale: signed or not, with zeros, equal entries and empty rows."""
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    stream = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    x = torch.randn(n, d, generator=stream) * 10.0 ** draw(st.integers(-45, 37))
    x = x * 10.0 ** -(draw(st.sampled_from([0, 3, 8])) ** torch.rand(n, d, generator=stream))
    x = x * (torch.rand(n, d, generator=stream) < draw(st.sampled_from([0.2, 0.7, 1.0])))
    x = x.abs() if draw(st.booleans()) else x
    if draw(st.booleans()):
        x = x.sign() * x.abs().max()
    return x


COMPACTIONS = st.builds(Compaction, st.none() | st.integers(1, 10), st.sampled_from([4, 8, 16, 32]))
SHARES = st.sampled_from([0.001, 0.25, 1.0, 30.0])


def test_a_cut_keeps_the_largest_of_each_row_as_they_are():
    x = torch.tensor([[1.0, -5.0, 3.0, 0.5], [0.0, 0.0, -2.0, 0.0]])
    assert cut(x, 2).tolist() == [[0, -5, 3, 0], [0, 0, -2, 0]]
    assert cut(x, 1).tolist() == [[0, -5, 0, 0], [0, 0, -2, 0]]
    assert cut(x, None) is x
    assert torch.equal(cut(x, 9), x)
    assert x[0, 0] == 1


def test_a_cut_among_equals_still_keeps_no_more():
    assert torch.count_nonzero(cut(torch.ones(3, 8), 5), dim=1).tolist() == [5, 5, 5]


def test_gradients_reach_what_is_kept_alone():
    x = torch.tensor([[1.0, -5.0, 3.0]], requires_grad=True)
    (cut(x, 2) * torch.tensor([7.0, 8.0, 9.0])).sum().backward()
    assert x.grad.tolist() == [[0, 8, 9]]


@given(x=features(), compaction=COMPACTIONS)
def test_compacting_again_changes_no_bit(x, compaction):
    once = compacted(x, compaction)
    again = compacted(once, compaction)
    assert torch.equal(once.view(torch.int32), again.view(torch.int32))
    assert once.isfinite().all()
    assert int(torch.count_nonzero(once, dim=1).max()) <= (compaction.entries or x.shape[1])


@given(x=features(), entries=st.none() | st.integers(1, 10), share=SHARES)
def test_steps_change_no_number_by_more_than_one_and_again_by_nothing(x, entries, share):
    step = relative_step(x, share)
    if not SMALLEST_STEP <= step <= LARGEST_STEP:
        with pytest.raises(GcondError, match="cannot be: give"):
            Compaction(entries, step=step)
        return
    compaction = Compaction(entries, step=step)
    once = compacted(x, compaction)
    assert torch.equal(once.view(torch.int32), compacted(once, compaction).view(torch.int32))
    kept = cut(x, entries)
    assert bool(((once - kept).abs() <= 0.601 * step + 1e-6 * kept.abs()).all())


def test_a_step_rounds_down_a_little_more_often():
    x = torch.tensor([[0.0, 0.59, 0.61, 1.59, 1.61, -0.59, -0.61]])
    assert compacted(x, Compaction(step=1.0)).tolist() == [[0, 0, 1, 1, 2, 0, -1]]
    assert not torch.signbit(compacted(x, Compaction(step=1.0))[0, 5])


@pytest.mark.parametrize("step", [0.0, -1.0, 1, "1", float("nan"), float("inf"), 1e-40])
def test_steps_that_cannot_be(step):
    with pytest.raises(GcondError, match="cannot be: give"):
        Compaction(step=step)


def test_a_step_that_is_too_small_or_beside_bits():
    with pytest.raises(GcondError, match="a step of 1e-07 is too small for entries up to 1: up to 1,048,576 steps"):
        compacted(torch.ones(1, 2), Compaction(step=1e-7))
    with pytest.raises(GcondError, match="a step takes the place of bits"):
        Compaction(step=1.0, bits=4)


@given(x=features())
def test_the_largest_of_a_row_is_never_changed(x):
    for bits in (4, 8, 16, 32):
        assert torch.equal(compacted(x, Compaction(None, bits)).abs().amax(1), x.abs().amax(1))


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 1e30])
@pytest.mark.parametrize(
    ("bits", "signed", "unsigned"), [(4, 7, 15), (8, 127, 255), (16, 2048, 2048), (32, 1e99, 1e99)]
)
def test_rounding_is_as_fine_in_every_unit_of_measure(scale, bits, signed, unsigned):
    """Features of scale 1e-6 survive: a bare half float would have almost nothing of them."""
    x = torch.randn(20, 50, generator=torch.Generator().manual_seed(0)) * scale
    for own, levels in ((x, signed), (x.abs(), unsigned)):
        off = (compacted(own, Compaction(None, bits)) - own).abs().amax(1) / own.abs().amax(1)
        assert off.max() <= 1.001 / levels


def test_levels_lie_closer_near_zero():
    x = torch.tensor([[1.0, 0.011, 0.0001]])
    rounded = compacted(x, Compaction(None, 8))
    assert abs(rounded[0, 1] - 0.011) < 0.001 * 0.011 + 1 / 255**2 * 30
    assert rounded[0, 2] > 0  # equal steps of 1/255 would have lost it


def test_negative_entries_that_round_to_nothing_leave_finer_levels():
    x = torch.tensor([[1.0, 0.5, -1e-6]])
    assert torch.equal(compacted(x, Compaction(None, 4)), compacted(x.clamp(min=0), Compaction(None, 4)))


def test_negative_entries_go_where_a_sign_would_lose_more():
    stream = torch.Generator().manual_seed(0)
    x = torch.rand(5, 200, generator=stream)
    x[:, ::4] = -0.02  # in all a hundredth of what there is
    small = compacted(x, Compaction(None, 4))
    assert not bool((small < 0).any())
    assert torch.equal(small, compacted(x.clamp(min=0), Compaction(None, 4)))
    x[:, ::4] = -0.6
    assert bool((compacted(x, Compaction(None, 4)) < 0).any())
    x = torch.rand(5, 200, generator=stream)
    x[0, 0] = -1.5  # the largest of its row stays, whatever the others lose by its sign
    assert float(compacted(x, Compaction(None, 4))[0, 0]) == -1.5


def test_no_negative_zero_is_left():
    x = torch.tensor([[-1.0, -0.5, -0.0]])
    for bits in (4, 32):
        assert not torch.signbit(compacted(x, Compaction(1, bits))[0, 1:]).any()


@given(
    n=st.integers(1, 5),
    classes=st.sampled_from([1, 2, 7, 64, 65, 300]),
    sharp=st.sampled_from([0.0, 1.0, 30.0]),
    seed=st.integers(0, 2**32),
)
def test_rounded_labels_are_shares_and_stay(n, classes, sharp, seed):
    y = (sharp * torch.randn(n, classes, generator=torch.Generator().manual_seed(seed))).softmax(1)
    once = rounded_labels(y)
    assert torch.equal(rounded_labels(once), once)
    assert (once >= 0).all()
    torch.testing.assert_close(once.sum(1), torch.ones(n), rtol=0, atol=1e-5)
    assert (once - y).abs().max() <= 1.01 / 255


def test_certain_labels_stay_certain():
    y = torch.eye(5)
    assert torch.equal(rounded_labels(y), y)


def test_weights_of_edges():
    weight = torch.tensor([1e9, 1.0, 3e8])
    once = rounded_weights(weight)
    assert torch.equal(rounded_weights(once), once)
    torch.testing.assert_close(once[[0, 2]], weight[[0, 2]], rtol=1e-3, atol=0)
    assert rounded_weights(torch.empty(0)).shape == (0,)


@pytest.mark.parametrize("entries", [0, -1, 2.5, "3", True])
def test_entries_that_cannot_be(entries):
    with pytest.raises(GcondError, match="is no number of entries per row: give 1 or more"):
        Compaction(entries)


@pytest.mark.parametrize("bits", [0, 1, 7, 64, "8", None, True])
def test_bits_that_cannot_be(bits):
    with pytest.raises(GcondError, match=r"cannot be: give 4, 8, 16, 32"):
        Compaction(3, bits)
