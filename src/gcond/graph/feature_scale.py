"""A warning of features whose scale no usual model can learn from."""

from __future__ import annotations

from torch import Tensor

from gcond.graph.features import column_scales_of, occurrences, squares
from gcond.linalg.sparse import Matrix

SHORTEST, LONGEST = 0.01, 1e4
"""Usual lengths of a row; Adam at a rate of 0.01 fits what is between in a few hundred steps."""
UNEVEN = 1e3
"""A column that is this many times the median one drowns the others."""

REMEDY = "features='auto' chooses a transform"


def scale_warning(x: Matrix) -> str:
    """A sentence where the scale of the features is useless, else nothing."""
    doubt = scale_doubt(squares(x), occurrences(x), x.shape[0])
    return f"{doubt}: {REMEDY}" if doubt else ""


def scale_doubt(total: Tensor, count: Tensor, rows: int) -> str:
    """What is useless about the scale of columns with ``total`` sums of squares over ``count`` entries, else nothing.

    Both are [d], and the entries those that are not zero.
    """
    length = (float(total.sum()) / max(1, rows)) ** 0.5
    if length == 0:
        return ""
    scales = column_scales_of(total, count)
    ratio = float(scales.max() / scales.median())
    if ratio > UNEVEN:
        return f"one feature is {ratio:,.0f} times as large as is usual here, and models may see nothing else"
    if not SHORTEST <= length <= LONGEST:
        size = "small" if length < SHORTEST else "large"
        return f"the features are too {size} to be fitted, rows have length {length:.2g}"
    return ""
