"""How far a piece of work is: what long work tells, and whoever shows it listens to."""

from __future__ import annotations

from typing import Protocol


class Tick(Protocol):
    """How far a piece of work is."""

    def __call__(self, what: str, done: float, total: float, detail: str = "") -> None:
        """``done`` of ``total`` of the work called ``what``; ``detail`` may change while the work stays the same."""


def ignore(what: str, done: float, total: float, detail: str = "") -> None:
    """The :class:`Tick` of work that nobody watches."""
