"""Progress: long work tells how far it is, and whoever shows that listens."""

from __future__ import annotations

from typing import Protocol


class Tick(Protocol):
    """A listener to the progress of a piece of work."""

    def __call__(self, what: str, done: float, total: float, detail: str = "") -> None:
        """``done`` of ``total`` of the work called ``what``; ``detail`` may change while the work stays the same."""


def ignore(what: str, done: float, total: float, detail: str = "") -> None:
    """The :class:`Tick` of work that nobody watches."""
