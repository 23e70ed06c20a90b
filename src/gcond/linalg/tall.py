"""Tall matrices [N, w], with a row for every node: in memory, or in a file that is read piece by piece.

A graph past memory has too many rows for its matrices to be held, so whatever is written for all nodes goes over blocks
of rows (:func:`row_blocks`), takes the rows that it needs (``tall[index]``), or goes over columns, which do not mix in
a product with the graph. A plain tensor is the case of one block, so that the same code serves graphs that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.runtime.memory import hand_back

BLOCK_BYTES = 64 * 2**20
"""Of a block of rows, about: long enough for a disk, short beside everything else."""
SPARSE_READ = 2_000
"""With fewer wanted rows than one in so many, single places are read instead of whole columns."""


@dataclass(frozen=True)
class RowFile:
    """A float32 matrix [N, w] in a ``.npy`` file, column after column; only what is asked for is read.

    Columns are contiguous, and a block of rows is a piece of each. Nothing is mapped, so nothing of it counts as
    resident memory but what was handed out.
    """

    path: Path
    shape: tuple[int, int]
    offset: int
    """Where the numbers begin."""
    hear: Callable[[int, int], None] = field(default=lambda done, total: None, compare=False)
    """Called with the rows that were read, and how many there are."""

    def __reduce__(self) -> tuple[type[RowFile], tuple[Path, tuple[int, int], int]]:
        """For other processes: whoever hears of it is here."""
        return RowFile, (self.path, self.shape, self.offset)

    @classmethod
    def open(cls, path: Path) -> RowFile:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
            offset = file.tell()
        if version != (1, 0) or not by_column or dtype != np.dtype("<f4") or len(shape) != 2:
            raise ValueError(f"'{path}' is no matrix of float32 by columns")
        if path.stat().st_size != offset + 4 * shape[0] * shape[1]:
            raise ValueError(f"'{path}' is cut short")
        return cls(path, (shape[0], shape[1]), offset)

    @classmethod
    def create(cls, path: Path, shape: tuple[int, int]) -> RowFile:
        """A new file of that shape, to be filled by :meth:`write_columns` or :meth:`write_rows`."""
        with open(path, "wb") as file:
            header = {"descr": "<f4", "fortran_order": True, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            offset = file.tell()
            file.truncate(offset + 4 * shape[0] * shape[1])
        return cls(path, shape, offset)

    @property
    def nbytes(self) -> int:
        return 4 * self.shape[0] * self.shape[1]

    def rows(self, start: int, stop: int) -> Tensor:
        """Rows ``start`` to ``stop``: float32 [b, w]."""
        found = self._piece(start, stop, 0, self.shape[1]).T.contiguous()
        self.hear(stop, self.shape[0])
        return found

    def columns(self, start: int, stop: int) -> Tensor:
        """Columns ``start`` to ``stop``: float32 [N, k], row after row."""
        found = torch.empty(self.shape[0], stop - start)
        step = max(1, BLOCK_BYTES // (4 * max(1, stop - start)))
        for first in range(0, self.shape[0], step):
            last = min(first + step, self.shape[0])
            found[first:last] = self._piece(first, last, start, stop).T
        return found

    def __getitem__(self, index: Tensor) -> Tensor:
        """The rows ``index`` (int64 [m]): float32 [m, w]."""
        found = torch.empty(len(index), self.shape[1])
        rows, length = index.numpy(), self.shape[0]
        few = 0 < len(index) * SPARSE_READ < length
        for column in range(self.shape[1]):
            if few:  # by a map of this column alone: what lies around each place comes with it, and goes with the map
                places = np.memmap(self.path, "<f4", "r", self.offset + 4 * length * column, length)
                found[:, column] = torch.from_numpy(places[rows])
            else:
                found[:, column] = self._piece(0, self.shape[0], column, column + 1)[0][index]
                self.hear(self.shape[0] * (column + 1) // self.shape[1], self.shape[0])
        return found

    def write_columns(self, start: int, columns: Tensor, hear: Callable[[memoryview], None] | None = None) -> None:
        """Fill the columns from ``start`` on with ``columns`` [N, k]; ``hear`` gets the bytes, in their order."""
        with open(self.path, "r+b") as file:
            file.seek(self.offset + 4 * self.shape[0] * start)
            for column in columns.unbind(1):
                content = column.contiguous().numpy().data
                file.write(content)
                if hear is not None:
                    hear(content)

    def write_rows(self, start: int, rows: Tensor) -> None:
        """Fill the rows from ``start`` on with ``rows`` [b, w]."""
        with open(self.path, "r+b") as file:
            for column, piece in enumerate(rows.T.contiguous().numpy()):
                file.seek(self.offset + 4 * (self.shape[0] * column + start))
                file.write(piece.data)

    def _piece(self, first: int, last: int, start: int, stop: int) -> Tensor:
        """Rows ``first`` to ``last`` of columns ``start`` to ``stop``, transposed: float32 [k, b]."""
        found = np.empty((stop - start, last - first), dtype="<f4")
        with open(self.path, "rb", buffering=0) as file:
            if last - first == self.shape[0]:  # one piece in the file, too
                file.seek(self.offset + 4 * self.shape[0] * start)
                _fill(file, found.reshape(-1))
                return torch.from_numpy(found)
            for place, column in enumerate(range(start, stop)):
                file.seek(self.offset + 4 * (self.shape[0] * column + first))
                _fill(file, found[place])
        return torch.from_numpy(found)


def _fill(file: object, numbers: np.ndarray) -> None:
    """Read until ``numbers`` is full; one call may bring less than was asked for."""
    left = numbers.view(np.uint8).data
    while len(left):
        count = file.readinto(left)  # type: ignore[attr-defined]
        if not count:
            raise OSError("a file ended before it should")
        left = left[count:]


class Rows(Protocol):
    """A tall matrix that is not in memory."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def rows(self, start: int, stop: int) -> Tensor:
        """Rows ``start`` to ``stop``: float32 [b, w]."""

    def __getitem__(self, index: Tensor, /) -> Tensor:
        """The rows ``index`` (int64 [m]): float32 [m, w]."""


