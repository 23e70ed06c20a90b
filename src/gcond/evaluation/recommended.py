"""Models and recipes as a condensed graph recommends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcond import models as model_registry
from gcond.condensed import CondensedGraph, Recommendation
from gcond.config import settings
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.models import Model
from gcond.training import Recipe

RECOMMENDED = "recommended"
"""The word that asks for the recommendation of the graph itself."""


@dataclass(frozen=True, eq=False)
class Advice:
    """A condensed graph as a source of recommendations."""

    graph: CondensedGraph
    file: str = ""
    """Where it was read from, if it was."""

    def recommendation(self, model: str) -> Recommendation:
        """The one for ``model``; without one it is said how to get it."""
        made = self.graph.provenance
        found = {one.model: one for one in made.recommendations} if made is not None else {}
        if model in found:
            return found[model]
        where = f"'{self.file}'" if self.file else "this condensed graph"
        lacking = f"has no recommended recipe for {model}" + (f", only for {', '.join(found)}" if found else "")
        option = "" if model == "gcn" else f" --model {model}"
        raise GcondError(f"{where} {lacking}: find one with gcond recommend {self.file or 'FILE'} --on SOURCE{option}")

    def model(self, name: str, changes: Mapping[str, Any] | None = None) -> Model:
        """The registered model called ``name`` in the recommended architecture, with ``changes`` on top."""
        found = self.recommendation(name).settings
        return settings.build(
            model_registry.find(name), {**found, **(changes or {})}, f"the recommended model '{name}'"
        )

    def models(self, asked: str | Model | Iterable[str | Model]) -> list[Model]:
        """Those that are ``asked`` for: by name in the recommended architecture, objects as they are."""
        listed = [asked] if isinstance(asked, str | Model) else list(asked)
        return [
            each if isinstance(each, Model) else self.model(named.name)
            for each in listed
            for named in model_registry.resolve(each)
        ] or model_registry.resolve(listed)

    def recipe(self, model: Model) -> Recipe:
        """The recommended recipe for a model of that name."""
        return settings.build(Recipe, self.recommendation(model.name).recipe, f"the recommended recipe of {model.name}")


def lent_advice(recipe: object) -> Advice | None:
    """The advice of the condensed file that ``recipe`` names; ``None`` where it is no file."""
    if not isinstance(recipe, str | Path) or recipe == RECOMMENDED:
        return None
    if isinstance(recipe, str) and not Path(recipe).suffix and not Path(recipe).exists():
        raise GcondError(
            f"recipe={recipe!r} is no way to train: it is '{RECOMMENDED}', or a condensed file that has one"
        )
    return Advice(CondensedGraph.load(recipe), str(recipe))


def own_advice(graph: CondensedGraph | SourceGraph, file: str = "") -> Advice:
    """The advice of the graph that is trained on itself, which was read from ``file``."""
    if isinstance(graph, CondensedGraph):
        return Advice(graph, file)
    raise GcondError(
        "a whole graph has no recommended recipe of its own: give recipe=FILE, a condensed graph of it that has one"
    )
