"""The number of CPU threads that torch uses."""

from __future__ import annotations

from gcond.config.settings import whole_number


def use_threads(count: int | None) -> None:
    """Let torch use ``count`` CPU threads; ``None`` leaves it as it is."""
    if count is None:
        return
    count = whole_number(count, "threads", least=1)
    import torch

    torch.set_num_threads(count)
