"""GraphSAINT folders (Zeng et al., ICLR 2020): Flickr, Reddit, and anything stored like them.

``adj_full.npz`` is a CSR matrix (``data``, ``indices``, ``indptr``, ``shape``); ``feats.npy`` is [N, d];
``class_map.json`` gives each node's class; ``role.json`` lists the ids of ``tr``, ``va`` and ``te``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcond.data.array_stream import ArrayStream
from gcond.data.arrays import finite, tensor
from gcond.data.graph_stream import GraphStream
from gcond.data.load_request import Request
from gcond.data.npz_archive import Archive
from gcond.data.size_check import require_memory
from gcond.data.splits import Split
from gcond.errors import GcondError
from gcond.graph import SourceGraph

ROLES = {"train": "tr", "val": "va", "test": "te"}


def holds_graphsaint(folder: Path) -> bool:
    """Whether the folder is of this form, complete or not."""
    return any((folder / name).exists() for name in ("adj_full.npz", "feats.npy", "role.json"))


def load(folder: Path, request: Request) -> SourceGraph:
    """Inductive unless asked otherwise, and standardised by the training nodes, as GraphSAINT itself does both."""
    x = _features(folder)
    require_memory(3 * 4 * x.size, f"{x.label} ({x.shape[0]} by {x.shape[1]})")  # before anything is read
    return stream(folder).load(request, x.label)


def stream(folder: Path) -> GraphStream:
    """The folder piece by piece; labels and split, which are JSON, are read right away."""
    x = _features(folder)
    n = x.shape[0]
    y = _classes(folder / "class_map.json", n)
    parts = _roles(folder / "role.json", n)
    if len(parts["train"]) == 0:
        raise GcondError(f"'{folder / 'role.json'}' lists no training node under 'tr'")
    _must_exist(folder / "adj_full.npz")
    adjacency = _Adjacency(folder / "adj_full.npz", n)
    return GraphStream(
        nodes=n,
        features=x.shape[1],
        x=lambda: (finite(tensor(block, x.label).float(), x.label) for block in x.rows()),
        y=lambda: iter([y]),
        split=Split(**parts, note="the split is the file's own"),
        edges=adjacency.edges,
        about_edges=adjacency.nnz,
        usual="standardise",
        default="inductive",
    )


def _features(folder: Path) -> ArrayStream:
    _must_exist(folder / "feats.npy")
    return ArrayStream(folder / "feats.npy").must_be_matrix()


class _Adjacency:
    """The CSR matrix in ``adj_full.npz``, of which row i lists the targets of node i; its values are 1 everywhere."""

    def __init__(self, path: Path, n: int) -> None:
        archive = Archive(path, str(path))
        self._n = n
        self._what = f"the arrays data, indices, indptr, shape in '{path}'"
        found = archive.read(("indptr", "shape"), whole=("indptr", "shape"))
        shape = found["shape"].tolist()
        if shape != [n, n]:
            raise GcondError(f"'{path}' has shape {shape}, and feats.npy has {n} rows: both must agree")
        self._indptr = found["indptr"].long().numpy()
        self._indices = ArrayStream(path, "indices")
        self.nnz = self._indices.size
        fits = (
            self._indptr.shape == (n + 1,)
            and len(self._indices.shape) == 1
            and self._indices.dtype.kind in "iu"
            and self._indptr[0] == 0
            and self._indptr[-1] == self.nnz
            and bool((np.diff(self._indptr) >= 0).all())
        )
        if not fits:
            raise self._unfit()

    def edges(self) -> Iterator[Tensor]:
        """int64 [2, k]."""
        start = 0
        for block in self._indices.numbers():
            if len(block) and (int(block.min()) < 0 or int(block.max()) >= self._n):
                raise self._unfit()
            stop = start + len(block)
            first, beyond = np.searchsorted(self._indptr, (start, stop - 1), side="right")
            rows = np.arange(first - 1, beyond)
            inside = np.minimum(self._indptr[rows + 1], stop) - np.maximum(self._indptr[rows], start)
            source = np.repeat(rows, inside)
            yield torch.from_numpy(np.stack([source, block.astype(np.int64)]))
            start = stop

    def _unfit(self) -> GcondError:
        return GcondError(f"{self._what} do not fit together as a {self._n} by {self._n} matrix")


def _classes(path: Path, n: int) -> Tensor:
    entries = _json(path)
    if not isinstance(entries, dict) or not entries:
        raise GcondError(f"'{path}' must map node ids to classes, for example {{\"0\": 3}}")
    y = np.full(n, -1, dtype=np.int64)
    for key, label in entries.items():
        node = _node(key, n, path)
        if isinstance(label, list):
            raise GcondError(f"'{path}' gives node {node} several classes: gcond needs exactly one per node")
        if type(label) is not int or not 0 <= label < 2**31:
            raise GcondError(f"'{path}' gives node {node} the class {label!r:.40}: classes are whole numbers from 0")
        y[node] = label
    return torch.from_numpy(y)


def _roles(path: Path, n: int) -> dict[str, Tensor]:
    entries = _json(path)
    if not isinstance(entries, dict) or not all(isinstance(entries.get(role), list) for role in ROLES.values()):
        raise GcondError(f"'{path}' must list node ids under 'tr', 'va' and 'te'")
    return {
        part: torch.tensor([_node(entry, n, path) for entry in entries[role]], dtype=torch.long)
        for part, role in ROLES.items()
    }


def _node(entry: Any, n: int, path: Path) -> int:
    if type(entry) is int or (isinstance(entry, str) and entry.isdecimal() and len(entry) < 19):
        node = int(entry)
        if 0 <= node < n:
            return node
    raise GcondError(f"'{path}' names node {entry!r:.40}, but feats.npy has {n} nodes, 0 to {n - 1}")


def _json(path: Path) -> Any:
    _must_exist(path)
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise GcondError(f"'{path}' cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise GcondError(f"'{path}' is damaged, cut short or not JSON") from None


def _must_exist(path: Path) -> None:
    if not path.is_file():
        needed = "adj_full.npz, feats.npy, class_map.json and role.json"
        raise GcondError(f"there is no file '{path}': a GraphSAINT folder holds {needed}")
