"""Random projection: many columns folded into few, lengths and angles about kept."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from gcond.linalg.sparse import Matrix, SparseMatrix, dense

MOST_ENTRIES = 40_000_000
"""Of a dense matrix that is worth making as it is: 160 MB, and a second per hop."""
MOST_SIDE = 2048
"""Of a matrix that is decomposed."""
WIDTH = 512
"""Columns after folding: angles are off by about 1/√512, 4 %, which is less than two nodes of a class differ by."""


def projected_features(x: Matrix, stream: Generator, *, labelled: int = 0) -> Tensor:
    """``x`` [N, d] as it is, dense, or ``x R`` [N, :data:`WIDTH`] with R of independent signs where it is too large.

    Too large is a sparse one of more than :data:`MOST_ENTRIES` places, or one of whose ``labelled`` rows both sides are
    longer than :data:`MOST_SIDE` (Achlioptas, Database-friendly random projections, 2003, for the signs). One that is
    dense already would not become much smaller.
    """
    rows, columns = x.shape
    fills_in = isinstance(x, SparseMatrix) and rows * columns > MOST_ENTRIES
    if columns <= WIDTH or not (fills_in or min(labelled, columns) > MOST_SIDE):
        return dense(x)
    signs = torch.randint(2, (columns, WIDTH), generator=stream, dtype=torch.float32).mul_(2).sub_(1)
    return x @ (signs / WIDTH**0.5).to(x.device)
