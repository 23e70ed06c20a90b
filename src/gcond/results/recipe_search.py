"""A search for the recipe that fits: what was tried, what that was worth, and what was taken."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gcond.condensed import CondensedGraph, Recommendation
from gcond.results.failure import Failure
from gcond.results.quantities import Accuracy, SettingValue


@dataclass(frozen=True)
class TriedRecipe:
    """One recipe, compared with the best that was known when it was tried."""

    changes: dict[str, SettingValue]
    """The settings in which it is not the recipe that the search started from; that one has none."""
    val_mean: Accuracy | None
    """Mean validation accuracy over all graphs and runs, a fraction; ``None`` where a training failed."""
    gain: float | None = None
    """The mean gain in it, run by run; ``None`` where there is nothing to compare."""
    noise: float | None = None
    """The gain that chance explains: only a greater one counts."""
    taken: bool = False
    """Whether the search went on from here."""


@dataclass(frozen=True, eq=False)
class RecipeSearch:
    """The outcome of :func:`gcond.recommend`."""

    recommendation: Recommendation
    graphs: tuple[CondensedGraph, ...]
    """The graphs as they were given, each with the recommendation in its provenance."""
    tried: tuple[TriedRecipe, ...]
    """Every recipe in the order in which they were tried; the first is the fixed one."""
    failures: tuple[Failure, ...] = ()
    """Trainings that failed, and why."""

    @property
    def changes(self) -> dict[str, SettingValue]:
        """The settings in which the recommendation is not the fixed recipe."""
        return next(one.changes for one in reversed(self.tried) if one.taken)

    def to_json(self) -> dict[str, Any]:
        return {
            "recommendation": asdict(self.recommendation),
            "changes": self.changes,
            "tried": [asdict(one) for one in self.tried],
            "failures": [asdict(one) for one in self.failures],
        }
