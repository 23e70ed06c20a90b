"""Some rows of a graph that stays on disk, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.graph.inputs import Chain, Form, Inputs
from gcond.graph.streamed_operator import RowBlocks
from gcond.linalg.sparse import Adjacency, Matrix, SparseMatrix

if TYPE_CHECKING:
    from gcond.graph.stored_inputs import StoredInputs


class StoredNeighbourhood(Inputs):
    """Some ``rows`` of a stored graph in memory, with the weights that normalising the whole graph gave them.

    As :class:`~gcond.graph.neighbourhood.Neighbourhood`: exact for the nodes that the rows were taken around. Only
    those of the rows that are ``inner`` (int64, sorted as they are) have edges into them: whatever is computed on the
    others is never asked for, and as neighbours of many they would have most of the edges.
    """

    def __init__(self, whole: StoredInputs, rows: Tensor, inner: Tensor) -> None:
        super().__init__(whole.stored.matrix(rows), _within(RowBlocks(whole.arrays).chosen(inner), rows, inner))
        self._whole = whole
        self._rows = rows
        self._inner = inner

    def _normalised(self, form: Form) -> Adjacency:
        return _within(self._whole.operator(form).rows(self._inner), self._rows, self._inner)

    def _propagate(self, form: Form, hops: int) -> Matrix | Chain:
        if isinstance(self.x, SparseMatrix) or hops == 0:
            return super()._propagate(form, hops)
        return self._whole.kept(form, hops)[self._rows]

    def _move(self, device: torch.device) -> Inputs:
        raise GcondError("a graph that is streamed from its store is computed on the CPU: use device='cpu'")


def _within(matrix: SparseMatrix, rows: Tensor, inner: Tensor) -> SparseMatrix:
    """The rows ``inner`` of a matrix, [i, N], among ``rows``, which they are of: [m, m], the other rows empty."""
    import scipy.sparse

    cut = matrix.to_scipy()[:, rows.numpy()]
    entries = np.zeros(len(rows) + 1, dtype=np.int64)
    entries[1 + np.searchsorted(rows.numpy(), inner.numpy())] = np.diff(cut.indptr)
    return SparseMatrix.from_scipy(
        scipy.sparse.csr_matrix((cut.data, cut.indices, entries.cumsum()), shape=(len(rows), len(rows)))
    )
