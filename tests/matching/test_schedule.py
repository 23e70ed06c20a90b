"""Whose turn it is."""

from __future__ import annotations

import pytest

from gcond.matching.schedule import Schedule


def turns(schedule, epochs):
    """``X`` or ``S`` or ``B``, an epoch each: X', the structure, or both learn."""
    names = {(True, False): "X", (False, True): "S", (True, True): "B"}
    return "".join(names[schedule.learns(epoch)] for epoch in range(epochs))


@pytest.mark.parametrize(
    ("order", "expected"),
    [("structure-first", "SSXXXSSXXXSS"), ("features-first", "XXXSSXXXSSXX"), ("joint", "BBBBBBBBBBBB")],
)
def test_turns(order, expected):
    assert turns(Schedule(order, features_epochs=3, structure_epochs=2), 12) == expected


def test_released_turns():
    """``epoch % 50 < 10`` is the structure's."""
    schedule = Schedule("structure-first", 40, 10)
    assert all(schedule.learns(epoch) == (epoch % 50 >= 10, epoch % 50 < 10) for epoch in range(120))


@pytest.mark.parametrize("epochs", [(0, 1), (1, 0), (-1, 1)])
def test_a_turn_has_an_epoch_at_least(epochs):
    with pytest.raises(ValueError, match="must be at least 1"):
        Schedule("joint", *epochs)
