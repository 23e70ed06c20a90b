"""Recipes that fit, for people: what a search tried, and what was recommended."""

from __future__ import annotations

from gcond.condensed import Recommendation
from gcond.reports.score_changes import changed
from gcond.reports.tables import Table, assignments, count, known, percent
from gcond.results import RecipeSearch, TriedRecipe

FIXED = "the fixed recipe"
LEGEND = "a recipe is taken where its gain over the best so far is more than noise; the last one taken is recommended"


def recipe_table(search: RecipeSearch, title: str = "") -> Table:
    """A row for each recipe that was tried."""
    start = fixed(search.recommendation)
    return Table.of([_cells(one, start) for one in search.tried], title, words=(0, 4))


def recommendation_sentence(found: Recommendation) -> str:
    """What is recommended, and what that is worth."""
    tried = f"{count(found.tried, 'recipe')} tried on {count(len(found.graphs), 'graph')}"
    changes = changed(found)
    if changes == found.held:
        return f"{found.model}: {fixed(found)}, {percent(found.val_mean)} % validation accuracy; {tried}"
    return (
        f"{found.model}: {assignments(changes)}; {percent(found.val_mean)} % validation accuracy, "
        f"{percent(found.fixed_val_mean)} % with {fixed(found)}; {tried}"
    )


def fixed(found: Recommendation) -> str:
    """The recipe that a recommendation was searched from, in words."""
    return f"{FIXED} with {assignments(found.held)}" if found.held else FIXED


def _cells(one: TriedRecipe, start: str) -> dict[str, str]:
    return {
        "recipe": assignments(one.changes) or start,
        "validation %": known(one.val_mean, percent),
        "gain": known(one.gain, _points),
        "noise": known(one.noise, percent),
        "": "taken" if one.taken and one.changes else "",
    }


def _points(gain: float) -> str:
    return f"{round(100 * gain, 1) + 0.0:+.1f}"  # no negative zero
