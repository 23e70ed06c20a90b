"""The metrics by name: by which of them validation chooses, and by which results are judged."""

from __future__ import annotations

from typing import Literal, get_args

Metric = Literal["accuracy", "macro-f1", "balanced-accuracy"]
"""Accuracy counts nodes; the others give every class the same weight, however rare it is."""

METRICS: tuple[Metric, ...] = get_args(Metric)
"""All of them, the usual one first."""
