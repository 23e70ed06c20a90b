"""Work that could not be done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """Something that could not be done, and why."""

    what: str
    error: str
