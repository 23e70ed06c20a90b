"""The one reader of ``.npz`` files: only the arrays that are asked for, never a pickle, and CSR matrices checked."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from gcond.data.arrays import tensor, whole_numbers
from gcond.data.size_check import require_memory
from gcond.data.splits import OTHER_NAMES, Split
from gcond.errors import GcondError
from gcond.graph import validation as checks
from gcond.graph.source_graph import PARTS
from gcond.linalg.sparse import SparseMatrix


class Archive:
    """An ``.npz`` of which only the arrays that are asked for are read, and no pickle ever."""

    def __init__(self, content: Path | bytes, name: str) -> None:
        self.name = name
        self._content = content
        try:
            with zipfile.ZipFile(self._open()) as archive:
                self._sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.infolist()}
        except OSError as error:
            raise GcondError(f"'{name}' cannot be read: {error.strerror or error}") from None
        except Exception:  # zipfile trips over foreign bytes in many ways, and all mean the same
            raise GcondError(f"'{name}' is damaged, cut short or not an .npz file") from None

    def _open(self) -> Path | BinaryIO:
        return self._content if isinstance(self._content, Path) else io.BytesIO(self._content)

    def __contains__(self, key: str) -> bool:
        return key in self._sizes

    @property
    def names(self) -> list[str]:
        """All arrays that it has."""
        return sorted(self._sizes)

    def label(self, key: str) -> str:
        """The name of one of its arrays in messages."""
        return f"'{key}' in '{self.name}'"

    def read(self, keys: Sequence[str], whole: Sequence[str] = ()) -> dict[str, Tensor]:
        """The arrays ``keys`` as numbers of a type that torch has; those among ``whole`` must be whole numbers."""
        self._check_names(keys)
        require_memory(2 * sum(self._sizes[key] for key in keys), f"'{self.name}'")
        self.shapes(keys)
        try:
            with np.load(self._open(), allow_pickle=False) as arrays:
                found = {key: self._array(arrays, key) for key in keys}
        except GcondError:
            raise
        except Exception:  # as for the headers
            raise GcondError(f"'{self.name}' is damaged or cut short") from None
        return {key: (whole_numbers if key in whole else tensor)(found[key], self.label(key)) for key in keys}

    def shapes(self, keys: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays ``keys`` by their headers, and nothing else of them is read; a pickle has none.

        An array whose header claims another length than the archive has for it is refused, before memory is taken.
        """
        self._check_names(keys)
        try:
            return self._claimed(keys)
        except GcondError:
            raise
        except Exception:  # whatever the parsers say of foreign bytes, the file is not whole
            raise GcondError(f"'{self.name}' is damaged or cut short") from None

    def tensor(self, key: str) -> Tensor:
        """One array, as numbers of a type that torch has."""
        return self.read([key])[key]

    def csr(self, prefix: str = "") -> SparseMatrix:
        """The CSR matrix in ``data``, ``indices``, ``indptr`` and ``shape``, all with ``prefix``, entry by entry.

        Entries stay as they are stored, in any order and repeated or not.
        """
        keys = [f"{prefix}{part}" for part in ("data", "indices", "indptr", "shape")]
        values, indices, indptr, shape = self.read(keys, whole=keys[1:]).values()
        if shape.shape != (2,) or int(shape.min()) < 1:
            raise GcondError(f"{self.label(keys[3])} is {shape.tolist()}: it must be two positive numbers")
        size = (int(shape[0]), int(shape[1]))
        if indptr.shape != (size[0] + 1,):
            raise GcondError(f"{self.label(keys[2])} must have one entry more than the {size[0]} rows")
        return checks.csr(f"the arrays {', '.join(keys)} in '{self.name}'", indptr, indices, values.float(), size)

    def _check_names(self, keys: Sequence[str]) -> None:
        if missing := [key for key in keys if key not in self]:
            raise GcondError(
                f"'{self.name}' has no array '{missing[0]}' (it has {', '.join(sorted(self._sizes)[:12]) or 'none'}): "
                "the gnn-benchmark layout is adj_data, adj_indices, adj_indptr, adj_shape, the same with attr_, "
                "labels; PyG's names are x, y, edge_index"
            )

    def _claimed(self, keys: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """The shapes that headers claim, refused where the archive has not as much."""
        found: dict[str, tuple[int, ...]] = {}
        with zipfile.ZipFile(self._open()) as archive:
            for info in archive.infolist():
                if (key := info.filename.removesuffix(".npy")) not in keys or key == info.filename:
                    continue
                with archive.open(info) as member:
                    version = np.lib.format.read_magic(member)
                    read = np.lib.format.read_array_header_1_0
                    shape, _, kind = (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(member)
                    held = info.file_size - member.tell()
                claimed = math.prod(shape) * kind.itemsize
                if kind.hasobject:  # a pickle, which is refused when it is read
                    continue
                if claimed != held:
                    raise GcondError(f"{self.label(key)} claims {claimed:,} bytes and has {held:,}: it is damaged")
                found[key] = shape
        return found

    def _array(self, arrays: np.lib.npyio.NpzFile, key: str) -> np.ndarray:
        try:
            array = arrays[key]
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            raise GcondError(
                f"'{key}' in '{self.name}' is an object array, stored as a pickle, which gcond never opens: "
                "save it with a plain number type"
            ) from None
        if not isinstance(array, np.ndarray):  # a member without the .npy header comes back as bytes
            raise GcondError(f"'{key}' in '{self.name}' is not a numpy array")
        return array


def edges_of(matrix: SparseMatrix) -> Tensor:
    """int [2, E]: row i of the matrix lists the targets of node i."""
    return torch.stack([matrix.row_index.to(matrix.indices.dtype), matrix.indices])


def own_split(archive: Archive) -> Split | None:
    """The split that the file brings: ``train_mask``, ``val_mask`` and ``test_mask``, or the same without ``_mask``."""
    spelled = {part: (part, *OTHER_NAMES.get(part, ())) for part in PARTS}
    names = {
        part: next((key for word in words for key in (f"{word}_mask", word) if key in archive), None)
        for part, words in spelled.items()
    }
    if not any(names.values()):
        return None
    if absent := [part for part, key in names.items() if key is None]:
        raise GcondError(f"'{archive.name}' has a split without '{absent[0]}_mask': give all three parts or none")
    train, val, test = (archive.tensor(key) for key in names.values() if key)
    return Split(train, val, test, "the split is the file's own")
