"""Products with the graph that stay in its store: found again by their settings, checked, and made anew if damaged."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcond.errors import GcondError
from gcond.linalg.tall import RowFile
from gcond.runtime.files import unwritable, write_text
from gcond.runtime.progress_tick import Tick
from gcond.runtime.scratch import locked, remove_orphans

Piece = tuple[int, int, str]
"""Columns ``start`` to ``stop`` of a file, and the sha256 of their bytes."""


@dataclass(frozen=True)
class KeptProduct:
    """A matrix of float32 in the file ``path``, with what is known of it in a file of the same name, ``.json``.

    That is the sha256 of every group of its columns, and the size, time and inode of the file for which they held, so
    that it is hashed once and not every time.
    """

    path: Path
    shape: tuple[int, int]
    tick: Tick

    def find(self) -> RowFile | None:
        """The file if it is there and whole."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            known = json.loads(self._known.read_bytes())
            file = RowFile.open(self.path)
            if file.shape != self.shape:
                return None
            state = _state(self.path)
            if known["state"] != state:
                if not self._holds(file, known["pieces"]):
                    return None
                with contextlib.suppress(GcondError):  # a store that cannot be written to is hashed each time
                    self._remember(known["pieces"], state)
            return file
        return None

    def make(self, write: Callable[[Path], Sequence[Piece]]) -> RowFile:
        """The file, by ``write`` unless it is there; whoever else wants the same waits, and finds it."""
        with locked(self.path.with_suffix(".lock")):
            remove_orphans(self.path.parent, "*.part", lambda part: part.with_suffix(".lock"))
            if (found := self.find()) is not None:
                return found
            part = self.path.with_suffix(".part")
            with writing(self.path):
                try:
                    pieces = write(part)
                    with open(part, "rb") as file:
                        os.fsync(file.fileno())
                    self._remember(pieces, _state(part))
                    part.replace(self.path)
                finally:
                    part.unlink(missing_ok=True)
        return RowFile.open(self.path)

    @property
    def _known(self) -> Path:
        return self.path.with_suffix(".json")

    def _remember(self, pieces: Sequence[Piece], state: list[int]) -> None:
        write_text(self._known, json.dumps({"state": state, "pieces": [list(piece) for piece in pieces]}))

    def _holds(self, file: RowFile, pieces: Any) -> bool:
        """Whether the bytes are those that were written, all columns of them."""
        reached = 0
        for start, stop, expected in pieces:
            digest = hashlib.sha256()
            for column in range(start, stop):
                digest.update(file.columns(column, column + 1).numpy().data)
                self.tick(f"checking {self.path.name}", column + 1, self.shape[1])
            if start != reached or digest.hexdigest() != expected:
                return False
            reached = stop
        return bool(reached == self.shape[1])


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in a sentence what is wrong where ``path`` cannot be written."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from None


def _state(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ino]
