"""A packed store as it is opened: every check, and then its arrays, mapped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

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
    remembered,
)
from gcond.errors import GcondError
from gcond.graph.feature_kinds import CHOICES
from gcond.graph.learning_setting import SETTINGS
from gcond.graph.stored_arrays import ABOUT, IdKind, StoredArrays, StoredSparseRows, StoredText
from gcond.runtime.progress_tick import Tick, ignore


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
    states = {name: file_state(folder / f"{name}.npy") for name in records}
    known = {} if anew else remembered(folder, about["sha256"])
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
    remember(folder, about["sha256"], states)


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


def _facts(values: Mapping[str, Any]) -> Facts:
    names = values.get("feature_names", ())  # which older stores lack
    several = {key: tuple(map(str, values[key])) for key in ("class_names", "notes")}
    several["feature_names"] = tuple(map(str, names))
    facts = Facts(**{**values, **several})
    if facts.setting not in SETTINGS or facts.usual not in CHOICES or facts.ids not in get_args(IdKind):
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
        id_kind=facts.ids or ("text" if ids else ""),
        feature_names=facts.feature_names,
    )
