"""The score of a model on a graph, over all its runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gcond.runtime import notebook


@dataclass(frozen=True)
class ClassMetrics:
    """Metrics of test nodes that look at every class, means over all runs; :mod:`gcond.training.metrics` has formulas.

    All are fractions; deviations are those of a sample, 0 for a single run.
    """

    macro_f1: float
    macro_f1_std: float
    balanced_accuracy: float
    balanced_accuracy_std: float
    class_accuracy: tuple[float | None, ...]
    """The share of each class's test nodes that is found, its recall; ``None`` for a class without test nodes."""

    @property
    def worst_class(self) -> int | None:
        """The class with the lowest accuracy, of equal ones the first; ``None`` where no class has test nodes."""
        known = [(share, place) for place, share in enumerate(self.class_accuracy) if share is not None]
        return min(known)[1] if known else None

    @property
    def worst_class_accuracy(self) -> float | None:
        return None if self.worst_class is None else self.class_accuracy[self.worst_class]


@dataclass(frozen=True)
class Score:
    """Test accuracy that one model reached over all its runs, and what else was counted."""

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
    """Mean of what the epoch was chosen by, on validation nodes: accuracy, or the recipe's metric."""
    cpu_seconds: float
    """Of all runs together, validation included."""
    source: str = ""
    """sha256 of the graph it was tested on."""
    seed: int = 0
    """Of the first run; the others count on."""
    metrics: ClassMetrics | None = None
    """``None`` in files of versions that counted right answers alone."""

    @property
    def spread(self) -> float | None:
        """:attr:`std`, or ``None`` where a single run leaves no deviation to speak of."""
        return self.std if len(self.runs) > 1 else None

    @property
    def shown(self) -> str:
        """``71.2 ± 0.4 % (10 runs)``."""
        spread = "" if self.spread is None else f" ± {100 * self.spread:.1f}"
        return f"{100 * self.mean:.1f}{spread} % ({len(self.runs)} run{'' if len(self.runs) == 1 else 's'})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        return Scores([self])._repr_html_()

    @property
    def subject(self) -> str:
        """Identity of what was measured: scores of the same architecture, recipe and source replace each other."""
        # Files of versions that knew no other metric do not name it.
        recipe = {key: value for key, value in self.recipe.items() if (key, value) != ("metric", "accuracy")}
        return json.dumps([self.model, self.settings, recipe, self.source], sort_keys=True)


class Scores(list[Score]):
    """A list of scores that shows itself as a table in a notebook."""

    def _repr_html_(self) -> str:
        rows = [(score.model, score.shown, notebook.percent(score.val_mean)) for score in self]
        return notebook.grid("Scores", ("model", "test accuracy", "validation accuracy"), rows)
