"""The recipe that fits a source graph, as validation found it; it travels in the files of its condensed graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Recommendation:
    """The architecture and the training of one model that validation liked best, one for all budgets of a source.

    It stands beside the fixed recipe, by which graphs and methods are compared. No test node was looked at for it.
    """

    model: str
    settings: dict[str, Any]
    """The architecture."""
    recipe: dict[str, Any]
    """The recipe to train it by."""
    transform: str
    """The kind of feature transform that it was found with: that of the source, and so of the condensed graphs."""
    val_mean: float
    """Mean validation accuracy of it over all graphs and runs, a fraction."""
    fixed_val_mean: float
    """That of the model's fixed recipe, with what was held."""
    tried: int
    """The number of recipes that were trained, the fixed one included."""
    graphs: tuple[str, ...]
    """sha256 of each condensed graph that it was found on."""
    runs: int
    """Trainings of each recipe on each graph."""
    seed: int = 0
    """Of the first run; the others count on."""
    source: str = ""
    """sha256 of the source graph."""
    held: dict[str, Any] = field(default_factory=dict)
    """Settings that a person gave to every recipe that was tried."""
    cpu_seconds: float = 0.0
    """Of all trainings together, validation included."""
