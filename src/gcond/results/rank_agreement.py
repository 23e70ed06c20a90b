"""How far two sides agree on an order: the correlations of what they say about the same things."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any


def pearson(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Correlation of the values; ``None`` of fewer than two, and where a side does not vary."""
    from scipy.stats import pearsonr

    return _correlate(pearsonr, one, other)


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Correlation of the ranks (Spearman's ρ); ``None`` as above."""
    from scipy.stats import spearmanr

    return _correlate(spearmanr, one, other)


def kendall(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Pairs in the same order less pairs in the other, as a share of all (Kendall's τ_b); ``None`` as above."""
    from scipy.stats import kendalltau

    return _correlate(kendalltau, one, other)


def _correlate(function: Callable[..., Any], one: Sequence[float], other: Sequence[float]) -> float | None:
    if len(one) < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy warns of a side that does not vary, and says NaN
        value = float(function(one, other).statistic)
    return value if math.isfinite(value) else None
