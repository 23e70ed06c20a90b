"""Claims: who is at work on what in a folder that several processes share."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from pathlib import Path


class Claims:
    """Claims on pieces of work, by name; without a folder nobody shares it, and every claim is granted.

    A claim is an advisory lock on a file of its own, so it ends with the process that holds it, however that ends. It
    keeps processes out of each other's way and guards nothing: whoever gets one looks again whether the work is done.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def take(self, name: str) -> bool:
        """Whether the work called ``name`` is now this process's to do."""
        if self._folder is None:
            return True
        while True:
            self._folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # another has just tidied up
                descriptor = os.open(self._place(name), os.O_RDWR | os.O_CREAT, 0o666)
                break
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._held[name] = descriptor
        return True

    def release(self, name: str) -> None:
        """Give up a claim, once what was done is kept where others find it."""
        if (descriptor := self._held.pop(name, None)) is not None:
            with contextlib.suppress(OSError):  # whoever opened it meanwhile looks for the result, and finds it
                self._place(name).unlink()
            os.close(descriptor)

    def release_all(self) -> None:
        """Give up what is still held, after a failure or at the end."""
        for name in list(self._held):
            self.release(name)
        if self._folder is not None:
            with contextlib.suppress(OSError):  # not there, or others hold theirs
                self._folder.rmdir()

    def _place(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / hashlib.sha256(name.encode()).hexdigest()[:20]
