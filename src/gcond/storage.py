"""Files appear whole or not at all, and safetensors files say clearly what is wrong with them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.errors import GcondError

if TYPE_CHECKING:
    from torch import Tensor

METADATA_KEY = "gcond"
FORMAT_VERSION = 1


@contextlib.contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; on success fsync it and rename it into place.

    An interrupted or failed write leaves whatever stood at ``target`` untouched and no debris. Where ``target``
    is a link, the file that it leads to is written and the link stays.
    """
    target = _place(target)
    temporary = _new_file_beside(target)
    mode = stat.S_IMODE(temporary.stat().st_mode)
    try:
        yield temporary
        os.chmod(temporary, mode)  # whoever wrote it may have put a private file of its own in its place
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise unwritable(target, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(target: str | Path, text: str) -> None:
    """Write ``text`` atomically, as UTF-8."""
    with atomic_path(target) as path:
        path.write_text(text, encoding="utf-8")


def check_writable(target: str | Path) -> None:
    """Refuse an output place before hours of work are spent on it."""
    _new_file_beside(_place(target)).unlink()


def make_folder(folder: str | Path) -> None:
    """Make ``folder`` if it is not there; refuse a place where nothing could be written."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    check_writable(folder / "check")


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

    text = json.dumps(metadata, sort_keys=True, allow_nan=False)
    with atomic_path(target) as temporary:
        try:
            save_file({name: _owned(t) for name, t in tensors.items()}, temporary, {METADATA_KEY: text})
        except SafetensorError as error:  # its way of reporting a full disk
            raise OSError(errno.EIO, str(error)) from None


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file written by :func:`write_tensors`; anything else is refused with its reason."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.exists():
        raise GcondError(f"there is no file '{path}'")
    if path.is_dir():
        raise GcondError(f"'{path}' is a folder, not a file written by gcond")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise GcondError(f"'{path}' cannot be read: {_diagnose(path, error)}") from None
    if METADATA_KEY not in header:
        raise GcondError(f"'{path}' is a safetensors file, but gcond did not write it (no '{METADATA_KEY}' metadata)")
    try:
        metadata = json.loads(header[METADATA_KEY], parse_constant=_finite, parse_float=_finite)
        version = metadata["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise GcondError(f"'{path}' has damaged metadata: write it again with gcond") from None
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise GcondError(f"'{path}' has format {version}, and this gcond reads up to {FORMAT_VERSION}: upgrade gcond")
    return tensors, metadata


def read_metadata_kind(path: str | Path) -> str | None:
    """``"source"`` or ``"condensed"`` for a file gcond wrote, ``None`` for anything else; reads the header only."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return json.loads((file.metadata() or {})[METADATA_KEY])["kind"]
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError):
        return None


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


def unwritable(target: Path, error: OSError) -> GcondError:
    """The sentence for a failed write."""
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        reason = "the disk is full"
    elif isinstance(error, FileNotFoundError):
        reason = f"the folder '{target.parent}' does not exist"
    elif isinstance(error, PermissionError) or error.errno == errno.EROFS:
        reason = f"the folder '{target.parent}' is not writable"
    elif isinstance(error, NotADirectoryError):
        reason = f"'{target.parent}' is not a folder"
    elif isinstance(error, IsADirectoryError):
        reason = "it is a folder"
    else:
        reason = error.strerror or str(error)
    return GcondError(f"cannot write '{target}': {reason}")


def _place(target: str | Path) -> Path:
    """The file that is written for ``target``: where a link leads. What is there must be a regular file or nothing."""
    place = Path(target)
    try:
        if place.is_symlink():
            place = Path(os.path.realpath(place))  # Path.resolve would raise on links in a circle
        mode = place.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return place
    except OSError as error:
        raise unwritable(place, error) from None
    if stat.S_ISDIR(mode):
        raise GcondError(f"cannot write '{place}': it is a folder, give a file name")
    if not stat.S_ISREG(mode):  # renaming a file onto a pipe or a device would replace it
        raise GcondError(f"cannot write '{place}': it is a pipe or a device, give the name of a regular file")
    return place


def _new_file_beside(target: Path) -> Path:
    """A new, empty file in the folder of ``target``, with the permissions that any new file gets."""
    temporary = target.parent / f".gcond-{secrets.token_hex(8)}.part"
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise unwritable(target, error) from None
    return temporary


def _finite(text: str) -> float:
    """A number of the metadata; NaN and what is too large for a float are not JSON and could not be written again."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number
