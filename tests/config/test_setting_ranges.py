"""Ranges and choices of settings: what is drawn lies inside, and what is no range is refused in one sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from gcond.config.setting_ranges import Choices, Range, SettingRange, read_range
from gcond.errors import GcondError

FINITE = st.floats(-1e6, 1e6, allow_nan=False)


@given(FINITE, FINITE, st.floats(0, 1))
def test_rounding_never_leaves_the_range(one: float, other: float, share: float) -> None:
    if one == other:
        return
    where = Range(min(one, other), max(one, other))
    value = min(max(where.low + share * (where.high - where.low), where.low), where.high)
    rounded = where.rounded(value)
    assert where.low <= rounded <= where.high
    assert where.holds(rounded)
    assert rounded in (where.low, where.high) or rounded == float(f"{value:.3g}")


@given(st.integers(-50, 50), st.integers(1, 50), st.integers(-200, 200))
def test_a_range_of_whole_numbers_holds_whole_numbers(low: int, width: int, value: int) -> None:
    where = Range(low, low + width)
    assert where.whole
    assert where.holds(value) == (low <= value <= low + width)
    assert not where.holds(float(value) + 0.5)
    assert not where.holds(True)


@given(st.one_of(st.builds(lambda low, width: Range(low, low + width), FINITE, st.floats(1, 9)), st.integers(1, 9)))
def test_they_survive_json(where: Range | int) -> None:
    made: SettingRange = where if isinstance(where, Range) else Choices((where, "relu", 0.5, True))
    reader: TypeAdapter[SettingRange] = TypeAdapter(SettingRange)
    found = reader.validate_json(reader.dump_json(made))
    assert found == made
    assert str(found) == str(made), "1 stays 1, and 1.0 stays 1.0"


def test_steps() -> None:
    where = Range(0.0, 0.8, step=0.1)
    assert where.holds(0.0)
    assert where.holds(0.1 + 0.2)
    assert not where.holds(0.25)
    assert where.rounded(0.1 + 0.2) == 0.3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0.001..0.1", Range(0.001, 0.1, log=True)),
        (["0.001..0.1"], Range(0.001, 0.1, log=True)),
        ("2..4", Range(2, 4)),
        ("0..0.8", Range(0, 0.8)),
        ("16..512", Range(16, 512, log=True)),
        ([16, 64, 16], Choices((16, 64))),
        ("relu", Choices(("relu",))),
        (7, Choices((7,))),
        (Range(1, 2), Range(1, 2)),
        (Choices((1,)), Choices((1,))),
    ],
)
def test_as_people_give_them(given: object, expected: SettingRange) -> None:
    assert read_range("x", given) == expected


@pytest.mark.parametrize(
    "given", ["4..2", "2..2", "a..b", "1..", "..", "nan..1", "0..inf", ["1..2", "3"], [], "1..2..3"]
)
def test_what_is_no_range_is_refused_in_one_sentence(given: object) -> None:
    with pytest.raises(GcondError, match="'x'") as said:
        read_range("x", given)
    assert ":" in str(said.value)
    assert "\n" not in str(said.value)


@pytest.mark.parametrize("broken", [{"low": 2, "high": 1}, {"low": 0.0, "high": 1.0, "log": True}, {"values": []}])
def test_a_damaged_one_is_not_read(broken: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        TypeAdapter(SettingRange).validate_python(broken)
