"""``gcond.synthesize``: made-up graphs larger than memory, written as tables in many files.

The model is that of ``synthetic_graphs``, a degree-corrected block model with class centres in Gaussian noise, made so
that nothing has to be held. Nodes have a *position*, in which classes lie one after the other and within a class the
nodes with most edges come first; the id of a node is its position times a number that shares no factor with N, modulo
N, so both ways cost a product. Every block of nodes and of edges has a random stream of its own. So the tables hold
the same numbers for the same seed, however many files they are cut into.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gcond.config.settings import build, whole_number
from gcond.errors import GcondError
from gcond.runtime.folders import atomic_folder
from gcond.runtime.progress_tick import Tick, ignore
from gcond.runtime.torch_settings import with_usual_torch

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

NODE_BLOCK, EDGE_BLOCK = 2**15, 2**20
"""Rows that are drawn together, from one stream; changing them changes the graph of a seed."""
CENTRE_BLOCK = 2**62
"""The number of the stream for what belongs to no block."""


@dataclass(frozen=True)
class SyntheticTables:
    """A made-up graph as tables: its size, how classes and degrees are distributed, and what its features tell."""

    nodes: int
    edges: int
    """Rows of the edge table; a pair that is drawn twice is merged by whoever reads it."""
    features: int = 128
    classes: int = 40
    homophily: float = 0.65
    """Share of edges that join two nodes of the same class."""
    signal: float = 1.6
    """Distance of a class centre from the origin, in standard deviations of the noise."""
    class_skew: float = 0.7
    """Class of rank r has size ~ r^-skew; 0 makes all alike."""
    degree_skew: float = 2.0
    """A class's node of rank r is an end with probability ~ r^(1/skew - 1): at 2 degrees have a tail ~ k^-3; 1 makes
    all alike."""
    train: float = 0.1
    """Share of the nodes."""
    val: float = 0.02
    """Share of the nodes; the rest is for testing."""

    def __post_init__(self) -> None:
        if self.classes < 1 or self.features < 1 or self.edges < 0:
            raise ValueError("classes and features must be at least 1, and edges not negative")
        if self.nodes < 3 * self.classes:
            raise ValueError(f"{self.nodes} nodes are too few for {self.classes} classes: use three per class or more")
        if self.nodes >= 2**31:
            raise ValueError(f"nodes must be below {2**31}")
        if not 0 <= self.homophily <= 1 or (self.classes == 1 and self.homophily < 1):
            raise ValueError("homophily must be between 0 and 1, and with one class it is 1")
        if self.class_skew < 0 or self.signal < 0 or not 1 <= self.degree_skew <= 10:
            raise ValueError("class_skew and signal must not be negative, and degree_skew must be from 1 to 10")
        if not (self.train > 0 and self.val >= 0 and self.train + self.val <= 1):
            raise ValueError("train must be positive, and train and val together at most 1")

    @property
    def bytes(self) -> int:
        """About the size of the tables."""
        return self.nodes * (4 * self.features + 16) + 8 * self.edges


@with_usual_torch
def synthesize(
    folder: str | Path,
    *,
    nodes: int,
    edges: int,
    seed: int = 0,
    shards: int = 1,
    force: bool = False,
    threads: int | None = None,
    tick: Tick = ignore,
    **settings: Any,
) -> SyntheticTables:
    """Write a made-up graph as ``shards`` Parquet files of nodes and as many of edges into the new ``folder``.

    ``settings`` are the fields of :class:`SyntheticTables`. The same seed gives the same rows, whatever the ``shards``
    and ``threads``. It holds a few blocks of rows, whatever the size of the graph.
    """
    spec = build(SyntheticTables, {"nodes": nodes, "edges": edges, **settings}, "synthesize")
    seed, shards = whole_number(seed, "seed"), whole_number(shards, "shards", least=1)
    if shards > min(spec.nodes, max(1, spec.edges)):
        raise GcondError(f"shards={shards} are more than there are rows: use fewer")
    maker = _Maker(spec, seed)
    with (
        atomic_folder(folder, force=force) as place,
        ThreadPoolExecutor(threads or min(2, os.cpu_count() or 1)) as pool,
    ):
        _require_disk(spec.bytes, place, Path(folder))
        tables: tuple[tuple[str, int, int, Callable[[int], pyarrow.Table]], ...] = (
            ("nodes", spec.nodes, NODE_BLOCK, maker.nodes),
            ("edges", spec.edges, EDGE_BLOCK, maker.edges),
        )
        for name, rows, size, make in tables:
            blocks = _in_order(pool, make, -(-rows // size))
            files = [place / f"{name}-{at:0{len(str(shards - 1))}d}.parquet" for at in range(shards)]
            _write(blocks, files, rows, make(0).schema, partial(tick, name))
    return spec


def _require_disk(needed: int, place: Path, folder: Path) -> None:
    import shutil

    free = shutil.disk_usage(place).free
    if needed > free:
        raise GcondError(
            f"the tables take about {needed / 10**9:.1f} GB, and the disk of '{folder.parent}' has "
            f"{free / 10**9:.1f} GB free: free some, or write elsewhere"
        )


def _in_order(pool: ThreadPoolExecutor, make: Callable[[int], T], count: int) -> Iterator[T]:
    """``make(0)``, ``make(1)`` …, a few of them at work ahead of the one that is asked for."""
    waiting: deque[Future[T]] = deque()
    for at in range(count):
        waiting.append(pool.submit(make, at))
        if len(waiting) > 4:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _write(
    blocks: Iterator[pyarrow.Table],
    files: list[Path],
    rows: int,
    schema: pyarrow.Schema,
    hear: Callable[[int, int], None],
) -> None:
    """All rows, cut into files of equal length."""
    from pyarrow import parquet

    ends = [rows * (at + 1) // len(files) for at in range(len(files))]
    done = 0
    block = schema.empty_table()
    for path, end in zip(files, ends, strict=True):
        # Numbers at random gain nothing from dictionaries and compression, which would be most of the time.
        with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=["split"]) as writer:
            while done < end:
                if block.num_rows == 0:
                    block = next(blocks)
                piece = block.slice(0, end - done)
                block = block.slice(piece.num_rows)
                writer.write_table(piece)
                done += piece.num_rows
                hear(done, rows)


class _Maker:
    """Blocks of the two tables."""

    def __init__(self, spec: SyntheticTables, seed: int) -> None:
        self._spec, self._seed = spec, seed
        n = spec.nodes
        share = np.arange(1, spec.classes + 1, dtype=float) ** -spec.class_skew
        free = n - 3 * spec.classes
        ends = np.floor(np.cumsum(share / share.sum()) * free + 0.5).astype(np.int64)
        self._sizes = 3 + np.diff(ends, prepend=0)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._shares = self._sizes / n
        stream = self._stream("centres", CENTRE_BLOCK)
        self._step = int(stream.integers(n // 3 + 1, n)) if n > 3 else 1
        while math.gcd(self._step, n) > 1:
            self._step += 1
        self._back = pow(self._step, -1, n)
        centres = stream.standard_normal((spec.classes, spec.features), dtype=np.float32)
        self._centres = centres * (spec.signal / np.linalg.norm(centres, axis=1, keepdims=True))

    def _stream(self, purpose: str, block: int) -> np.random.Generator:
        from gcond.runtime.seeds import generator

        root = generator(self._seed, f"synthesize/{purpose}").initial_seed()
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence([root, block])))

    def nodes(self, block: int) -> pyarrow.Table:
        """Ids, labels, parts and features of one block."""
        import pyarrow as pa

        spec, stream = self._spec, self._stream("nodes", block)
        ids = np.arange(block * NODE_BLOCK, min((block + 1) * NODE_BLOCK, spec.nodes))
        position = ids * self._back % spec.nodes
        label = np.searchsorted(self._starts, position, side="right") - 1
        point = stream.random(len(ids))
        part = np.where(point < spec.train, 0, np.where(point < spec.train + spec.val, 1, 2)).astype(np.int32)
        part[position == self._starts[label]] = 0  # so that every class trains
        x = stream.standard_normal((len(ids), spec.features), dtype=np.float32)
        x += self._centres[label]
        words = pa.DictionaryArray.from_arrays(pa.array(part), pa.array(["train", "val", "test"]))
        return pa.table(
            {
                "id": pa.array(ids),
                "label": pa.array(label.astype(np.int32)),
                "split": words.cast(pa.string()),
                "x": pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), spec.features),
            }
        )

    def edges(self, block: int) -> pyarrow.Table:
        """Sources and targets of one block."""
        import pyarrow as pa

        spec, stream = self._spec, self._stream("edges", block)
        count = min((block + 1) * EDGE_BLOCK, spec.edges) - block * EDGE_BLOCK
        bounds = np.cumsum(self._shares)

        def pick(point: np.ndarray) -> np.ndarray:
            return np.minimum(np.searchsorted(bounds, point, side="right"), spec.classes - 1)

        one = pick(stream.random(count))
        alike = stream.random(count) < spec.homophily
        own, before = self._shares[one], bounds[one] - self._shares[one]
        point = stream.random(count) * (1 - own)
        point += np.where(point >= before, own, 0)  # passes over the class itself
        other = np.where(alike, one, pick(point))
        source, target = self._members(one, stream), self._members(other, stream)
        first, size = self._starts[other], self._sizes[other]
        target = np.where(source == target, first + (target - first + 1) % size, target)
        return pa.table({"source": pa.array(self._ids(source)), "target": pa.array(self._ids(target))})

    def _members(self, label: np.ndarray, stream: np.random.Generator) -> np.ndarray:
        """A position in each class of ``label``, by degree."""
        rank = stream.random(len(label)) ** self._spec.degree_skew * self._sizes[label]
        return self._starts[label] + rank.astype(np.int64)

    def _ids(self, position: np.ndarray) -> np.ndarray:
        return (position * self._step % self._spec.nodes).astype(np.int32)
