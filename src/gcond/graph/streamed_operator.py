"""Products with an adjacency that stays on disk: its rows are read block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gcond.graph.inputs import Form
from gcond.graph.sent_arrays import Pieces, SentAdjacency
from gcond.graph.stored_arrays import StoredArrays
from gcond.linalg.sparse import SparseMatrix, multiply_narrow
from gcond.runtime.memory import hand_back

BLOCK_ENTRIES = 8_000_000
"""Entries of the adjacency that are held at a time, at most: 64 MB with their weights."""
BLOCK_ROWS = 200_000
"""Rows of it, at most: their product with 64 columns takes 51 MB, and MKL has it twice."""

ALONE = 8
"""With fewer wanted rows of a block than one in so many, each is read alone."""


def read_piece(array: np.ndarray | Pieces, start: int, stop: int) -> np.ndarray:
    """Entries ``start`` to ``stop`` of a one-dimensional array, read from its file where it is a map of one.

    Pages of a map would count as this process's own for as long as nobody else wants the memory.
    """
    if not isinstance(array, np.memmap) or array.filename is None:
        return array[start:stop]
    size = array.dtype.itemsize
    return np.fromfile(str(array.filename), array.dtype, stop - start, offset=array.offset + start * size)


def read_rows(array: np.ndarray, wanted: np.ndarray, step: int) -> np.ndarray:
    """The rows ``wanted`` (int64 [m], sorted) of an array [N, d], read from its file where it is a map of one.

    It goes over blocks of ``step`` rows: of one in which few are wanted they are read alone. A map would bring what
    lies around each, so that rows from all over it make all of it this process's own.
    """
    if not isinstance(array, np.memmap) or array.filename is None:
        return array[wanted]
    found = np.empty((len(wanted), array.shape[1]), array.dtype)
    size = found.itemsize * array.shape[1]
    flat = array.reshape(-1)
    with open(str(array.filename), "rb", buffering=0) as file:
        for start in range(0, len(array), step):
            stop = min(start + step, len(array))
            low, high = np.searchsorted(wanted, (start, stop))
            if (high - low) * ALONE < stop - start:
                for place in range(low, high):
                    if os.preadv(file.fileno(), [found[place].data], array.offset + int(wanted[place]) * size) != size:
                        raise OSError("a file ended before it should")
                continue
            block = read_piece(flat, start * array.shape[1], stop * array.shape[1]).reshape(stop - start, -1)
            found[low:high] = block[wanted[low:high] - start]
    return found


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """The rows of a stored adjacency A [N, N], a block at a time."""

    arrays: StoredArrays | SentAdjacency

    @cached_property
    def _starts(self) -> list[int]:
        """The rows that blocks begin with, and N."""
        indptr, count = self.arrays.indptr, self.arrays.num_nodes
        starts = [0]
        while (start := starts[-1]) < count:
            entries = read_piece(indptr, start, min(count, start + BLOCK_ROWS) + 1)
            rows = int(np.searchsorted(entries, entries[0] + BLOCK_ENTRIES, side="right")) - 1
            starts.append(start + max(rows, 1))
        return starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def symmetric(self) -> bool:
        return not self.arrays.directed

    def __iter__(self) -> Iterator[tuple[slice, SparseMatrix]]:
        """Which rows, and the rows [b, N]."""
        for start, stop in zip(self._starts[:-1], self._starts[1:], strict=True):
            yield slice(start, stop), self.rows(start, stop)

    def rows(self, start: int, stop: int) -> SparseMatrix:
        """Rows ``start`` to ``stop`` of A: [b, N]."""
        arrays = self.arrays
        indptr = read_piece(arrays.indptr, start, stop + 1)
        first, last = int(indptr[0]), int(indptr[-1])
        indices = read_piece(arrays.indices, first, last)
        values = np.ones(last - first, "<f4") if arrays.weights is None else read_piece(arrays.weights, first, last)
        offsets, columns, weights = (torch.from_numpy(part) for part in (indptr - first, indices, values))
        return SparseMatrix.from_parts(offsets, columns, weights, (stop - start, arrays.num_nodes))

    def whole(self) -> SparseMatrix:
        """All of A in memory, as a graph that fits has it: [N, N]."""
        matrix = self.rows(0, self.arrays.num_nodes)
        return SparseMatrix.from_parts(
            matrix.indptr, matrix.indices, matrix.values, matrix.shape, symmetric=self.symmetric
        )

    @property
    def nnz(self) -> int:
        return len(self.arrays.indices)

    def submatrix(self, rows: Tensor) -> SparseMatrix:
        """The graph among ``rows`` (int64 [m]): [m, m]."""
        return SparseMatrix.from_scipy(self.chosen(rows).to_scipy()[:, rows.numpy()], symmetric=self.symmetric)

    def chosen(self, rows: Tensor) -> SparseMatrix:
        """The rows ``rows`` (int64 [m]) of A: [m, N]."""
        import scipy.sparse

        order = rows.argsort(stable=True)
        wanted, width = rows[order].numpy(), self.arrays.num_nodes
        found = []
        for start, stop in zip(self._starts[:-1], self._starts[1:], strict=True):
            low, high = np.searchsorted(wanted, (start, stop))
            if low < high:
                found.append(self.rows(start, stop).to_scipy()[wanted[low:high] - start])
        empty = scipy.sparse.csr_matrix((0, width), dtype=np.float32)
        together = scipy.sparse.vstack([empty, *found], format="csr")
        return SparseMatrix.from_scipy(together[order.argsort().numpy()])


@dataclass(frozen=True, eq=False)
class StreamedOperator:
    """A normalised form of a stored adjacency: ``S = diag(left) A diag(right) + diag(loop)``, multiplied from the left.

    Only ``S @ dense`` is there: dense [N, k], of which two of that size are held.
    """

    blocks: RowBlocks
    left: Tensor
    """float32 [N]."""
    right: Tensor
    loop: Tensor | None
    hear: Callable[[int], None] = lambda entries: None
    """Called with the entries that were multiplied, after each block."""

    @classmethod
    def of(cls, blocks: RowBlocks, form: Form) -> StreamedOperator:
        """``gcn``, ``mean`` or ``laplacian``, as :class:`~gcond.graph.inputs.Inputs` has them."""
        arrays = blocks.arrays
        scale = torch.from_numpy(read_piece(arrays.scale, 0, arrays.num_nodes))
        if form == "gcn":
            return cls(blocks, scale, scale, scale.square())
        degree = scale.double().pow(-2).sub(1)  # of A + I less the self-loop
        if arrays.weights is None:
            degree = degree.round()
        present = degree > 1e-9
        power = -1.0 if form == "mean" else -0.5
        inverse = torch.where(present, torch.where(present, degree, 1).pow(power), 0).float()
        if form == "mean":
            return cls(blocks, inverse, torch.ones_like(inverse), None)
        return cls(blocks, -inverse, inverse, None)

    def __matmul__(self, dense: Tensor) -> Tensor:
        return self.consume(dense.clone())

    def consume(self, dense: Tensor, into: Tensor | None = None) -> Tensor:
        """``S @ dense`` where ``dense`` is not needed any more: it is overwritten, so that two of its size are held.

        The product is put ``into`` a tensor that is at hand, as the one before last of several hops.
        """
        product = torch.empty_like(dense) if into is None else into
        if self.loop is not None:
            torch.mul(dense, self.loop[:, None], out=product)
        else:
            product.zero_()
        dense.mul_(self.right[:, None])
        for where, rows in self.blocks:
            product[where].addcmul_(multiply_narrow(rows.csr, dense), self.left[where, None])
            self.hear(rows.nnz)
            hand_back()  # blocks have several sizes, and what they leave free would add up
        return product

    @property
    def T(self) -> StreamedOperator:  # noqa: N802 (the name every matrix library uses)
        """The transpose, of a graph without directions."""
        if not self.blocks.symmetric:
            assert isinstance(self.blocks.arrays, StoredArrays)  # tasks multiply from the left alone
            raise self.blocks.arrays.too_large(
                "the ridge on so many features and one-way edges", ", or pack it without directions"
            )
        return StreamedOperator(self.blocks, self.right, self.left, self.loop)

    def rows(self, chosen: Tensor) -> SparseMatrix:
        """The rows ``chosen`` (int64 [m]) of S: [m, N]."""
        import scipy.sparse

        matrix = self.blocks.chosen(chosen).to_scipy()
        matrix = scipy.sparse.diags(self.left[chosen].numpy()) @ matrix @ scipy.sparse.diags(self.right.numpy())
        if self.loop is not None:
            place = (np.arange(len(chosen)), chosen.numpy())
            matrix = matrix + scipy.sparse.csr_matrix((self.loop[chosen].numpy(), place), shape=matrix.shape)
        return SparseMatrix.from_scipy(matrix.tocsr().astype(np.float32))
