"""Refuse what cannot fit before it is read, when a header already tells its size."""

from __future__ import annotations

from gcond.errors import GcondError
from gcond.runtime.memory import available_bytes


def require(needed: int, what: str) -> None:
    """``needed`` bytes must be free for ``what``."""
    free = available_bytes()
    if needed > free:
        raise GcondError(
            f"{what} needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free: "
            "use a machine with more, or a smaller graph"
        )
