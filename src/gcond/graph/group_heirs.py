"""Which group of nodes goes on in which, after nodes came, went or moved."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def continued(before: Tensor, now: Tensor, old: int, new: int) -> tuple[Tensor, Tensor]:
    """For each of ``new`` groups the one of ``old`` that it goes on from, or -1, and the nodes that both have: [new].

    ``before`` and ``now`` are the groups of each source node, int64 [N], -1 for none. A group goes on in the one that
    has most of it, and from the one that it has most of; of equals the first.
    """
    both = (before >= 0) & (now >= 0)
    pairs, shared = (now[both] * old + before[both]).unique(return_counts=True)
    order = shared.argsort(descending=True, stable=True)
    shared, heir, origin = shared[order], pairs[order] // max(1, old), pairs[order] % max(1, old)
    # The first pair of a group, in this order, is the one that shares most.
    heirs, at = (torch.from_numpy(each) for each in np.unique(heir.numpy(), return_index=True))
    origins, first = (torch.from_numpy(each) for each in np.unique(origin.numpy(), return_index=True))
    size, follows = torch.zeros(new, dtype=torch.long), torch.full((new,), -1)
    size[heirs] = shared[at]
    best = torch.full((old,), -1)
    best[origins] = heir[first]
    mutual = best[origin[at]] == heirs
    follows[heirs[mutual]] = origin[at[mutual]]
    return follows, size
