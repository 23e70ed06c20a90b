"""A source graph that stays on disk."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.graph.features import FeatureTransform
from gcond.graph.labelled_view import LabelledView
from gcond.graph.learning_setting import Setting
from gcond.graph.sent_store import SentStore
from gcond.graph.source_graph import PARTS, Part, SourceGraph
from gcond.graph.statistics import Statistics, density
from gcond.graph.stored_arrays import TEST, TRAIN, VAL, StoredArrays
from gcond.graph.stored_features import StoredFeatures
from gcond.graph.stored_inputs import DERIVED, StoredInputs, Streaming
from gcond.graph.streamed_operator import RowBlocks, read_piece
from gcond.linalg.sparse import SparseMatrix
from gcond.runtime.engines.engine import Engine
from gcond.runtime.files import write_text
from gcond.runtime.progress_tick import Tick, count
from gcond.runtime.seeds import generator

if TYPE_CHECKING:
    from torch_geometric.data import Data

VALIDATION_NODES = 10_000
"""Validation nodes that choices go by, at most: a share of them is known to half a percent, and what they see of the
graph fits into memory."""


@dataclass(frozen=True, eq=False, repr=False)
class StoredGraph(SourceGraph):
    """A packed store as a source graph, of which no more than labels and masks is in memory.

    Its views have :class:`~gcond.graph.stored_inputs.StoredInputs`. Validation is on a sample of at most
    :data:`VALIDATION_NODES`, drawn from a seed of its own; test is on all test nodes.
    """

    streaming: Streaming = dataclasses.field(default_factory=lambda: Streaming(2 * 10**9))

    @classmethod
    def of(cls, arrays: StoredArrays, streaming: Streaming, *, name: str, setting: Setting | None) -> StoredGraph:
        """The graph of ``arrays``, with its features as they are stored."""
        setting = setting or arrays.setting
        if setting != "transductive":
            raise arrays.too_large(f"the setting {setting}", ", or the setting transductive")
        split = np.asarray(arrays.split)
        train, val, test = (torch.from_numpy(split == code) for code in (TRAIN, VAL, TEST))
        return cls(
            name,
            StoredFeatures(arrays),  # type: ignore[arg-type]  # read alike, by whoever knows of stored graphs
            RowBlocks(arrays),  # type: ignore[arg-type]
            torch.from_numpy(np.array(arrays.y, dtype=np.int64)),
            train,
            val,
            test,
            num_classes=arrays.num_classes,
            setting=setting,
            directed=arrays.directed,
            class_names=arrays.class_names,
            transform=arrays.transform or FeatureTransform(),
            notes=arrays.notes,
            listed_edges=arrays.listed_edges,
            ids=arrays.node_ids(),
            feature_names=arrays.feature_names,
            streaming=streaming,
        )

    @property
    def arrays(self) -> StoredArrays:
        return self.stored.arrays

    @property
    def stored(self) -> StoredFeatures:
        """The features, as they are read."""
        assert isinstance(self.x, StoredFeatures)
        return self.x

    @property
    def num_edges(self) -> int:
        entries = len(self.arrays.indices)
        return entries if self.directed else entries // 2

    def with_transform(self, transform: FeatureTransform, notes: tuple[str, ...] = ()) -> StoredGraph:
        """The same graph with its features, as they are stored, made ``transform``."""
        x: Any = StoredFeatures(self.arrays, transform)
        return dataclasses.replace(self, x=x, transform=transform, notes=(*self.notes, *notes))

    def with_streaming(self, streaming: Streaming) -> StoredGraph:
        """The same graph, worked on otherwise."""
        graph = dataclasses.replace(self, streaming=streaming)
        if "sha256" in self.__dict__:  # it takes a look at every byte
            graph.__dict__["sha256"] = self.sha256
        return graph

    @cached_property
    def inputs(self) -> StoredInputs:
        """What all views compute on."""
        return StoredInputs(self.stored, self.streaming)

    @cached_property
    def _views(self) -> dict[Part, LabelledView]:
        everyone = torch.arange(self.num_nodes)
        index = {part: self.mask(part).nonzero().squeeze(1) for part in PARTS}
        if len(index["val"]) > VALIDATION_NODES:
            drawn = torch.randperm(len(index["val"]), generator=generator(0, "validation nodes"))[:VALIDATION_NODES]
            index["val"] = index["val"][drawn.sort().values]
        return {part: LabelledView(self.inputs, index[part], self.y[index[part]], everyone) for part in PARTS}

    def __getstate__(self) -> dict[str, Any]:
        # Names would be sent as they are, where all else is mapped again; workers have no use for them.
        return {key: value for key, value in super().__getstate__().items() if key != "inputs"} | {"ids": None}

    @cached_property
    def statistics(self) -> Statistics:
        listed = self.num_edges if self.listed_edges is None else self.listed_edges
        same = known = 0
        for where, rows in RowBlocks(self.arrays):
            target = self.y[where].repeat_interleave(rows.indptr.diff().long())
            source = self.y[rows.indices.long()]
            both = (target >= 0) & (source >= 0)
            known += int(both.sum())
            same += int((both & (target == source)).sum())
        return Statistics(
            nodes=self.num_nodes,
            edges=self.num_edges,
            listed_edges=listed,
            features=self.num_features,
            classes=self.num_classes,
            density=density(self.num_nodes, listed, directed=self.directed),
            homophily=same / known if known else 0.0,
            class_nodes=tuple(self.class_counts().tolist()),
            bytes=self.nbytes,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of everything that the graph holds in memory, if it is there."""
        index = self._index_dtype.itemsize
        adjacency = (4 + index) * len(self.arrays.indices) + index * (self.num_nodes + 1)
        return adjacency + self.stored.nbytes + 11 * self.num_nodes

    @property
    def _index_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int32 if max(len(self.arrays.indices), self.num_nodes) < 2**31 else np.int64)

    @cached_property
    def sha256(self) -> str:
        """The fingerprint that the same graph has in memory, read piece by piece and kept in the store."""
        facts = [self.arrays.sha256, self.setting, self.transform.to_json()]
        name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]
        path = self.arrays.folder / DERIVED / f"sha256-{name}.txt"
        with contextlib.suppress(OSError):
            if re.fullmatch("[0-9a-f]{64}", known := path.read_text()):
                return known
        found = self._fingerprint()
        with contextlib.suppress(OSError, GcondError):  # where nothing may be written it is made each time
            path.parent.mkdir(exist_ok=True)
            write_text(path, found)
        return found

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(self.setting.encode())
        done, tick = 0, self.streaming.tick
        for name, dtype, shape, pieces in sorted(self._pieces(), key=lambda each: each[0]):
            digest.update(f"{name} {dtype} {shape}".encode())
            for piece in pieces:
                digest.update(np.ascontiguousarray(piece).data)
                done += piece.nbytes
                tick("fingerprint", done, self.nbytes, detail=count(done, self.nbytes, "bytes"))
        return digest.hexdigest()

    def _pieces(self) -> Iterator[tuple[str, str, tuple[int, ...], Iterator[np.ndarray]]]:
        """Name, dtype, shape and bytes of each tensor of :meth:`SourceGraph._tensors`."""
        arrays, count = self.arrays, self.num_nodes
        entries, index = len(arrays.indices), self._index_dtype
        for part in PARTS:
            yield f"{part}_mask", "torch.bool", (count,), iter([self.mask(part).numpy()])
        yield "y", "torch.int64", (count,), iter([self.y.numpy()])
        indptr = (read_piece(arrays.indptr, *at).astype(index) for at in _spans(count + 1))
        yield "adjacency.indptr", f"torch.{index}", (count + 1,), indptr
        indices = (read_piece(arrays.indices, *at).astype(index) for at in _spans(entries))
        yield "adjacency.indices", f"torch.{index}", (entries,), indices
        weights = (
            np.ones(stop - start, "<f4") if arrays.weights is None else read_piece(arrays.weights, start, stop)
            for start, stop in _spans(entries)
        )
        yield "adjacency.values", "torch.float32", (entries,), weights
        yield from self._feature_pieces()

    def _feature_pieces(self) -> Iterator[tuple[str, str, tuple[int, ...], Iterator[np.ndarray]]]:
        count, filled = self.num_nodes, self.stored.sparse_entries
        if filled is None:
            rows = (rows.numpy() for _, rows in self.stored.matrices() if isinstance(rows, Tensor))
            yield "x", "torch.float32", self.stored.shape, rows
            return
        fits = np.int32 if max(filled, *self.stored.shape) < 2**31 else np.int64
        kind = f"torch.{np.dtype(fits)}"
        yield "x.indptr", kind, (count + 1,), (piece.astype(fits) for piece in self._feature_starts())
        indices = (rows.indices.numpy().astype(fits) for _, rows in self._sparse_features())
        yield "x.indices", kind, (filled,), indices
        yield "x.values", "torch.float32", (filled,), (rows.values.numpy() for _, rows in self._sparse_features())

    def _feature_starts(self) -> Iterator[np.ndarray]:
        """``indptr`` of sparse features, piece by piece."""
        done = np.zeros(1, np.int64)
        yield done
        for _, rows in self._sparse_features():
            ends = done[-1] + rows.indptr.numpy().astype(np.int64)[1:]
            yield ends
            done = ends

    def _sparse_features(self) -> Iterator[tuple[slice, SparseMatrix]]:
        for where, rows in self.stored.matrices():
            assert isinstance(rows, SparseMatrix)
            yield where, rows

    def training_graph(self) -> SourceGraph:
        return self

    def with_setting(self, setting: Setting) -> SourceGraph:
        if setting == self.setting:
            return self
        raise self.arrays.too_large(f"the setting {setting}", f", or the setting {self.setting}")

    def to_pyg(self) -> Data:
        raise self.arrays.too_large("a PyG Data")

    def save(self, path: str | Path) -> None:
        raise GcondError(f"'{self.name}' is a packed store already: copy the folder '{self.arrays.folder}'")


def watched(graph: SourceGraph, tick: Tick) -> SourceGraph:
    """``graph``, of whose work ``tick`` hears where it is streamed."""
    if not isinstance(graph, StoredGraph):
        return graph
    return graph.with_streaming(dataclasses.replace(graph.streaming, tick=tick))


def _spans(count: int, step: int = 16_000_000) -> Iterator[tuple[int, int]]:
    yield from ((start, min(start + step, count)) for start in range(0, count, step))


def on_engine(graph: SourceGraph, engine: Engine, *, send_store: bool = False) -> StoredGraph:
    """``graph``, which must be on disk, with its products worked off by ``engine``.

    Its machines find the store at the same path, or with ``send_store`` get what they need of it through the engine.
    """
    if not isinstance(graph, StoredGraph):
        raise GcondError(
            f"'{graph.name}' is in memory, where one process does its products quickest: an engine is for a packed "
            "store that does not fit, so give one with a memory_limit, or no engine"
        )
    if send_store and not engine.puts:
        raise GcondError("send_store=True is for machines of a Ray cluster: use open_engine('ray'), or leave it out")
    sent = SentStore(engine, graph.arrays) if send_store else None
    return graph.with_streaming(dataclasses.replace(graph.streaming, engine=engine, sent=sent))
