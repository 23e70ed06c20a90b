"""Edges on their way into a packed store: as entries that one number orders, sorted on disk, and each pair once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gcond.data.store_writing import StoreWriter
from gcond.graph.validation import Repairs
from gcond.runtime.progress_tick import Tick

if TYPE_CHECKING:
    from gcond.data.out_of_core import OutOfCore

ROWS = 2**20
"""Rows whose ends are written together."""

EdgeBlock: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Sources and targets, int64 [k], and weights, float32 [k]."""


class SortedEdges:
    """``indptr``, ``indices`` and ``weights`` of a store, made of edges in any order.

    Loops and edges of weight 0 are dropped, a pair that is listed twice keeps its heaviest weight, and an edge gets its
    reverse unless the graph is ``directed``; what was needed of this is counted in ``repairs``.
    """

    def __init__(self, n: int, *, weighted: bool, directed: bool) -> None:
        self.repairs = Repairs()
        self.listed = 0
        """Edges that were given."""
        self._n, self._weighted, self._directed = n, weighted, directed
        self._entries = 0
        """Entries that go through the sort."""

    def write(self, blocks: Iterable[EdgeBlock], engine: OutOfCore, store: StoreWriter, tick: Tick, total: int) -> None:
        """Sort ``blocks``, about ``total`` edges, and write them."""
        import pyarrow as pa

        schema = pa.schema([("key", pa.uint64()), *([("weight", pa.float32())] if self._weighted else [])])

        def batches() -> Iterator[pa.RecordBatch]:
            for block in blocks:
                columns = [pa.array(column) for column in self._keys(*block) if column is not None]
                tick("reading edges", self.listed, max(self.listed, total))
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        weighs = False
        done = 0
        starts = _RowStarts(store, self._n)
        with store.array("indices") as indices, store.array("weights") as weights:
            for target, source, weight in self._merged(engine.sorted(schema, batches(), "key")):
                starts.add(target)
                indices.append(source)
                if weight is not None:
                    weights.append(weight)
                    weighs = weighs or bool((weight != 1).any())
                done += len(target)
                tick("sorting edges", done, self._entries)
        starts.finish()
        if not weighs:
            store.drop("weights")

    def _keys(
        self, source: np.ndarray, target: np.ndarray, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """uint64 [k]: target, source and whether it is a reverse, in this order, and the weights."""
        import torch

        from gcond.graph import validation as checks

        checks.ends_exist(torch.from_numpy(np.stack([source, target])), self._n)
        loops = source == target
        keep = ~loops
        self.repairs.loops += int(loops.sum())
        if weight is not None:
            checks.usable_weights(torch.from_numpy(weight), lambda at: f"edge {self.listed + at}")
            self.repairs.empty += int((weight == 0).sum())
            keep &= weight > 0
            weight = weight[keep]
        self.listed += len(source)
        one, other = (end[keep].astype(np.uint64) for end in (source, target))
        self.repairs.repeated += len(one)  # less what is left of them when all are merged
        key = other << np.uint64(32) | one << np.uint64(1)
        if not self._directed:
            key = np.concatenate([key, one << np.uint64(32) | other << np.uint64(1) | np.uint64(1)])
            weight = np.concatenate([weight, weight]) if weight is not None else None
        self._entries += len(key)
        return key, weight

    def _merged(self, batches: Iterable[Any]) -> Iterator[EdgeBlock]:
        """Targets, sources and heaviest weights of sorted entries, each pair once."""
        key, weight = np.empty(0, np.uint64), np.empty(0, np.float32)
        for batch in batches:
            key = np.concatenate([key, batch.column(0).to_numpy()])
            if self._weighted:
                weight = np.concatenate([weight, batch.column(1).to_numpy()])
            pair = key >> np.uint64(1)
            last = int(np.searchsorted(pair, pair[-1]))  # the rest of it may be yet to come
            if last:
                yield self._each_once(key[:last], weight[:last])
            key, weight = key[last:], weight[last:]
        if len(key):
            yield self._each_once(key, weight)

    def _each_once(self, key: np.ndarray, weight: np.ndarray) -> EdgeBlock:
        pair, listed = key >> np.uint64(1), (key & np.uint64(1)) == 0
        starts = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
        own = listed[starts]  # of one pair, what is listed comes before reverses
        self.repairs.repeated -= int(own.sum())
        self.repairs.one_way += int((~own).sum())
        heaviest = None
        if self._weighted:
            heaviest = np.maximum.reduceat(weight, starts)
            lighter = np.maximum.reduceat(np.where(listed, weight, 0), starts) < heaviest
            self.repairs.uneven += int((own & lighter).sum())
        pair = pair[starts]
        return (pair >> np.uint64(31)).astype(np.int64), (pair & np.uint64(2**31 - 1)).astype(np.int32), heaviest


class _RowStarts:
    """``indptr`` of sorted rows that come in blocks."""

    def __init__(self, store: StoreWriter, n: int) -> None:
        self._file = store.array("indptr")
        self._n = n
        self._row = 0
        """The row that is not complete yet; all before it are written."""
        self._file.append(np.zeros(1, np.int64))
        self.entries = 0

    def add(self, rows: np.ndarray) -> None:
        """Count the entries of ``rows``, int64 [k], which go on from where the last ones ended."""
        values, counts = np.unique(rows, return_counts=True)
        ends = self.entries + np.cumsum(counts)
        self._close(int(values[0]))
        # Row values[i] and the empty ones up to the next end at ends[i]; the last may go on in the next block.
        for at in range(0, len(values) - 1, ROWS):
            part = slice(at, min(at + ROWS, len(values) - 1))
            gaps = np.diff(values)[part]
            for lot in np.array_split(np.arange(len(gaps)), max(1, -(-int(gaps.sum()) // (4 * ROWS)))):
                self._file.append(np.repeat(ends[part][lot], gaps[lot]))
        self._row = int(values[-1])
        self.entries = int(ends[-1])

    def _close(self, row: int) -> None:
        """Write the ends of the open row and of all before ``row``."""
        for start in range(self._row, row, ROWS):
            self._file.append(np.full(min(ROWS, row - start), self.entries, np.int64))
        self._row = max(self._row, row)

    def finish(self) -> None:
        self._close(self._n)
        self._file.close()
