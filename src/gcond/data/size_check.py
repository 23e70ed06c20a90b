"""A check of free memory before a file is read, where its header tells how much it takes."""

from __future__ import annotations

from gcond.errors import GcondError
from gcond.runtime.memory import available_bytes


def require_memory(needed: int, what: str) -> None:
    """Refuse ``what`` where the ``needed`` bytes are not free."""
    free = available_bytes()
    if needed > free:
        raise GcondError(
            f"{what} needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free: "
            "use a machine with more, or a smaller graph"
        )
