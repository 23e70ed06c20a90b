"""The part of a graph that some nodes' outputs depend on."""

from __future__ import annotations

import torch
from torch import Tensor

from gcond.graph.inputs import Chain, Form, Inputs
from gcond.linalg.sparse import Adjacency, Matrix, SparseMatrix, take_rows


class Neighbourhood(Inputs):
    """Some ``rows`` of a graph, with the weights that normalising the whole graph gave them.

    Propagated features are exact on every row. Any further hop is exact on the nodes all of whose
    neighbours are rows too; what a model computes on the outermost ones is never asked for.
    """

    def __init__(self, whole: Inputs, rows: Tensor) -> None:
        super().__init__(take_rows(whole.x, rows), _take_both(whole.adjacency, rows))
        self._whole = whole
        self._rows = rows

    def _normalised(self, form: Form) -> Adjacency:
        return _take_both(getattr(self._whole, form), self._rows)

    def _propagate(self, form: Form, hops: int) -> Matrix | Chain:
        whole = self._whole
        if not isinstance(whole.x, SparseMatrix) or not isinstance(whole.adjacency, SparseMatrix):
            propagated = whole.features(form, hops)
            assert isinstance(propagated, Tensor)
            return propagated[self._rows]
        # A chain starts from the features of everyone the rows can see and ends in the rows alone.
        seen = within(whole.adjacency, self._rows, hops)
        operator = getattr(whole, form)
        last = operator.submatrix(self._rows, seen)
        return Chain((operator.submatrix(seen),) * (hops - 1) + (last,), whole.x.rows(seen))

    def _move(self, device: torch.device) -> Inputs:
        return Neighbourhood(self._whole.to(device), self._rows.to(device))


def within(adjacency: SparseMatrix, nodes: Tensor, hops: int) -> Tensor:
    """Every node that at most ``hops`` edges lead from into ``nodes``, sorted: int64."""
    reached = torch.zeros(adjacency.shape[0], dtype=torch.bool, device=adjacency.device)
    reached[nodes] = True
    for _ in range(hops):
        before = int(reached.sum())
        reached[adjacency.indices[reached[adjacency.row_index]].long()] = True
        if int(reached.sum()) == before:
            break
    return reached.nonzero().squeeze(1)


def _take_both(adjacency: Adjacency, rows: Tensor) -> Adjacency:
    if isinstance(adjacency, SparseMatrix):
        return adjacency.submatrix(rows)
    return adjacency[rows][:, rows] if isinstance(adjacency, Tensor) else adjacency
