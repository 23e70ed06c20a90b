"""Folders that appear whole or not at all, made by one process at a time."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gcond.errors import GcondError
from gcond.runtime.files import unwritable

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextlib.contextmanager
def atomic_folder(target: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a hidden, empty folder beside ``target``; on success fsync it and rename it into place.

    Whoever makes ``target`` holds a lock beside it, which ends with the process, however that ends: a second one is
    refused at once, and what a dead one has left is removed by the next. A failed or interrupted run leaves no folder
    behind, and what stood at ``target`` as it was. Without ``force`` an existing ``target`` is refused.
    """
    target = Path(os.path.realpath(target))
    check_new_folder(target, force=force)
    with _alone(target):
        _bring_back(target)
        check_new_folder(target, force=force)  # another may have finished since
        temporary = target.parent / f".{target.name}.part"
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            yield temporary
            for file in (*temporary.rglob("*"), temporary):
                _fsync(file)
            _put_in_place(temporary, target)
        except OSError as error:
            raise unwritable(target, error) from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def check_new_folder(target: str | Path, *, force: bool = False) -> None:
    """Refuse a place for a new folder that is taken, or where none could be made, before any work."""
    target = Path(target)
    if not target.parent.is_dir():
        raise unwritable(target, FileNotFoundError())
    if os.path.lexists(target):
        if not target.is_dir():
            raise GcondError(f"cannot write '{target}': it is a file, give the name of a folder")
        if not force:
            raise GcondError(f"'{target}' exists already: give another name, or force=True to replace it")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise unwritable(target, PermissionError())


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold the lock on ``target``, or say that another process does."""
    place = target.parent / f".{target.name}.lock"
    while True:
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise unwritable(target, error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise GcondError(
                f"another process is writing '{target}': wait until it is done, or give another name"
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), place.stat()):
                break
        os.close(descriptor)  # its last holder removed the file between opening and locking it
    try:
        yield
    finally:
        place.unlink(missing_ok=True)
        os.close(descriptor)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_in_place(temporary: Path, target: Path) -> None:
    """Rename ``temporary`` to ``target``; what stands there already changes places with it in one step if it can."""
    if not target.exists():
        temporary.rename(target)
    elif not _exchange(temporary, target):
        old = _aside(target)
        target.rename(old)
        temporary.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    _fsync(target.parent)


def _aside(target: Path) -> Path:
    """Where ``target`` is for the moment in which it is replaced in two steps."""
    return target.parent / f".{target.name}.old"


def _bring_back(target: Path) -> None:
    """Undo what a process did that died between the two steps, or remove what it had no time for after them."""
    old = _aside(target)
    if os.path.lexists(target):
        shutil.rmtree(old, ignore_errors=True)
    elif old.is_dir():
        old.rename(target)


def _exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; false where the system has no such call (it is Linux's own)."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    return bool(renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)
