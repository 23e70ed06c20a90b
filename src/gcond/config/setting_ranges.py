"""The values of a setting that a search may try: a range from one number to another, or a list of choices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from gcond.errors import GcondError

Number: TypeAlias = int | float
Value: TypeAlias = str | bool | int | float

DOTS = ".."
# What a search draws has no more digits than a person would type, so that what is printed is what was trained.
DIGITS = 3
# A range of positive numbers that spans more than this factor is searched by its logarithm.
WIDE = 10


@dataclass(frozen=True)
class Range:
    """The numbers from ``low`` to ``high``, both included; whole ones where both ends are."""

    low: Number
    high: Number
    log: bool = False
    """Whether they are drawn by their logarithm, as rates are."""
    step: float | None = None
    """Between two numbers that may be drawn; any number of :data:`DIGITS` digits where there is none."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError("a range goes from a number to a greater one")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError("a range that is drawn by its logarithm starts above 0 and has no step")
        if self.step is not None and self.step <= 0:
            raise ValueError("the step of a range is above 0")

    def __str__(self) -> str:
        return f"{self.low:g}{DOTS}{self.high:g}"

    @property
    def whole(self) -> bool:
        """Whether its numbers are whole ones."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def holds(self, value: Any) -> bool:
        """Whether ``value`` could be drawn."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        if self.whole:
            return isinstance(value, int)
        steps = (value - self.low) / self.step if self.step is not None else 0.0
        return math.isclose(steps, round(steps), abs_tol=1e-9)

    def rounded(self, value: Number) -> Number:
        """What was drawn as it is trained with: within the range, and of few digits."""
        return value if self.whole else min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)


@dataclass(frozen=True)
class Choices:
    """Some values, in no order that a search would know of."""

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("there is nothing to choose from")

    def __str__(self) -> str:
        return ",".join(map(str, self.values))

    def holds(self, value: Any) -> bool:
        return any(type(value) is type(one) and value == one for one in self.values)


SettingRange: TypeAlias = Range | Choices


def read_range(key: str, given: Any) -> SettingRange:
    """The values of setting ``key`` as a person gave them: ``"0.001..0.1"``, or a list of choices.

    A wide range of positive numbers is searched by its logarithm, a narrow one and one from 0 as it is.
    """
    if isinstance(given, Range | Choices):
        return given
    listed = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if not any(isinstance(one, str) and DOTS in one for one in listed):
        if not listed:
            raise GcondError(f"the grid has no value for '{key}': give some, for example {key}=1,2")
        return Choices(tuple(dict.fromkeys(listed)))
    if len(listed) > 1:
        raise GcondError(f"'{key}' has a range beside other values: give one range, or values with commas between")
    low, _, high = (part.strip() for part in str(listed[0]).partition(DOTS))
    try:
        ends = _number(low), _number(high)
    except ValueError:
        raise GcondError(f"'{listed[0]}' is no range of '{key}': give two numbers, such as 1..4") from None
    return between(key, *ends)


def between(key: str, low: Number, high: Number) -> Range:
    """The range of setting ``key`` from ``low`` to ``high``."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise GcondError(f"'{low}{DOTS}{high}' is no range of '{key}': it must go from a number to a greater one")
    return Range(low, high, log=low > 0 and WIDE * low < high)


def _number(text: str) -> Number:
    try:
        return int(text)
    except ValueError:
        return float(text)
