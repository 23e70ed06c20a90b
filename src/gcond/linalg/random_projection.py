"""Random projection: many columns folded into few, lengths and angles about kept."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from gcond.linalg.sparse import Matrix, SparseMatrix, dense

MOST_ENTRIES = 40_000_000
"""Of a dense matrix that is worth making as it is: 160 MB, and a second per hop."""
MOST_SIDE = 2048
"""Of a matrix that is decomposed."""
WIDTH = 512
"""Columns after folding: angles are off by about 1/√512, 4 %, which is less than two nodes of a class differ by."""


def projected_features(x: Matrix, stream: Generator, *, labelled: int = 0, within: int | None = None) -> Tensor:
    """``x`` [N, d] as it is, dense, or ``x R`` [N, w] with the signs R of :func:`folding`."""
    sparse = isinstance(x, SparseMatrix)
    signs = folding(x.shape, stream, sparse=sparse, labelled=labelled, within=within)
    return dense(x) if signs is None else x @ signs.to(x.device)


def folding(
    shape: Sequence[int], stream: Generator, *, sparse: bool, labelled: int = 0, within: int | None = None
) -> Tensor | None:
    """R [d, w] of independent signs, over √w, for features of ``shape`` that are too large, else nothing.

    More than ``within`` columns are too large, which then is w. Without it w is :data:`WIDTH`, and too large is a
    sparse matrix of more than :data:`MOST_ENTRIES` places, or one of whose ``labelled`` rows both sides are longer than
    :data:`MOST_SIDE` (Achlioptas, Database-friendly random projections, 2003, for the signs). One that is dense already
    would not become much smaller.
    """
    rows, columns = shape
    width = WIDTH if within is None else within
    too_large = (sparse and rows * columns > MOST_ENTRIES) or min(labelled, columns) > MOST_SIDE
    if columns <= width or (within is None and not too_large):
        return None
    signs = torch.randint(2, (columns, width), generator=stream, dtype=torch.float32).mul_(2).sub_(1)
    return signs / width**0.5
