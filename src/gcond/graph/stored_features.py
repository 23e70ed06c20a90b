"""Features of a packed store, transformed as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gcond.graph.features import SPARSE_BELOW, FeatureTransform
from gcond.graph.stored_arrays import StoredArrays, StoredSparseRows
from gcond.graph.streamed_operator import read_piece, read_rows
from gcond.linalg.sparse import Matrix, SparseMatrix, dense
from gcond.linalg.tall import BLOCK_BYTES


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """X [N, d] of a packed store as ``transform`` makes it, a :class:`~gcond.linalg.tall.Columns`."""

    arrays: StoredArrays
    transform: FeatureTransform = field(default_factory=FeatureTransform)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.arrays.num_nodes, self.arrays.num_features)

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @cached_property
    def sparse_entries(self) -> int | None:
        """The entries that sparse features have, or ``None`` where, transformed, they are not mostly zeros.

        In memory the same features are sparse or dense by the same rule, in whatever form they came
        (:func:`~gcond.graph.features.compact`). Of features that are not, the first rows tell.
        """
        least = SPARSE_BELOW * self.shape[0] * self.shape[1]
        if isinstance(self.arrays.x, StoredSparseRows) and self.transform.kind != "standardise":
            entries = len(self.arrays.x.indices)
            return entries if entries < least else None
        entries = 0
        for _, rows in self.raw_matrices(whole=True):
            made = self.transform.apply(rows)
            assert isinstance(made, Tensor)
            entries += int(torch.count_nonzero(made))
            if entries >= least:
                return None
        return entries

    @property
    def is_sparse(self) -> bool:
        """Whether rows are sparse matrices."""
        return self.sparse_entries is not None

    @property
    def nbytes(self) -> int:
        """Bytes as the source graph in memory would hold them."""
        if self.sparse_entries is not None:
            return 8 * self.sparse_entries + 4 * (self.shape[0] + 1)
        return 4 * self.shape[0] * self.shape[1]

    def matrices(self) -> Iterator[tuple[slice, Matrix]]:
        """All rows, transformed, a block at a time and in their own form."""
        step = self._step(whole=not self.is_sparse)
        for start in range(0, self.shape[0], step):
            stop = min(start + step, self.shape[0])
            yield slice(start, stop), self.block(start, stop)

    def block(self, start: int, stop: int) -> Matrix:
        """Rows ``start`` to ``stop``, transformed, in their own form: [b, d]."""
        return self._in_form(self.transform.apply(self._raw(start, stop)))

    def _in_form(self, rows: Matrix) -> Matrix:
        """Rows as all of them are held: sparse or dense."""
        if not self.is_sparse:
            return dense(rows)
        if isinstance(rows, SparseMatrix):
            return rows
        import scipy.sparse

        return SparseMatrix.from_scipy(scipy.sparse.csr_matrix(rows.numpy()))

    def raw_matrices(self, *, whole: bool = False) -> Iterator[tuple[slice, Matrix]]:
        """The same before the transform, as they are stored; with ``whole``, in blocks that may be made dense."""
        step = self._step(whole=whole)
        for start in range(0, self.shape[0], step):
            stop = min(start + step, self.shape[0])
            yield slice(start, stop), self._raw(start, stop)

    def rows(self, start: int, stop: int) -> Tensor:
        """Rows ``start`` to ``stop``, dense: float32 [b, d]."""
        return dense(self.block(start, stop))

    def columns(self, start: int, stop: int) -> Tensor:
        """Columns ``start`` to ``stop``: float32 [N, k]."""
        found = torch.empty(self.shape[0], stop - start)
        for where, rows in self.matrices():
            if isinstance(rows, SparseMatrix):
                found[where] = torch.from_numpy(rows.to_scipy()[:, start:stop].toarray())
            else:
                found[where] = rows[:, start:stop]
        return found

    @property
    def T(self) -> TransposedFeatures:  # noqa: N802 (the name every matrix library uses)
        return TransposedFeatures(self)

    def __matmul__(self, columns: Tensor) -> Tensor:
        """``X @ columns``, in memory: [d, k] to [N, k]."""
        return torch.cat([rows @ columns for _, rows in self.matrices()])

    def matrix(self, index: Tensor) -> Matrix:
        """The rows ``index`` (int64 [m]), transformed, in their own form."""
        return self._in_form(self.transform.apply(self.raw_matrix(index)))

    def raw_matrix(self, index: Tensor) -> Matrix:
        """The rows ``index`` (int64 [m]) as they are stored, read in order of the file."""
        order = torch.argsort(index)
        wanted = index[order].numpy()
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order))
        x = self.arrays.x
        if isinstance(x, StoredSparseRows):
            return self._sparse(wanted).rows(back)
        found = torch.from_numpy(read_rows(x, wanted, self._step()))
        return found if torch.equal(back, torch.arange(len(back))) else found[back]

    def __getitem__(self, index: Tensor) -> Tensor:
        """The rows ``index`` (int64 [m]), dense: float32 [m, d]."""
        return dense(self.matrix(index))

    def _step(self, *, whole: bool = False) -> int:
        """Rows of a block; with ``whole``, of one in which sparse rows become dense."""
        x = self.arrays.x
        sparse = isinstance(x, StoredSparseRows) and not whole
        entries = len(x.indices) / max(1, x.shape[0]) * 3 if sparse else x.shape[1]  # type: ignore[union-attr]
        return max(1, int(BLOCK_BYTES // (4 * max(1.0, entries))))

    def _raw(self, start: int, stop: int) -> Matrix:
        x = self.arrays.x
        if isinstance(x, StoredSparseRows):
            indptr = read_piece(x.indptr, start, stop + 1)
            first, last = int(indptr[0]), int(indptr[-1])
            indices, values = (torch.from_numpy(read_piece(part, first, last)) for part in (x.indices, x.values))
            shape = (stop - start, x.shape[1])
            return SparseMatrix.from_parts(torch.from_numpy(indptr - first), indices, values, shape)
        width = x.shape[1]
        return torch.from_numpy(read_piece(x.reshape(-1), start * width, stop * width).reshape(stop - start, width))

    def _sparse(self, wanted: np.ndarray) -> SparseMatrix:
        """The sparse rows ``wanted``, sorted."""
        import scipy.sparse

        found, step = [], self._step()
        for start in range(0, self.shape[0], step):
            stop = min(start + step, self.shape[0])
            low, high = np.searchsorted(wanted, (start, stop))
            if low < high:
                raw = self._raw(start, stop)
                assert isinstance(raw, SparseMatrix)
                found.append(raw.to_scipy()[wanted[low:high] - start])
        empty = scipy.sparse.csr_matrix((0, self.shape[1]), dtype=np.float32)
        return SparseMatrix.from_scipy(scipy.sparse.vstack([empty, *found], format="csr"))


@dataclass(frozen=True, eq=False)
class TransposedFeatures:
    """``Xᵀ`` [d, N] of stored features, to be multiplied from the left."""

    features: StoredFeatures

    def __matmul__(self, columns: Tensor) -> Tensor:
        """``Xᵀ @ columns``: [N, k] to [d, k]."""
        total = torch.zeros(self.features.shape[1], columns.shape[1])
        for where, rows in self.features.matrices():
            total += rows.T @ columns[where]
        return total
