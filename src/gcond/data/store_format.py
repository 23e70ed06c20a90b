"""The format of a packed store, ``NAME.gcond``: a graph as a folder of plain arrays that are mapped and not read.

``store.json`` says what the graph is, and of every array its dtype, shape, bytes and sha256. An array ``a`` is the
file ``a.npy`` in NumPy's own format, its header padded to 128 bytes: ``indptr``, ``indices``, ``weights`` (absent where
every weight is 1) and ``scale`` of the adjacency; ``x``, or ``x.indptr``, ``x.indices`` and ``x.values`` where the
features are sparse; ``y``; ``split``; and ``ids.offsets`` and ``ids.bytes`` where the nodes have names that are not
their row numbers. ``store_reading`` and ``store_writing`` alone read and write it. What is wrong with the content of an
array is found when it is packed; a reader relies on the sha256.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gcond.errors import GcondError
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.learning_setting import Setting
from gcond.graph.stored_arrays import IdKind
from gcond.runtime.files import write_text

SUFFIX = ".gcond"
FORMAT = 1
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
    ids: IdKind = ""
    """The kind of names that the nodes have, if any."""
    feature_names: tuple[str, ...] = ()


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of a ``.npy`` file (version 1.0, C order), padded to 128 bytes whatever the shape."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11).encode() + b"\n"


def fingerprint(facts: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]) -> str:
    """sha256 of what a store says, and through the arrays' own digests of all that it holds."""
    text = json.dumps({"facts": facts, "arrays": arrays}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def file_state(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def remembered(folder: Path, sha256: str) -> dict[str, list[int]]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        verified = json.loads((folder / VERIFIED).read_bytes())
        if verified["sha256"] == sha256:
            return dict(verified["files"])
    return {}


def remember(folder: Path, sha256: str, states: Mapping[str, list[int]]) -> None:
    with contextlib.suppress(GcondError):  # a store that cannot be written to is hashed each time
        write_text(folder / VERIFIED, json.dumps({"sha256": sha256, "files": states}))
