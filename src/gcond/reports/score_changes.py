"""The settings behind a score, where they are not its model's usual ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcond.condensed import Recommendation, Score
    from gcond.results import Comparison, Finalist, Line


def changed(found: Score | Recommendation | Finalist) -> dict[str, Any]:
    """The settings of the architecture and of the training in which what was found is not its model's usual one."""
    usual = _usual(found.model)
    used = {**found.settings, **found.recipe}
    # A file may know models that are not here, and what is usual for them is not known.
    return {key: value for key, value in used.items() if key not in usual or usual[key] != value} if usual else {}


def with_changes(comparison: Comparison) -> tuple[Line, ...]:
    """The lines, each with what the recipe that was asked for changes in the usual training of its model."""
    asked, lines = comparison.recipe, comparison.lines
    if not asked:
        return lines
    usual = {model: _usual(model) for model in {line.model for line in lines}}
    return tuple(
        replace(line, changes={key: value for key, value in asked.items() if usual[line.model].get(key) != value})
        for line in lines
    )


def _usual(model: str) -> dict[str, Any]:
    """Every setting of ``model`` and of its training; none for a model that is not known here."""
    from gcond import models
    from gcond.config import settings
    from gcond.training import Recipe

    cls = models.available().get(model)
    return {} if cls is None else settings.as_dict(cls()) | settings.as_dict(Recipe(**cls.recipe))
