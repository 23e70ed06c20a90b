"""An estimate of how much work something is, before it is done.

Work is counted in multiply-adds, and what a step costs whatever its size as so many of them. Time would be
the truer measure, but a run that decided anything by the clock would not give the same graph twice.
"""

from __future__ import annotations

from gcond.graph import LabelledView
from gcond.linalg.sparse import SparseMatrix
from gcond.models import Model

OVERHEAD = 8_000_000
"""Of one training step: a quarter of a millisecond or so."""
BACKWARD = 3
"""A step forward and back, in steps forward."""


def step_work(model: Model, view: LabelledView, classes: int) -> float:
    """One step of training ``model`` on ``view``."""
    inputs = view.focus(model.reach, model.precomputed).inputs
    shapes = [shape for shape in model.shapes(inputs.num_features, classes).values() if len(shape) > 1]
    first = inputs.x.nnz if isinstance(inputs.x, SparseMatrix) else inputs.num_nodes * inputs.num_features
    others = sum(shape.numel() for shape in shapes if shape[0] != inputs.num_features)
    widths = sum(shape[1] for shape in shapes if shape[0] == inputs.num_features)
    return BACKWARD * (first * widths + inputs.num_nodes * others) + OVERHEAD
