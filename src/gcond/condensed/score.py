"""The score of a model on a graph, over all its runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Score:
    """Test accuracy that one model reached over all its runs."""

    model: str
    settings: dict[str, Any]
    """The architecture."""
    recipe: dict[str, Any]
    """The recipe that it was trained by."""
    mean: float
    """Mean test accuracy, a fraction."""
    std: float
    """Sample standard deviation over the runs; 0 for a single one."""
    runs: tuple[float, ...]
    """Test accuracy of each run, by seed."""
    val_mean: float
    cpu_seconds: float
    """Of all runs together, validation included."""
    source: str = ""
    """sha256 of the graph it was tested on."""
    seed: int = 0
    """Of the first run; the others count on."""

    @property
    def spread(self) -> float | None:
        """:attr:`std`, or ``None`` where a single run leaves no deviation to speak of."""
        return self.std if len(self.runs) > 1 else None

    @property
    def subject(self) -> str:
        """Identity of what was measured: scores of the same architecture, recipe and source replace each other."""
        return json.dumps([self.model, self.settings, self.recipe, self.source], sort_keys=True)
