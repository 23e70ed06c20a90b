"""NumPy arrays, in a ``.npy`` file or inside an ``.npz``, that are read from start to end and never held."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from gcond.errors import GcondError

BLOCK = 8 * 2**20
"""Bytes that are read at a time."""


class ArrayStream:
    """An array of numbers in row-major order in the file ``path``; ``member`` names it inside an ``.npz``."""

    def __init__(self, path: Path, member: str | None = None) -> None:
        self._path, self._member = path, member
        self.label = f"'{path}'" if member is None else f"'{member}' in '{path}'"
        file = self._open()
        try:
            self.shape, by_columns, self.dtype = self._header(file)
        except Exception:  # foreign bytes trip numpy in many ways, and all mean the same
            raise self._damaged() from None
        finally:
            file.close()
        if self.dtype.hasobject:
            raise GcondError(f"{self.label} is an object array, stored as a pickle, which gcond never opens")
        if by_columns and len(self.shape) > 1 and min(self.shape) > 1:
            raise GcondError(f"{self.label} is stored column by column: save it row by row (order='C')")

    def must_be_matrix(self) -> ArrayStream:
        """Itself, refused unless it is a matrix of numbers with neither side empty."""
        if len(self.shape) != 2 or 0 in self.shape or self.dtype.kind not in "biuf":
            raise GcondError(f"{self.label} must be a matrix of numbers, [nodes, features]")
        return self

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def numbers(self, start: int = 0, stop: int | None = None, block: int | None = None) -> Iterator[np.ndarray]:
        """The numbers from ``start`` to ``stop`` of all of them in their order, ``block`` at a time."""
        stop = self.size if stop is None else stop
        block = block or max(1, BLOCK // self.dtype.itemsize)
        file = self._open()
        try:
            self._header(file)
            file.seek(start * self.dtype.itemsize, 1)
            for at in range(start, stop, block):
                wanted = min(block, stop - at) * self.dtype.itemsize
                content = file.read(wanted)
                if len(content) != wanted:
                    raise self._damaged()
                yield np.frombuffer(content, self.dtype).copy()  # which may be written to, as tensors may
            if stop == self.size:
                file.read(1)  # an archive checks its sum at the end
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
            raise self._damaged() from None
        finally:
            file.close()

    def rows(self) -> Iterator[np.ndarray]:
        """Blocks of whole rows of a matrix [n, d]."""
        width = self.shape[1]
        for block in self.numbers(block=width * max(1, BLOCK // max(1, width * self.dtype.itemsize))):
            yield block.reshape(-1, width)

    def _open(self) -> BinaryIO:
        try:
            if self._member is None:
                return open(self._path, "rb")
            with zipfile.ZipFile(self._path) as archive:
                return cast(BinaryIO, archive.open(f"{self._member}.npy"))
        except KeyError:
            raise GcondError(f"'{self._path}' has no array '{self._member}'") from None
        except FileNotFoundError:
            raise GcondError(f"there is no file '{self._path}'") from None
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
            raise self._damaged() from None

    @staticmethod
    def _header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(file)
        return shape, by_columns, dtype

    def _damaged(self) -> GcondError:
        kind = ".npy" if self._member is None else ".npz"
        return GcondError(f"{self.label} is damaged, cut short or not a {kind} file")
