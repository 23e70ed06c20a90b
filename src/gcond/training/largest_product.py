"""The largest product of a training step, by which threads are given out."""

from __future__ import annotations

from gcond.graph import LabelledView
from gcond.graph.stored_features import StoredFeatures
from gcond.graph.stored_inputs import StoredInputs
from gcond.graph.streamed_operator import RowBlocks
from gcond.linalg.sparse import Adjacency, Identity, SparseMatrix
from gcond.models import Model
from gcond.runtime.threads import SPARSE


def largest_product(model: Model, view: LabelledView, classes: int) -> float:
    """Multiply-adds of the largest product in a step of ``model`` on ``view``, sparse ones counted as they last.

    It is one of: features by a first weight, nodes by a later one, the adjacency by what comes of either. A graph that
    is streamed from its store counts as a whole; whoever computes on a block of it takes no more threads than it needs.
    """
    inputs = view.inputs
    if not isinstance(inputs, StoredInputs):
        inputs = view.focus(model.reach, model.precomputed).inputs
    shapes = [shape for shape in model.shapes(inputs.num_features, classes).values() if len(shape) > 1]
    first = [shape.numel() // inputs.num_features for shape in shapes if shape[0] == inputs.num_features]
    later = [shape.numel() for shape in shapes if shape[0] != inputs.num_features]
    entries = _as_dense(inputs.x)
    widest = max((shape[-1] for shape in shapes), default=0)
    neighbours = 0 if model.reach == model.precomputed else _as_dense(inputs.adjacency)
    return max(entries * max(first, default=0), inputs.num_nodes * max(later, default=0), neighbours * widest)


def _as_dense(matrix: Adjacency | StoredFeatures | RowBlocks) -> int:
    """Entries of a matrix to be multiplied, a sparse one's as so many dense ones; none of the identity."""
    if isinstance(matrix, RowBlocks):
        return SPARSE * len(matrix.arrays.indices)
    if isinstance(matrix, StoredFeatures):
        return matrix.nbytes // 4
    if isinstance(matrix, Identity):
        return 0
    return SPARSE * matrix.nnz if isinstance(matrix, SparseMatrix) else matrix.numel()
