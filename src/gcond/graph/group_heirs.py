"""Which group of nodes goes on in which, after nodes came, went or moved."""

from __future__ import annotations

import torch
from torch import Tensor


def continued(before: Tensor, now: Tensor, old: int, new: int) -> tuple[Tensor, Tensor]:
    """For each of ``new`` groups the one of ``old`` that it goes on from, or -1, and the nodes that both have: [new].

    ``before`` and ``now`` are the groups of each source node, int64 [N], -1 for none. A group goes on in the one that
    has most of it, and from the one that it has most of.
    """
    both = (before >= 0) & (now >= 0)
    shared = torch.bincount(now[both] * old + before[both], minlength=new * old).view(new, old)
    size, origin = shared.max(1)
    heir = shared.argmax(0)
    follows = torch.where((size > 0) & (heir[origin] == torch.arange(new)), origin, -1)
    return follows, size
