"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gcond.errors import GcondError, warn


@contextlib.contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; on success fsync it and rename it into place.

    An interrupted or failed write leaves whatever stood at ``target`` untouched and no debris. Where ``target``
    is a link, the file that it leads to is written, which is said, and the link stays.
    """
    named, target = target, _place(target)
    if Path(named).is_symlink():
        warn(f"'{named}' is a link, so what it leads to is written: '{target}'")
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


def refuse_link(target: str | Path) -> None:
    """Refuse a link as the name of a new file: what stands where it leads may be anyone's."""
    if Path(target).is_symlink():
        raise GcondError(f"'{target}' is a link to '{os.path.realpath(target)}': give the name of the file itself")


@contextlib.contextmanager
def reserved(target: str | Path) -> Iterator[None]:
    """Hold the name ``target`` for this process, so that no other of gcond's makes the same file meanwhile.

    It is an advisory lock on a hidden file beside ``target``, so it ends with the process, however that ends. Where the
    file system has no locks nothing is held.
    """
    place = Path(os.path.realpath(target))
    lock = place.parent / f".gcond-{hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]}.lock"
    descriptor = _locked(lock, target)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # before the lock goes: whoever gets it then looks whether it is still there
            lock.unlink()
        os.close(descriptor)


def _locked(lock: Path, target: str | Path) -> int:
    """A descriptor of the file ``lock``, which this process has locked."""
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise unwritable(Path(target), error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise GcondError(
                f"another gcond is at work on '{target}': wait for it, or give another name with -o"
            ) from None
        except OSError:
            return descriptor
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(lock.stat(), os.fstat(descriptor)):
                return descriptor
        os.close(descriptor)  # who held it has just removed it: what we locked is nobody's any more


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
    elif isinstance(error, FileNotFoundError) and target.parent.is_dir():
        reason = f"no file can be made in the folder '{target.parent}'"
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
