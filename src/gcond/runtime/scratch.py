"""Locks and folders of one process, which outlive it in no way that matters."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

_PREFIX = ".scratch-"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file ``path`` for this process alone; another waits. A process that dies lets go of it."""
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove_orphans(folder: Path, pattern: str, lock_of: Callable[[Path], Path]) -> None:
    """Remove the files like ``pattern`` whose makers are gone: nobody holds the lock of any of them.

    Files whose lock is this process's own stay, since a lock is not given twice.
    """
    for left in folder.glob(pattern):
        with contextlib.suppress(OSError), open(lock_of(left), "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink(missing_ok=True)


class ScratchFolder:
    """A folder for this process alone, gone with the object; those of processes that died are removed before.

    It is made in ``parent`` or, without one, in the system's temporary folder.
    """

    def __init__(self, parent: Path | None) -> None:
        for left in parent.glob(f"{_PREFIX}*") if parent is not None else ():
            _remove_if_orphaned(left)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self._lock = open(self.path / "lock", "w")  # noqa: SIM115 (held for as long as the folder is)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _remove_if_orphaned(folder: Path) -> None:
    with contextlib.suppress(OSError), open(folder / "lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
