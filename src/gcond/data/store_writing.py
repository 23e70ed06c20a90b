"""A packed store while it is written: arrays are appended to and hashed as they go, and all appear at once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from gcond.data.store_format import (
    BLOCK,
    DTYPES,
    FORMAT,
    HEADER,
    SUFFIX,
    Facts,
    file_state,
    fingerprint,
    header,
    remember,
)
from gcond.errors import GcondError
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.stored_arrays import ABOUT, IdKind
from gcond.runtime.folders import atomic_folder

if TYPE_CHECKING:
    from gcond.graph import SourceGraph
    from gcond.linalg.sparse import Matrix


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
        remember(self.folder, sha256, {name: file_state(self.folder / f"{name}.npy") for name in arrays})


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
    kind: IdKind = ""
    if graph.ids is not None:
        kind = "numbers" if graph.ids.are_numbers else "text"
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
            ids=kind,
            feature_names=graph.feature_names,
        )
    )
