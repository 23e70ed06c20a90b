"""A packed store as it lies on disk: arrays that are mapped and not read."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gcond.errors import GcondError
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.learning_setting import Setting
from gcond.runtime.memory import held_bytes

if TYPE_CHECKING:
    from gcond.graph.features import FeatureTransform
    from gcond.graph.node_ids import NodeIds

UNUSED, TRAIN, VAL, TEST = range(4)
"""What an entry of ``split`` says: no part, or which one."""
ABOUT = "store.json"
"""What a store says of itself: its file in the folder."""
WORK = 5
"""Memory that a graph and the work on it take, in the bytes of its arrays; choosing features was seen to take 4.2."""
NOT_THERE = "the store must be at the same path on every machine"
"""What would be right where a worker finds no store."""
IdKind = Literal["", "text", "numbers"]
"""The names of nodes: none of their own, text, or whole numbers."""


@dataclass(frozen=True, eq=False)
class StoredSparseRows:
    """Sparse features [N, d] as mapped CSR arrays."""

    indptr: np.ndarray
    """int64 [N + 1]."""
    indices: np.ndarray
    """int32 [nnz], sorted within a row."""
    values: np.ndarray
    """float32 [nnz]."""
    shape: tuple[int, int]

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped_again, _to_map_again(self)


@dataclass(frozen=True, eq=False)
class StoredText:
    """One text per node as mapped arrays: UTF-8 bytes, one after the other, and where each begins."""

    offsets: np.ndarray
    """int64 [N + 1]."""
    bytes: np.ndarray
    """uint8 [offsets[N]]."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, node: int) -> str:
        start, stop = self.offsets[node], self.offsets[node + 1]
        return self.bytes[start:stop].tobytes().decode()

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped_again, _to_map_again(self)


@dataclass(frozen=True, eq=False)
class StoredArrays:
    """The arrays of a packed store, each an ``np.memmap`` opened for reading; they were checked when it was packed.

    The graph is as :class:`~gcond.graph.source_graph.SourceGraph` wants it: row = target, no self-loops, no doubles,
    positive weights, both directions of every edge unless ``directed``.
    """

    folder: Path
    name: str
    indptr: np.ndarray
    """int64 [N + 1] of the adjacency."""
    indices: np.ndarray
    """int32 [E] (int64 where there are more nodes than that), sorted within a row."""
    weights: np.ndarray | None
    """float32 [E]; ``None`` where every weight is 1."""
    scale: np.ndarray
    """float32 [N]: D^-½, with D the row sums of A + I, so that Â = D^-½ (A + I) D^-½."""
    x: np.ndarray | StoredSparseRows
    """float32 [N, d], row after row, or sparse: as the source has them, before any transform."""
    y: np.ndarray
    """int64 [N]; -1 is unlabelled."""
    split: np.ndarray
    """int8 [N]: 0 unused, 1 train, 2 val, 3 test."""
    num_classes: int
    class_names: tuple[str, ...]
    setting: Setting
    """The source's own setting."""
    directed: bool
    usual: FeatureChoice
    """The source's own transform of the features: ``auto`` for a person's tables."""
    notes: tuple[str, ...]
    """What was decided or repaired when it was packed, one sentence for each."""
    listed_edges: int | None
    sha256: str
    """Fingerprint of all arrays and of what the other fields say."""
    transform: FeatureTransform | None = None
    """The transform that ``x`` has gone through before it was packed; ``None`` and kind ``none`` mean the same."""
    ids: StoredText | None = None
    """The nodes' names; ``None`` where a node's name is its row number."""
    id_kind: IdKind = ""
    """The kind of these names in the source."""
    feature_names: tuple[str, ...] = ()
    """Those of the table's columns, where each feature is one of its own."""

    @property
    def num_nodes(self) -> int:
        return len(self.y)

    @property
    def num_edges(self) -> int:
        """Edges, an undirected pair once."""
        return len(self.indices) if self.directed else len(self.indices) // 2

    def node_ids(self) -> NodeIds | None:
        """The nodes' names as the source has them; they are read when somebody asks for one."""
        from gcond.graph.node_ids import NodeIds

        whole = self.id_kind == "numbers"
        if self.ids is not None:
            return NodeIds.mapped(self.ids.offsets, self.ids.bytes, whole=whole)
        return NodeIds.row_numbers(self.num_nodes, whole=whole) if self.id_kind else None

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Every array under the name that its file has."""
        found = {"indptr": self.indptr, "indices": self.indices, "weights": self.weights, "scale": self.scale}
        if isinstance(self.x, StoredSparseRows):
            found |= {"x.indptr": self.x.indptr, "x.indices": self.x.indices, "x.values": self.x.values}
        else:
            found["x"] = self.x
        found |= {"y": self.y, "split": self.split}
        if self.ids is not None:
            found |= {"ids.offsets": self.ids.offsets, "ids.bytes": self.ids.bytes}
        return {name: array for name, array in found.items() if array is not None}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def memory_when_loaded(self) -> int:
        """Bytes that a process like this one would hold in all, with the graph in memory and the work on it."""
        return held_bytes() + WORK * self.nbytes

    def too_large(self, what: str, otherwise: str = "") -> GcondError:
        """The sentence on ``what`` needs the graph in memory: how much that is, and what to do ``otherwise``."""
        least = self.memory_when_loaded // 10**6 + 1
        return GcondError(
            f"{what} needs '{self.name}' in memory, where it and the work on it take about {least} MB, and it is "
            f"streamed from its store: use memory_limit='{least}MB' or more{otherwise}"
        )

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes: which files are mapped, and not what is in them."""
        return _mapped_again, _to_map_again(self)


@dataclass(frozen=True)
class _Map:
    """A memory map, described so that another process can make it."""

    path: str
    dtype: str
    offset: int
    shape: tuple[int, ...]

    def again(self) -> np.ndarray:
        try:
            return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        except (OSError, ValueError):
            raise GcondError(f"a worker cannot read '{self.path}': {NOT_THERE}") from None


def _check_that_it_is_the_same(folder: Path, sha256: str) -> None:
    """Refuse a folder that does not hold the very store which the arrays are of."""
    try:
        found = json.loads((folder / ABOUT).read_bytes())["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        raise GcondError(f"a worker cannot read '{folder}': {NOT_THERE}") from None
    if found != sha256:
        raise GcondError(
            f"a worker has another store at '{folder}': the same must be at that path on every machine, as long as it "
            "is worked on"
        )


def _to_map_again(owner: Any) -> tuple[type, dict[str, Any]]:
    def described(value: Any) -> Any:
        if not isinstance(value, np.memmap) or value.filename is None:
            return value
        return _Map(str(value.filename), value.dtype.str, value.offset, value.shape)

    return type(owner), {field.name: described(getattr(owner, field.name)) for field in fields(owner)}


def _mapped_again(kind: type, values: dict[str, Any]) -> Any:
    if kind is StoredArrays:
        _check_that_it_is_the_same(values["folder"], values["sha256"])
    return kind(**{key: value.again() if isinstance(value, _Map) else value for key, value in values.items()})
