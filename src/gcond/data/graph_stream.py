"""A graph in a foreign folder that is read piece by piece, whole into memory or on into a packed store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcond.data.load_request import Request
from gcond.data.size_check import require_memory
from gcond.data.splits import Split
from gcond.graph import Setting, SourceGraph
from gcond.graph.feature_kinds import FeatureChoice


@dataclass(frozen=True)
class GraphStream:
    """Features, labels and edges as blocks, which can be asked for more than once; nodes are numbered from 0."""

    nodes: int
    features: int
    x: Callable[[], Iterator[Tensor]]
    """float32 [k, d], node after node."""
    y: Callable[[], Iterator[Tensor]]
    """int64 [k], node after node; -1 is unlabelled."""
    split: Split
    edges: Callable[[], Iterator[Tensor]]
    """int [2, k]: sources above targets."""
    about_edges: int
    """How many edges there are; a guess where only reading tells."""
    usual: FeatureChoice
    default: Setting = "transductive"
    listed_once: bool = False
    """Whether the files list an undirected edge once, so that papers count what they list."""

    def load(self, request: Request, what: str) -> SourceGraph:
        """The whole graph in memory; ``what`` names it in messages."""
        require_memory(3 * 4 * self.nodes * self.features, f"{what} ({self.nodes} by {self.features})")
        y = torch.cat(list(self.y()))
        blocks = list(self.edges())
        edge_index = torch.cat(blocks, 1) if blocks else torch.empty(2, 0, dtype=torch.long)
        del blocks
        x = torch.empty(self.nodes, self.features)
        start = 0
        for block in self.x():
            x[start : start + len(block)] = block
            start += len(block)
        return request.build(
            self.split,
            default=self.default,
            usual=self.usual,
            x=x,
            edge_index=edge_index,
            y=y,
            listed_edges=edge_index.shape[1] if self.listed_once else None,
        )


def part_codes(split: Split, n: int) -> np.ndarray:
    """int8 [n] of a split by node ids: 0 is no part, then training, validation and test; overlaps are refused."""
    from gcond.graph import validation as checks
    from gcond.graph.source_graph import PARTS

    codes = np.zeros(n, dtype=np.int8)
    for code, ids in enumerate((split.train, split.val, split.test), 1):
        nodes = ids.numpy()
        taken = codes[nodes]
        for earlier in range(1, code):
            if shared := len(np.unique(nodes[taken == earlier])):
                raise checks.overlap(shared, PARTS[earlier - 1], PARTS[code - 1])
        codes[nodes] = code
    return codes
