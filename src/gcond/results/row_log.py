"""Results as rows of a JSON-lines file: appended as they finish, found again when work is taken up."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from gcond.errors import GcondError
from gcond.runtime.files import unwritable


class Row(Protocol):
    """A flat dataclass that says what it is a result of."""

    @property
    def key(self) -> str: ...
    @property
    def seed(self) -> int: ...


R = TypeVar("R", bound=Row)


class RowLog(Generic[R]):
    """A JSON-lines file of dataclasses of one ``kind``, or nothing but memory when there is no path.

    Rows are appended in one write each, so two processes may share a file; a last line that a killed
    process left unfinished is passed over. ``what`` names a row in messages.
    """

    def __init__(self, path: str | Path | None, kind: type[R], what: str) -> None:
        self.path = Path(path) if path is not None else None
        self._kind, self._what = kind, what
        self._known: dict[tuple[str, int], R] = {}
        self._size = 0
        self.refresh()

    def refresh(self) -> None:
        """Take in what other processes have added since."""
        if self.path is None or not self.path.exists() or (size := self.path.stat().st_size) == self._size:
            return
        self._known |= {(row.key, row.seed): row for row in _read(self.path, self._kind, self._what)}
        self._size = size

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: str, seed: int) -> R | None:
        return self._known.get((key, seed))

    def add(self, row: R) -> None:
        self._known[row.key, row.seed] = row
        if self.path is None:
            return
        text = json.dumps(dataclasses.asdict(row), sort_keys=True, allow_nan=False) + "\n"  # type: ignore[call-overload]
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                alone = os.fstat(descriptor).st_size == self._size
                line = (_line_break(descriptor) + text).encode()
                if os.write(descriptor, line) < len(line):  # the rest in a second write might land in another's row
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
                self._size += len(line) if alone else 0  # another's rows are read at the next refresh
            finally:
                os.close(descriptor)
        except OSError as error:
            raise unwritable(self.path, error) from None


def _line_break(descriptor: int) -> str:
    """A newline if the file ends in the middle of a line, so that the next row starts on its own."""
    size = os.fstat(descriptor).st_size
    return "\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else ""


def _read(path: Path, kind: type[R], what: str) -> list[R]:
    try:
        lines = path.read_bytes().decode("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise GcondError(f"the {what}s in '{path}' cannot be read: {error}") from None
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    names = {field.name for field in fields}
    needed = {field.name for field in fields if field.default is dataclasses.MISSING}  # others came later
    reader = TypeAdapter(kind)
    foreign = GcondError(f"'{path}' is not a file of {what}s: give a new name, or one that gcond wrote")
    rows: list[R] = []
    broken: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            broken.append(line)  # cut off by a kill: that one simply runs again
            continue
        if not isinstance(values, dict) or not needed <= set(values) <= names:
            if not rows:
                raise foreign
            raise GcondError(f"line {number} of '{path}' is no {what}: delete the line")
        try:
            rows.append(reader.validate_json(line, strict=True))
        except ValidationError as error:
            where, reason = error.errors()[0]["loc"], error.errors()[0]["msg"]
            raise GcondError(
                f"line {number} of '{path}' is no {what}, its {'.'.join(map(str, where))} is wrong "
                f"({reason[:1].lower()}{reason[1:]}): delete the line to run that {what} again"
            ) from None
    start = f'{{"{min(names)}": '  # of every row, since keys are in order
    if not rows and not all(line.startswith(start) or start.startswith(line) for line in broken):
        raise foreign
    return rows
