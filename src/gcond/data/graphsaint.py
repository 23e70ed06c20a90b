"""GraphSAINT folders (Zeng et al., ICLR 2020): Flickr, Reddit, and anything stored like them.

``adj_full.npz`` is a CSR matrix (``data``, ``indices``, ``indptr``, ``shape``); ``feats.npy`` is [N, d];
``class_map.json`` gives each node's class; ``role.json`` lists the ids of ``tr``, ``va`` and ``te``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcond.data.arrays import finite, tensor
from gcond.data.load_request import Request
from gcond.data.npz_archive import Archive, edges_of
from gcond.data.size_check import require_memory
from gcond.data.splits import Split
from gcond.errors import GcondError
from gcond.graph import SourceGraph

ROLES = {"train": "tr", "val": "va", "test": "te"}
BLOCK = 16384
"""Rows converted at a time, so that wide files never stand in memory twice."""


def load(folder: Path, request: Request) -> SourceGraph:
    """Inductive unless asked otherwise, and standardised by the training nodes, as GraphSAINT itself does both."""
    x = _features(folder / "feats.npy")
    n = len(x)
    y = _classes(folder / "class_map.json", n)
    parts = _roles(folder / "role.json", n)
    edge_index = _edges(folder / "adj_full.npz", n)
    if len(parts["train"]) == 0:
        raise GcondError(f"'{folder / 'role.json'}' lists no training node under 'tr'")
    split = Split(**parts, note="the split is the file's own")
    return request.build(split, default="inductive", usual="standardise", x=x, edge_index=edge_index, y=y)


def _features(path: Path) -> Tensor:
    """float32 [N, d], read through a memory map; the header tells the size first."""
    _must_exist(path)
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # foreign bytes trip numpy in many ways, and all mean the same
        if "allow_pickle" in str(error) or "Object" in str(error) or "Python objects" in str(error):
            raise GcondError(f"'{path}' is an object array, stored as a pickle, which gcond never opens") from None
        raise GcondError(f"'{path}' is damaged, cut short or not a .npy file") from None
    if not isinstance(stored, np.ndarray) or stored.ndim != 2 or 0 in stored.shape or stored.dtype.kind not in "biuf":
        raise GcondError(f"'{path}' must be a matrix of numbers, [nodes, features]")
    require_memory(3 * 4 * stored.size, f"'{path}' ({stored.shape[0]} by {stored.shape[1]})")
    x = torch.empty(stored.shape, dtype=torch.float32)
    for start in range(0, len(stored), BLOCK):
        x[start : start + BLOCK] = tensor(stored[start : start + BLOCK], f"'{path}'")
    return finite(x, f"'{path}'")


def _edges(path: Path, n: int) -> Tensor:
    _must_exist(path)
    matrix = Archive(path, str(path)).csr()
    if matrix.shape != (n, n):
        raise GcondError(f"'{path}' has shape {list(matrix.shape)}, and feats.npy has {n} rows: both must agree")
    return edges_of(matrix)  # the stored values carry nothing: they are 1 everywhere


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
