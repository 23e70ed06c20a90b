"""A threshold on A': what it leaves, and what a model reaches on that."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ThresholdPoint:
    """One threshold δ: how dense it leaves A', and the test accuracy there."""

    delta: float
    density: float
    """Entries of A' that are left, as a share of n²; the paper calls it sparsity."""
    mean: float
    """Mean test accuracy, a fraction."""
    std: float
    n: int
    """Trainings."""
