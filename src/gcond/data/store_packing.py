"""One store in the making: nodes are appended in their order, then edges are sorted, and all is checked."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcond.data.edge_sorting import EdgeBlock, SortedEdges
from gcond.data.load_request import Request
from gcond.data.store_format import Facts
from gcond.data.store_writing import StoreWriter
from gcond.errors import GcondError
from gcond.graph import Setting
from gcond.graph import validation as checks
from gcond.graph.stored_arrays import TRAIN
from gcond.runtime.memory import available_bytes, hand_back, held_bytes
from gcond.runtime.progress_tick import Tick

if TYPE_CHECKING:
    from torch import Tensor

    from gcond.data.graph_stream import GraphStream
    from gcond.data.out_of_core import OutOfCore
    from gcond.data.table_features import SparseRows

SAFE_SHARE = 0.75
"""Of the memory that is free, what is used where no limit is given."""
SLACK = 150 * 10**6
"""Room for blocks of tables, keys and buffers beside what the process holds and what sorting takes."""
GROWTH = 100 * 10**6
"""What a process holds more when nodes have been read, by what it has imported and by holes between blocks."""
MOST_NODES = 2**31 - 1
ROWS = 2**20
"""Rows of per-node arrays that are looked at together."""
SPILLED = "spilled"
"""The folder in the unfinished store for what sorting does not keep in memory."""


@dataclass(frozen=True)
class Plan:
    """The memory, threads and listener of one packing."""

    limit: int | None
    threads: int
    tick: Tick

    def left(self) -> int:
        """Bytes that may still be taken."""
        return int(SAFE_SHARE * available_bytes()) if self.limit is None else self.limit - held_bytes()

    def require(self, needed: int, what: str, remedy: str = "") -> None:
        """Refuse ``what`` where ``needed`` more bytes are over the limit."""
        if needed > self.left():
            least = -(-(held_bytes() + needed) // 10**6) + 1
            over = "what is free" if self.limit is None else f"a memory limit of {self.limit / 10**6:.0f} MB"
            raise GcondError(
                f"{what} takes the process to about {least} MB, which is over {over}: "
                f"use memory='{least}MB' or more{remedy}"
            )

    def require_whole(self, path: Path) -> None:
        """Refuse a file that is read at once and cannot fit."""
        if self.limit is not None and path.is_file():
            self.require(3 * path.stat().st_size, f"reading '{path}', which has to be held,")


class Packing:
    """A store, what is known of its graph so far, and the means to go on."""

    def __init__(self, store: StoreWriter, plan: Plan, out: Path) -> None:
        self.store, self.plan = store, plan
        self.nodes = 0
        """Nodes that are appended."""
        self._out = out
        self._edges: SortedEdges | None = None
        self._sparse_entries = 0

    def require_disk(self, needed: int) -> None:
        """Refuse what the disk has no room for, before any work."""
        free = shutil.disk_usage(self.store.folder).free
        if needed > free:
            raise GcondError(
                f"packing takes about {needed / 10**9:.1f} GB of disk, sorting included, and the disk of "
                f"'{self._out.parent}' has {free / 10**9:.1f} GB free: free some, or write elsewhere"
            )

    def require_engine(self, *, growth: int = 0) -> None:
        """Refuse, before any work, to go on without DuckDB or without the memory for it.

        ``growth`` is what the process will hold more by the time that the engine is opened.
        """
        from gcond.data.out_of_core import LEAST, OVERHEAD, require_duckdb

        require_duckdb()
        hand_back()
        self.plan.require(SLACK + LEAST + OVERHEAD + growth, "packing")

    def engine(self) -> OutOfCore:
        """DuckDB on what memory is left."""
        from gcond.data.out_of_core import OutOfCore

        self.require_engine()
        return OutOfCore(self.store.folder / SPILLED, self.plan.left() - SLACK, self.plan.threads)

    def add_features(self, x: Tensor | SparseRows) -> None:
        """Append the features of the nodes that come next, which must be finite numbers."""
        import torch

        from gcond.linalg.sparse import SparseMatrix

        if isinstance(x, torch.Tensor):
            checks.finite_features(x, self.nodes)
            self.store.array("x", width=x.shape[1]).append(x.numpy())
            return
        indptr, indices, values = map(torch.from_numpy, (x.indptr, x.indices, x.values))
        shape = (len(x.indptr) - 1, 1 + int(x.indices.max(initial=0)))
        checks.finite_features(SparseMatrix.from_parts(indptr, indices, values, shape), self.nodes)
        starts = x.indptr if self.nodes == 0 else x.indptr[1:]
        self.store.array("x.indptr").append(starts + self._sparse_entries)
        self.store.array("x.indices").append(x.indices)
        self.store.array("x.values").append(x.values)
        self._sparse_entries += len(x.indices)

    def classes(self, class_names: tuple[str, ...]) -> int:
        """C, by the labels that are stored."""
        low, high = 0, -1
        for block in self.store.arrays["y"].blocks(ROWS):
            low, high = min(low, int(block.min())), max(high, int(block.max()))
        return checks.class_count(low, high, self.nodes, None, class_names)

    def draw_split(self, seed: int, class_names: tuple[str, ...]) -> str:
        """Store a split that is drawn by class, and say so."""
        import torch

        from gcond.data.graph_stream import part_codes
        from gcond.data.splits import per_class

        self.plan.require(
            60 * self.nodes, f"drawing a split of {self.nodes} nodes", ", or give the nodes a column 'split'"
        )
        split = per_class(torch.from_numpy(self.store.arrays["y"].read()), seed, class_names)
        self.store.put("split", part_codes(split, self.nodes))
        return split.note

    def check_split(self, classes: int, class_names: tuple[str, ...]) -> None:
        """Refuse parts with unlabelled nodes, and classes that do not train."""
        import torch

        from gcond.graph.source_graph import PARTS

        bare = np.zeros(1 + len(PARTS), dtype=np.int64)
        trained = np.zeros(classes, dtype=np.int64)
        both = (self.store.arrays[name].blocks(ROWS) for name in ("y", "split"))
        for y, split in zip(*both, strict=True):
            bare += np.bincount(split[y < 0], minlength=len(bare))
            trained += np.bincount(y[(split == TRAIN) & (y >= 0)], minlength=classes)
        checks.refuse_bare(dict(zip(PARTS, bare[1:].tolist(), strict=True)))
        checks.every_class_trains(torch.from_numpy(trained), class_names)

    def add_edges(
        self, blocks: Iterable[EdgeBlock], engine: OutOfCore, *, weighted: bool, directed: bool, total: int
    ) -> None:
        """Store the edges, about ``total`` of them, as CSR with its normalisation."""
        if self.nodes > MOST_NODES:
            raise GcondError(f"there are {self.nodes} nodes, and a packed store holds up to {MOST_NODES}")
        self._edges = SortedEdges(self.nodes, weighted=weighted, directed=directed)
        self._edges.write(blocks, engine, self.store, self.plan.tick, total)
        engine.close()
        shutil.rmtree(self.store.folder / SPILLED, ignore_errors=True)
        self._add_scale()

    @property
    def listed_edges(self) -> int:
        """Edges as the source lists them."""
        assert self._edges is not None
        return self._edges.listed

    def _add_scale(self) -> None:
        """``scale``, by blocks of rows of what is stored."""
        import torch

        from gcond.linalg.sparse import SparseMatrix, inverse_root_degrees

        arrays = self.store.arrays
        first = 0
        with self.store.array("scale") as scale:
            for starts in arrays["indptr"].blocks(ROWS // 4, overlap=1):
                if "weights" in arrays:
                    place = (int(starts[0]), int(starts[-1]))
                    indices, values = (torch.from_numpy(arrays[name].read(*place)) for name in ("indices", "weights"))
                    shape = (len(starts) - 1, self.nodes)
                    rows = SparseMatrix.from_parts(torch.from_numpy(starts - starts[0]), indices, values, shape)
                    scale.append(inverse_root_degrees(rows, first).numpy())
                else:
                    scale.append(torch.from_numpy(np.diff(starts) + 1).float().pow(-0.5).numpy())
                first += len(starts) - 1

    def finish(self, request: Request, features: int, setting: Setting, notes: tuple[str, ...], **facts: Any) -> None:
        """Make structural features where there are none, and say what the store holds."""
        assert self._edges is not None
        transform: dict[str, Any] = {"kind": "none"}
        notes += self._edges.repairs.sentences()
        if features == 0:
            features, transform = self._add_structure(setting, directed=request.directed)
            notes += (f"there are no features, so {features} structural ones are made from the edges",)
        self.store.finish(
            Facts(
                name=request.name,
                nodes=self.nodes,
                edges=self.store.arrays["indices"].rows,
                features=features,
                setting=setting,
                directed=request.directed,
                transform=transform,
                notes=notes,
                **facts,
            )
        )

    def _add_structure(self, setting: Setting, *, directed: bool) -> tuple[int, dict[str, Any]]:
        import torch

        from gcond.graph.structural_features import structural_features
        from gcond.linalg.sparse import SparseMatrix

        arrays = self.store.arrays
        entries = arrays["indices"].rows
        self.plan.require(
            120 * entries + 3000 * self.nodes,
            f"making structural features for {self.nodes} nodes that have no others",
            ", or give the nodes features",
        )
        indptr, indices, split = (torch.from_numpy(arrays[name].read()) for name in ("indptr", "indices", "split"))
        weights = torch.from_numpy(arrays["weights"].read()) if "weights" in arrays else torch.ones(entries)
        adjacency = SparseMatrix.from_parts(indptr, indices, weights, (self.nodes,) * 2, symmetric=not directed)
        x, transform = structural_features(adjacency, [split == code for code in (1, 2, 3)], setting)
        self.store.put("x", x.numpy())
        return x.shape[1], transform.to_json()

    def pack_stream(self, stream: GraphStream, request: Request) -> None:
        """All of a graph whose nodes are numbered and whose files are read piece by piece."""
        from gcond.data.graph_stream import part_codes

        n, edges = stream.nodes, stream.about_edges
        self.require_disk(n * (4 * stream.features + 21) + disk_for_edges(edges, weighted=False))
        self.require_engine(growth=GROWTH)
        for x in stream.x():
            self.add_features(x)
            self.nodes += len(x)
            self.plan.tick("nodes", self.nodes, n)
        with self.store.array("y") as labels:
            for y in stream.y():
                labels.append(y.numpy())
        classes = self.classes(())
        self.store.put("split", part_codes(stream.split, n))
        self.check_split(classes, ())
        pairs = ((*block.long().numpy(), None) for block in stream.edges())
        self.add_edges(pairs, self.engine(), weighted=False, directed=request.directed, total=edges)
        self.finish(
            request,
            stream.features,
            request.setting or stream.default,
            (stream.split.note,),
            classes=classes,
            usual=stream.usual,
            listed_edges=self.listed_edges if stream.listed_once else None,
        )


def disk_for_edges(count: int, *, weighted: bool) -> int:
    """Bytes that so many edges take, in the store and while both directions of them are sorted."""
    weight = 4 if weighted else 0
    return 2 * count * (4 + weight) + int(1.3 * 2 * count * (8 + weight))
