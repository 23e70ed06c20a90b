"""The arrays of an adjacency as a task on another machine has them: in memory, in pieces that were sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Pieces:
    """An array of one dimension in pieces of ``step`` entries, the last of which may be shorter."""

    parts: tuple[Any, ...]
    """The pieces, or where it is on its way, what an engine has put for them."""
    step: int
    length: int

    @staticmethod
    def spans(length: int, step: int) -> Iterator[tuple[int, int]]:
        """Where pieces begin and end; there is one at least."""
        return ((start, min(start + step, length)) for start in range(0, max(length, 1), step))

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, where: slice) -> np.ndarray:
        """Some neighbouring entries, as an array of its own."""
        start, stop, _ = where.indices(self.length)
        first = min(start // self.step, len(self.parts) - 1)
        places = range(first, max(first, (stop - 1) // self.step) + 1)
        return np.concatenate([self.parts[at][max(0, start - at * self.step) : stop - at * self.step] for at in places])


@dataclass(frozen=True, eq=False)
class SentAdjacency:
    """The adjacency of a :class:`~gcond.graph.stored_arrays.StoredArrays`, and nothing else of it."""

    indptr: Pieces
    indices: Pieces
    weights: Pieces | None
    scale: Pieces
    directed: bool

    @property
    def num_nodes(self) -> int:
        return len(self.scale)
