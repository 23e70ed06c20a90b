"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gcond.errors import GcondError


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
    elif isinstance(error, FileExistsError):
        reason = "it is a file, and a folder is needed"
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


@cache
def _system() -> str:
    """A name for all processes among which a number means one of them; nothing where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return hashlib.sha256(f"{boot}{os.stat('/proc/self/ns/pid').st_ino}".encode()).hexdigest()[:12]  # noqa: PTH116
    except OSError:
        return ""


def _remove_orphans(folder: Path, system: str) -> None:
    """Remove the unfinished files of processes of this system that are gone: killed ones had no time to."""
    for left in folder.glob(f".gcond-{system}-*.part") if system else ():
        with contextlib.suppress(OSError, ValueError):
            try:
                os.kill(int(left.name.split("-")[2]), 0)
            except ProcessLookupError:
                left.unlink(missing_ok=True)


def _new_file_beside(target: Path) -> Path:
    """A new, empty file in the folder of ``target``, with the permissions that any new file gets."""
    system = _system()
    _remove_orphans(target.parent, system)
    temporary = target.parent / f".gcond-{system}-{os.getpid()}-{secrets.token_hex(8)}.part"
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise unwritable(target, error) from None
    return temporary