class Columns(Rows, Protocol):
    """One that can also be gone through by columns."""

    def columns(self, start: int, stop: int) -> Tensor:
        """Columns ``start`` to ``stop``, a new tensor: float32 [N, k]."""


Tall: TypeAlias = Tensor | Rows


@dataclass(frozen=True, eq=False)
class MappedRows:
    """A tall matrix whose rows are made from those of another when they are asked for."""

    base: Tall
    width: int
    function: Callable[[Tensor, Tensor], Tensor]
    """Of rows [b, ·] and their numbers (int64 [b]) to rows [b, w]."""

    @property
    def shape(self) -> tuple[int, int]:
        return (self.base.shape[0], self.width)

    @property
    def on_the_way(self) -> int:
        """Numbers that are made for a row, by one function after the other: all may be held for a while."""
        return self.width + _on_the_way(self.base)

    def rows(self, start: int, stop: int) -> Tensor:
        base = self.base[start:stop] if isinstance(self.base, Tensor) else self.base.rows(start, stop)
        return self.function(base, torch.arange(start, stop))

    def __getitem__(self, index: Tensor) -> Tensor:
        return self.function(self.base[index], index)


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """A tall matrix whose rows are those of a file, each times a number."""

    base: Columns
    scale: Tensor
    """float32 [N]."""

    @property
    def shape(self) -> tuple[int, int]:
        return (self.base.shape[0], self.base.shape[1])

    def rows(self, start: int, stop: int) -> Tensor:
        return self.base.rows(start, stop) * self.scale[start:stop, None]

    def columns(self, start: int, stop: int) -> Tensor:
        return self.base.columns(start, stop).mul_(self.scale[:, None])

    def __getitem__(self, index: Tensor) -> Tensor:
        return self.base[index] * self.scale[index, None]


def row_blocks(tall: Tall) -> Iterator[tuple[slice, Tensor]]:
    """The matrix block by block: which rows, and the rows. What is in memory is one block."""
    if isinstance(tall, Tensor):
        yield slice(0, len(tall)), tall
        return
    count = tall.shape[0]
    step = max(1, BLOCK_BYTES // (4 * max(1, _on_the_way(tall))))
    for start in range(0, count, step):
        stop = min(start + step, count)
        hand_back()  # what was freed before; blocks of several sizes leave holes that would add up
        yield slice(start, stop), tall.rows(start, stop)


def _on_the_way(tall: Tall) -> int:
    """The numbers in a row, and in all that it is made from where it is made when it is asked for."""
    return tall.on_the_way if isinstance(tall, MappedRows) else tall.shape[1]


def map_rows(tall: Tall, width: int, function: Callable[[Tensor, Tensor], Tensor]) -> Tall:
    """``function`` of all rows and their numbers: at once for what is in memory, else when they are asked for."""
    if isinstance(tall, Tensor):
        return function(tall, torch.arange(len(tall), device=tall.device))
    return MappedRows(tall, width, function)


def unit_rows(tall: Tensor | Columns) -> Tensor | Columns:
    """The rows with length 1; a row of zeros stays."""
    if isinstance(tall, Tensor):
        return F.normalize(tall)
    scale = torch.empty(tall.shape[0])
    for where, rows in row_blocks(tall):
        scale[where] = 1 / rows.norm(dim=1).clamp(min=1e-12)
    return ScaledRows(tall, scale)
