"""Progress: long work tells how far it is, and whoever shows that listens."""

from __future__ import annotations

from typing import Protocol


class Tick(Protocol):
    """A listener to the progress of a piece of work."""

    def __call__(self, what: str, done: float, total: float, detail: str = "") -> None:
        """``done`` of ``total`` of the work called ``what``; ``detail`` may change while the work stays the same."""


def ignore(what: str, done: float, total: float, detail: str = "") -> None:
    """The :class:`Tick` of work that nobody watches."""


def count(done: float, total: float, unit: str) -> str:
    """How much of what: ``3.2 of 12.8 M rows``."""
    size, letter = next((each for each in _SIZES if total >= each[0]), (1, ""))
    digits = 1 if size > 1 else 0
    return f"{done / size:,.{digits}f} of {total / size:,.{digits}f} {letter}{unit}"


_SIZES = ((10**9, "G "), (10**6, "M "), (10**3, "k "))
