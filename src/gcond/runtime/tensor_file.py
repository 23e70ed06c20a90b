"""Safetensors files with JSON metadata: written whole, and refused with a reason where they are not."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.errors import GcondError, warn
from gcond.runtime.files import atomic_path

if TYPE_CHECKING:
    from torch import Tensor

METADATA_KEY = "gcond"
DIGEST = "digest"
"""In the metadata: a fingerprint of the tensors and of all other metadata. Files of earlier versions have none."""
FORMAT_VERSION = 1
OTHER_FORMATS = (".pt", ".pth", ".pkl", ".pickle", ".npz", ".npy", ".csv", ".parquet", ".json", ".h5", ".hdf5", ".zip")
"""Endings that promise something else than what is written here."""


def fingerprint(tensors: Mapping[str, Tensor], prefix: str = "") -> str:
    """sha256 over ``prefix`` and the name, dtype, shape and bytes of every tensor, in order of the names."""
    import torch

    digest = hashlib.sha256(prefix.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        # As bytes, because NumPy does not have every dtype that a file may hold, such as bfloat16.
        flat = tensor.detach().cpu().contiguous().as_strided((tensor.numel(),), (1,))
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def write_tensors(target: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Write one safetensors file with JSON ``metadata`` under the key ``gcond``, atomically."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    if Path(target).suffix.lower() in OTHER_FORMATS:
        warn(f"'{target}' is written as safetensors, whatever its name says: end it in .safetensors")
    digest = fingerprint(tensors, _text(metadata))
    # The digest is of the text with blanks, as it has always been; in the file they would be bytes for nothing.
    text = _text({**metadata, DIGEST: digest}, separators=(",", ":"))
    with atomic_path(target) as temporary:
        try:
            save_file({name: _owned(t) for name, t in tensors.items()}, temporary, {METADATA_KEY: text})
        except SafetensorError as error:  # its way of reporting a full disk
            raise OSError(errno.EIO, str(error)) from None


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file written by :func:`write_tensors`; anything else is refused with its reason."""
    path = Path(path)
    tensors, header = _read(path)
    if METADATA_KEY not in header:
        raise GcondError(f"'{path}' is a safetensors file, but gcond did not write it (no '{METADATA_KEY}' metadata)")
    try:
        metadata = json.loads(header[METADATA_KEY], parse_constant=_finite, parse_float=_finite)
        version = metadata["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise GcondError(f"'{path}' has damaged metadata: write it again with gcond") from None
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise GcondError(f"'{path}' has format {version}, and this gcond reads up to {FORMAT_VERSION}: upgrade gcond")
    digest = metadata.pop(DIGEST, None)
    if digest is not None and digest != fingerprint(tensors, _text(metadata)):
        raise GcondError(f"'{path}' is damaged: it does not hold what gcond wrote into it, so copy or make it again")
    return tensors, metadata


def read_plain_tensors(path: str | Path, names: Collection[str]) -> tuple[dict[str, Tensor], list[str]]:
    """Those of the tensors called ``names`` that a safetensors file has, whoever wrote it, and the names of others."""
    tensors, _ = _read(Path(path), names)
    return tensors, [name for name in plain_names(path) or () if name not in names]


def plain_names(path: str | Path) -> list[str] | None:
    """The names of the tensors in a safetensors file that gcond did not write; ``None`` for anything else."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return None if METADATA_KEY in (file.metadata() or {}) else list(file.keys())
    except (SafetensorError, OSError):
        return None


def _read(path: Path, names: Collection[str] | None = None) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, or those of them called ``names``, and its metadata."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise GcondError(f"there is no file '{path}'")
    if path.is_dir():
        raise GcondError(f"'{path}' is a folder, not a file written by gcond")
    try:
        with safe_open(path, framework="pt") as file:
            wanted = [name for name in file.keys() if names is None or name in names]  # noqa: SIM118
            return {name: file.get_tensor(name) for name in wanted}, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise GcondError(f"'{path}' cannot be read: {_diagnose(path, error)}") from None


def read_metadata_kind(path: str | Path) -> str | None:
    """``source``, ``condensed`` or ``model`` of a file gcond wrote, else ``None``; reads the header only."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            kind: str | None = json.loads((file.metadata() or {})[METADATA_KEY])["kind"]
            return kind
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError):
        return None


def _text(metadata: Mapping[str, Any], separators: tuple[str, str] | None = None) -> str:
    return json.dumps(metadata, sort_keys=True, allow_nan=False, separators=separators)


def _owned(tensor: Tensor) -> Tensor:
    """``tensor`` in memory of its own: safetensors refuses windows of one buffer."""
    tensor = tensor.detach().contiguous()
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()


def _diagnose(path: Path, error: Exception) -> str:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        start = file.read(4)
        if not start:
            return "it is empty"
        if start[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
            return "it is a Python pickle, which gcond never opens; give a .safetensors file written by gcond"
        if start == b"PK\x03\x04":
            return "it is a zip archive (perhaps a torch.save or .npz file); give a .safetensors file written by gcond"
    if isinstance(error, PermissionError):
        return "permission denied"
    return f"it is damaged, cut short or not a safetensors file ({str(error).splitlines()[0]})"


def _finite(text: str) -> float:
    """A number of the metadata; NaN and what is too large for a float are not JSON and could not be written again."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number
