"""How many CPU threads torch uses."""

from __future__ import annotations

from gcond.errors import GcondError


def use_threads(count: int | None) -> None:
    """Let torch use ``count`` CPU threads; ``None`` leaves it as it is."""
    if count is None:
        return
    if count < 1:
        raise GcondError(f"{count} threads are too few: use --threads 1 or more")
    import torch

    torch.set_num_threads(count)
