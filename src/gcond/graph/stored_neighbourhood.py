"""Some rows of a graph that stays on disk, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    As :class:`~gcond.graph.neighbourhood.Neighbourhood`: exact for the nodes that the rows were taken around.
    """

    def __init__(self, whole: StoredInputs, rows: Tensor) -> None:
        super().__init__(whole.stored.matrix(rows), _within_rows(RowBlocks(whole.arrays).chosen(rows), rows))
        self._whole = whole
        self._rows = rows

    def _normalised(self, form: Form) -> Adjacency:
        return _within_rows(self._whole.operator(form).rows(self._rows), self._rows)

    def _propagate(self, form: Form, hops: int) -> Matrix | Chain:
        if isinstance(self.x, SparseMatrix) or hops == 0:
            return super()._propagate(form, hops)
        return self._whole.kept(form, hops)[self._rows]

    def _move(self, device: torch.device) -> Inputs:
        raise GcondError("a graph that is streamed from its store is computed on the CPU: use device='cpu'")


def _within_rows(matrix: SparseMatrix, rows: Tensor) -> SparseMatrix:
    """[m, N] cut to the columns ``rows``: [m, m]."""
    return SparseMatrix.from_scipy(matrix.to_scipy()[:, rows.numpy()])
