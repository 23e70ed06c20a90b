"""A packed store, ``NAME.gcond``: a graph as a folder of plain arrays that are mapped and not read.

``store.json`` says what the graph is, and of every array its dtype, shape, bytes and sha256. An array ``a`` is the
file ``a.npy`` in NumPy's own format, its header padded to 128 bytes: ``indptr``, ``indices``, ``weights`` (absent where
every weight is 1) and ``scale`` of the adjacency; ``x``, or ``x.indptr``, ``x.indices`` and ``x.values`` where the
features are sparse; ``y``; ``split``; and ``ids.offsets`` and ``ids.bytes`` where the nodes have names. This module
alone reads and writes the format. What is wrong with the content of an array is found when it is packed; a reader
relies on the sha256.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from gcond.errors import GcondError
from gcond.graph.feature_kinds import CHOICES, FeatureChoice
from gcond.graph.learning_setting import SETTINGS, Setting
from gcond.graph.stored_arrays import StoredArrays, StoredSparseRows, StoredText
from gcond.runtime.files import write_text
from gcond.runtime.folders import atomic_folder
from gcond.runtime.progress_tick import Tick, ignore

if TYPE_CHECKING:
    from gcond.data.load_request import Request
    from gcond.graph import SourceGraph
    from gcond.linalg.sparse import Matrix

SUFFIX = ".gcond"
FORMAT = 1
ABOUT = "store.json"
VERIFIED = "verified.json"
"""Remembers which files were found whole, by size, time and inode, so that they are hashed once and not every time."""
HEADER = 128
BLOCK = 4 * 2**20
"""Bytes that are read, hashed or written at a time."""

DTYPES: dict[str, tuple[str, ...]] = {
    "indptr": ("<i8",),
    "indices": ("<i4", "<i8"),
    "weights": ("<f4",),
    "scale": ("<f4",),
    "x": ("<f4",),
    "x.indptr": ("<i8",),
    "x.indices": ("<i4",),
    "x.values": ("<f4",),
    "y": ("<i8",),
    "split": ("|i1",),
    "ids.offsets": ("<i8",),
    "ids.bytes": ("|u1",),
}
"""Every array that a store may hold, and the types that it may have."""


@dataclass(frozen=True)
class Facts:
    """What a store says about its graph beside the arrays; the fields of :class:`StoredArrays` explain them."""

    name: str
    nodes: int
    edges: int
    """Entries of the adjacency: of an undirected graph both directions of every edge."""
    features: int
    classes: int
    class_names: tuple[str, ...] = ()
    setting: Setting = "transductive"
    directed: bool = False
    usual: FeatureChoice = "none"
    transform: dict[str, Any] = field(default_factory=lambda: {"kind": "none"})
    """The transform that the features have gone through, as :class:`FeatureTransform` writes itself down."""
    notes: tuple[str, ...] = ()
    listed_edges: int | None = None
    feature_names: tuple[str, ...] = ()


# --------------------------------------------------------------------------------------------------------- reading


def is_store(path: Path) -> bool:
    """Whether ``path`` is meant to be a packed store, whole or not."""
    return path.is_dir() and (path.suffix == SUFFIX or (path / ABOUT).exists())


def open_store(path: str | Path, *, anew: bool = False, tick: Tick = ignore) -> StoredArrays:
    """The arrays of the store at ``path``, mapped for reading, after all of its checks.

    Files that were found whole before, and have not changed since by size, time and inode, are not hashed again,
    unless ``anew``. ``tick`` hears how many bytes are.
    """
    folder = Path(path)
    about = _read_about(folder)
    arrays = {name: _map(folder, name, record) for name, record in about["arrays"].items()}
    _verify(folder, about, anew=anew, tick=tick)
    try:
        facts = _facts(about["facts"])
        return _assemble(folder, facts, arrays, about["sha256"])
    except (KeyError, TypeError, ValueError):
        raise _damaged(folder) from None


def _read_about(folder: Path) -> dict[str, Any]:
    """``store.json``, of a version that this gcond reads and unchanged since it was written."""
    if not folder.exists():
        raise GcondError(f"there is no folder '{folder}'")
    if not folder.is_dir():
        raise GcondError(f"'{folder}' is a file, and a packed store is a folder that gcond pack wrote")
    try:
        text = (folder / ABOUT).read_bytes()
    except FileNotFoundError:
        raise GcondError(f"'{folder}' is not a packed store: it has no {ABOUT}, which gcond pack writes") from None
    except OSError as error:
        raise GcondError(f"'{folder / ABOUT}' cannot be read: {error.strerror or error}") from None
    try:
        about = json.loads(text)
        kind, version = about["kind"], about["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(folder) from None
    if kind != "packed":
        raise GcondError(f"'{folder}' is not a packed store: its {ABOUT} says that it is '{kind!s:.40}'")
    if version != FORMAT:
        raise GcondError(
            f"'{folder}' was written by another version of gcond (format {version!s:.20}), and this one reads "
            f"format {FORMAT}: pack the graph again"
        )
    try:
        whole = about["sha256"] == fingerprint(about["facts"], about["arrays"])
        known = all(record["dtype"] in DTYPES.get(name, ()) for name, record in about["arrays"].items())
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise _damaged(folder) from None
    if not whole or not known:
        raise _damaged(folder)
    return dict(about)


def _damaged(folder: Path) -> GcondError:
    return GcondError(f"'{folder / ABOUT}' is damaged or was changed: pack the graph again")


def fingerprint(facts: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]) -> str:
    """sha256 of what a store says, and through the arrays' own digests of all that it holds."""
    text = json.dumps({"facts": facts, "arrays": arrays}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _map(folder: Path, name: str, record: Mapping[str, Any]) -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        dtype, shape, size = np.dtype(record["dtype"]), tuple(map(int, record["shape"])), int(record["bytes"])
        found = path.stat().st_size
        with open(path, "rb") as file:
            start = file.read(HEADER)
    except FileNotFoundError:
        raise GcondError(f"the store '{folder}' lacks its array '{name}' ({path.name}): pack the graph again") from None
    except OSError as error:
        raise GcondError(f"'{path}' cannot be read: {error.strerror or error}") from None
    except (KeyError, TypeError, ValueError):
        raise _damaged(folder) from None
    if found != HEADER + size:
        how = "was cut short" if found < HEADER + size else "is too long"
        raise GcondError(
            f"the array '{name}' of the store '{folder}' {how} ({found:,} bytes, and {HEADER + size:,} were packed): "
            "pack the graph again"
        )
    if start != header(dtype, shape):
        raise _changed(folder, name)
    return np.memmap(path, dtype, "r", HEADER, shape)


def _changed(folder: Path, name: str) -> GcondError:
    return GcondError(
        f"the array '{name}' of the store '{folder}' is damaged (its bytes are not those that were packed): "
        "pack the graph again"
    )


def _verify(folder: Path, about: Mapping[str, Any], *, anew: bool, tick: Tick) -> None:
    """Hash what is not known to be whole, two files at a time, the largest first, and remember the outcome."""
    records = about["arrays"]
    states = {name: _state(folder / f"{name}.npy") for name in records}
    known = {} if anew else _remembered(folder, about["sha256"])
    left = sorted((name for name in records if known.get(name) != states[name]), key=lambda name: -states[name][0])
    if not left:
        return
    total = sum(states[name][0] for name in left)
    done = dict.fromkeys(left, 0)

    def digest(name: str) -> str:
        def hear(size: int) -> None:
            done[name] += size
            tick("checking", sum(done.values()), total, detail=name)

        return _hash(folder / f"{name}.npy", hear)

    with ThreadPoolExecutor(2) as pool:
        for name, found in zip(left, pool.map(digest, left), strict=True):
            if found != records[name]["sha256"]:
                raise _changed(folder, name)
    _remember(folder, about["sha256"], states)


def _hash(path: Path, hear: Any) -> str:
    digest, buffer = hashlib.sha256(), bytearray(BLOCK)
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(HEADER)
            while count := file.readinto(buffer):
                digest.update(memoryview(buffer)[:count])
                hear(count)
    except OSError as error:
        raise GcondError(f"'{path}' cannot be read: {error.strerror or error}") from None
    return digest.hexdigest()


def _state(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def _remembered(folder: Path, sha256: str) -> dict[str, list[int]]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        verified = json.loads((folder / VERIFIED).read_bytes())
        if verified["sha256"] == sha256:
            return dict(verified["files"])
    return {}


def _remember(folder: Path, sha256: str, states: Mapping[str, list[int]]) -> None:
    with contextlib.suppress(GcondError):  # a store that cannot be written to is hashed each time
        write_text(folder / VERIFIED, json.dumps({"sha256": sha256, "files": states}))


def _facts(values: Mapping[str, Any]) -> Facts:
    several = {key: tuple(map(str, values.get(key, ()))) for key in ("class_names", "notes", "feature_names")}
    facts = Facts(**{**values, **several})
    if facts.setting not in SETTINGS or facts.usual not in CHOICES:
        raise ValueError
    return facts


def _assemble(folder: Path, facts: Facts, arrays: Mapping[str, np.ndarray], sha256: str) -> StoredArrays:
    from gcond.graph.features import FeatureTransform

    n = facts.nodes
    x: np.ndarray | StoredSparseRows
    if "x" in arrays:
        x = arrays["x"]
    else:
        x = StoredSparseRows(arrays["x.indptr"], arrays["x.indices"], arrays["x.values"], (n, facts.features))
        if x.indptr.shape != (n + 1,) or x.indices.shape != x.values.shape:
            raise ValueError
    ids = StoredText(arrays["ids.offsets"], arrays["ids.bytes"]) if "ids.offsets" in arrays else None
    weights = arrays.get("weights")
    shapes = [
        (arrays["indptr"], (n + 1,)),
        (arrays["indices"], (facts.edges,)),
        (weights, (facts.edges,)),
        (x, (n, facts.features)),
        *((arrays[name], (n,)) for name in ("scale", "y", "split")),
        (ids.offsets if ids else None, (n + 1,)),
    ]
    if any(array is not None and array.shape != shape for array, shape in shapes):
        raise ValueError
    return StoredArrays(
        folder=folder,
        name=facts.name,
        indptr=arrays["indptr"],
        indices=arrays["indices"],
        weights=weights,
        scale=arrays["scale"],
        x=x,
        y=arrays["y"],
        split=arrays["split"],
        num_classes=facts.classes,
        class_names=facts.class_names,
        setting=facts.setting,
        directed=facts.directed,
        usual=facts.usual,
        notes=facts.notes,
        listed_edges=facts.listed_edges,
        sha256=sha256,
        transform=FeatureTransform.from_json(facts.transform),
        ids=ids,
        feature_names=facts.feature_names,
    )


# --------------------------------------------------------------------------------------------------------- writing


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of a ``.npy`` file (version 1.0, C order), padded to 128 bytes whatever the shape."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11).encode() + b"\n"


class ArrayFile:
    """An array of a store while it is written: rows are appended, hashed as they go, and counted at the end."""

    def __init__(self, path: Path, dtype: str, width: int | None = None) -> None:
        self.path = path
        self.rows = 0
        self._dtype = np.dtype(dtype)
        self._tail = () if width is None else (width,)
        self._digest = hashlib.sha256()
        self._file: BinaryIO = open(path, "wb")  # noqa: SIM115 (closed by ``close``)
        self._file.write(bytes(HEADER))

    def append(self, rows: np.ndarray) -> None:
        """Add ``rows`` [k] or [k, width] of any type that the array's own can hold."""
        block = np.ascontiguousarray(rows, dtype=self._dtype)
        assert block.shape[1:] == self._tail, (block.shape, self._tail)
        self.rows += len(block)
        content = block.reshape(-1).view(np.uint8).data
        self._digest.update(content)
        self._file.write(content)

    def close(self) -> dict[str, Any]:
        """Write the header and say what ``store.json`` keeps of the array."""
        shape = (self.rows, *self._tail)
        if not self._file.closed:
            self._file.seek(0)
            self._file.write(header(self._dtype, shape))
            self._file.close()
        size = self._dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        return {"dtype": self._dtype.str, "shape": list(shape), "bytes": size, "sha256": self._digest.hexdigest()}

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Rows of an array [n] that is complete, read and not mapped, so that they can be let go of."""
        self.close()
        count = (self.rows if stop is None else stop) - start
        return np.fromfile(self.path, self._dtype, count, offset=HEADER + start * self._dtype.itemsize)

    def blocks(self, rows: int, *, overlap: int = 0) -> Iterator[np.ndarray]:
        """Such an array in blocks of ``rows``, each with the first ``overlap`` entries of the next."""
        self.close()
        for start in range(0, self.rows - overlap, rows):
            yield self.read(start, min(start + rows + overlap, self.rows))

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class StoreWriter:
    """A store while it is written, in a folder that nobody sees yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arrays: dict[str, ArrayFile] = {}
        """What is written so far, by name."""

    def array(self, name: str, *, width: int | None = None, wide: bool = False) -> ArrayFile:
        """An array of the store, to be appended to, new if need be; ``wide`` takes the larger of its types."""
        if name not in self.arrays:
            self.arrays[name] = ArrayFile(self.folder / f"{name}.npy", DTYPES[name][-1 if wide else 0], width)
        return self.arrays[name]

    def put(self, name: str, content: np.ndarray, *, wide: bool = False) -> None:
        """An array that is at hand, block by block."""
        width = content.shape[1] if content.ndim == 2 else None
        rows = max(1, BLOCK // max(1, content.itemsize * (width or 1)))
        with self.array(name, width=width, wide=wide) as file:
            for start in range(0, len(content), rows):
                file.append(content[start : start + rows])

    def drop(self, name: str) -> None:
        """Leave out an array that turned out to say nothing."""
        self.arrays.pop(name).close()
        (self.folder / f"{name}.npy").unlink()

    def finish(self, facts: Facts) -> None:
        """Write what the store says about itself; nothing is added afterwards."""
        from gcond import __version__

        arrays = {name: file.close() for name, file in self.arrays.items()}
        said = json.loads(json.dumps(vars(facts), allow_nan=False))
        sha256 = fingerprint(said, arrays)
        about = {"format": FORMAT, "kind": "packed", "gcond": __version__, "sha256": sha256, "facts": said}
        text = json.dumps(about | {"arrays": arrays}, indent=1, allow_nan=False)
        (self.folder / ABOUT).write_text(text, encoding="utf-8")
        _remember(self.folder, sha256, {name: _state(self.folder / f"{name}.npy") for name in arrays})


@contextlib.contextmanager
def new_store(target: str | Path, *, force: bool = False) -> Iterator[StoreWriter]:
    """A writer for the store ``target``, which appears whole when the block ends, or not at all."""
    target = Path(target)
    if target.suffix != SUFFIX:
        raise GcondError(f"'{target}' is no name for a packed store: end it with {SUFFIX}")
    if force and os.path.lexists(target) and not (target / ABOUT).is_file():
        raise GcondError(f"'{target}' is no packed store, so it is not replaced: give another name")
    with atomic_folder(target, force=force) as folder:
        yield StoreWriter(folder)


def write_store(
    target: str | Path,
    graph: SourceGraph,
    *,
    raw: Matrix | None = None,
    usual: FeatureChoice = "none",
    force: bool = False,
) -> None:
    """Pack a graph that is in memory.

    ``raw`` are its features as they came, if the graph has them in another form, and ``usual`` is the transform that
    whoever loads the store gets unless another is asked for.
    """
    with new_store(target, force=force) as store:
        put_graph(store, graph, raw=raw, usual=usual)


def put_graph(store: StoreWriter, graph: SourceGraph, *, raw: Matrix | None, usual: FeatureChoice) -> None:
    """The work of :func:`write_store`."""
    from gcond.graph.source_graph import PARTS
    from gcond.linalg.sparse import SparseMatrix, inverse_root_degrees

    x = graph.x if raw is None else raw
    adjacency = graph.adjacency
    if isinstance(x, SparseMatrix):
        for part in ("indptr", "indices", "values"):
            store.put(f"x.{part}", getattr(x, part).numpy())
    else:
        store.put("x", x.numpy())
    store.put("indptr", adjacency.indptr.numpy())
    store.put("indices", adjacency.indices.numpy(), wide=adjacency.indices.itemsize > 4)
    if bool((adjacency.values != 1).any()):
        store.put("weights", adjacency.values.numpy())
    store.put("scale", inverse_root_degrees(adjacency).numpy())
    store.put("y", graph.y.numpy())
    split = np.zeros(graph.num_nodes, dtype=np.int8)
    for code, part in enumerate(PARTS, 1):
        split[graph.mask(part).numpy()] = code
    store.put("split", split)
    if graph.ids is not None:
        offsets, letters = graph.ids.as_text()
        store.put("ids.offsets", offsets)
        store.put("ids.bytes", letters)
    store.finish(
        Facts(
            name=graph.name,
            nodes=graph.num_nodes,
            edges=adjacency.nnz,
            features=x.shape[1],
            classes=graph.num_classes,
            class_names=graph.class_names,
            setting=graph.setting,
            directed=graph.directed,
            usual=usual,
            transform=graph.transform.to_json(),
            notes=graph.notes,
            listed_edges=graph.listed_edges,
            feature_names=graph.feature_names,
        )
    )


# --------------------------------------------------------------------------------------------------------- loading


WORK = 4
"""Memory that a graph and the work on it take, in the bytes of its arrays."""


def load(folder: Path, request: Request) -> SourceGraph:
    """The graph: in memory, and then the same as from what was packed, or where it does not fit on disk.

    It stays on disk where it would take more than the memory that is asked for or, without a number, than is free.
    """
    from gcond.graph.feature_treatment import treated
    from gcond.graph.stored_graph import StoredGraph
    from gcond.graph.stored_inputs import Streaming
    from gcond.runtime.memory import SAFE_SHARE, available_bytes, held_bytes

    stored = open_store(folder)
    held = sum(path.stat().st_size for path in folder.glob("*.npy"))
    free = held_bytes() + int(SAFE_SHARE * available_bytes())
    limit = free if request.memory is None else request.memory
    streams = held_bytes() + WORK * held > limit
    if request.directed and not stored.directed:
        raise GcondError(f"the graph '{stored.name}' was already made undirected: pack its raw data with directed=True")
    if streams:
        on_disk = StoredGraph.of(stored, Streaming(limit), name=stored.name, setting=request.setting)
        return treated(on_disk, request.features or (stored.usual if stored.transform is None else "none"))
    graph, raw = as_source_graph(stored)
    if request.setting not in (None, graph.setting):
        graph = graph.with_setting(request.setting)
    if request.features is None and graph.transform.kind != "none":
        return graph
    return treated(graph, request.features or stored.usual, raw)


def as_source_graph(stored: StoredArrays) -> tuple[SourceGraph, Matrix]:
    """A graph in memory of what is stored, and its features in the form in which they are stored."""
    import torch

    from gcond.graph import SourceGraph
    from gcond.graph.features import FeatureTransform, compact
    from gcond.graph.node_ids import NodeIds
    from gcond.graph.source_graph import PARTS
    from gcond.linalg.sparse import SparseMatrix

    def tensor(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(array))

    if isinstance(stored.x, StoredSparseRows):
        indptr, indices, values = map(tensor, (stored.x.indptr, stored.x.indices, stored.x.values))
        raw: Matrix = SparseMatrix.from_parts(indptr, indices, values, stored.x.shape)
    else:
        raw = tensor(stored.x)
    n, edges = stored.num_nodes, len(stored.indices)
    weights = torch.ones(edges) if stored.weights is None else tensor(stored.weights)
    split = tensor(stored.split)
    masks: dict[str, Any] = {f"{part}_mask": split == code for code, part in enumerate(PARTS, 1)}
    graph = SourceGraph(
        name=stored.name,
        x=compact(raw),
        adjacency=SparseMatrix.from_parts(
            tensor(stored.indptr), tensor(stored.indices), weights, (n, n), symmetric=not stored.directed
        ),
        y=tensor(stored.y),
        num_classes=stored.num_classes,
        setting=stored.setting,
        directed=stored.directed,
        class_names=stored.class_names,
        transform=stored.transform or FeatureTransform(),
        notes=stored.notes,
        listed_edges=stored.listed_edges,
        ids=NodeIds.mapped(stored.ids.offsets, stored.ids.bytes) if stored.ids is not None else None,
        feature_names=stored.feature_names,
        **masks,
    )
    return graph, raw
