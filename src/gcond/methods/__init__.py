"""Methods: ways to a condensed graph, one per file; adding a file registers it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gcond.config import registry, settings
from gcond.errors import GcondError
from gcond.methods.clusters import Clusters
from gcond.methods.coarsening import Coarsening
from gcond.methods.dc_graph import DCGraph
from gcond.methods.gcond import GCond
from gcond.methods.gcond_x import GCondX
from gcond.methods.herding import Herding
from gcond.methods.k_center import KCenter
from gcond.methods.method import Method, induced_subgraph
from gcond.methods.random import Random

__all__ = [
    "Clusters",
    "Coarsening",
    "DCGraph",
    "GCond",
    "GCondX",
    "Herding",
    "KCenter",
    "Method",
    "Random",
    "available",
    "find",
    "induced_subgraph",
    "method_for",
    "resolve",
]


def available() -> dict[str, type[Method]]:
    """Every method by name."""
    return registry.discover(sys.modules[__name__], Method)


def find(name: str) -> type[Method]:
    """The method called ``name``; a miss names the choices."""
    return registry.resolve("method", name, available())


def resolve(asked: str | Method | Iterable[str | Method]) -> list[Method]:
    """The methods that are asked for: ``"all"``, a name, a :class:`Method` of one's own, or several of these.

    By name they have their default settings. A miss names the choices.
    """
    return registry.chosen("method", asked, Method, available())


def method_for(
    method: str | Method, options: Mapping[str, Any] | None = None, recipe: str | Path | None = None
) -> Method:
    """``method`` itself, or the one of that name with the settings of ``recipe`` and ``options`` on top.

    A :class:`Method` brings its own settings, so that there must be no others with it.
    """
    options = options or {}
    if isinstance(method, Method):
        given = [*options, *(["recipe"] if recipe is not None else [])]
        if given:
            raise GcondError(
                f"the method {type(method).__name__} brings its own settings, and {', '.join(given)} came with it: "
                "set them in the method, or give its name"
            )
        return method
    from gcond.methods import recipe_file

    cls = find(method)
    usual = recipe_file.load(recipe).settings(method) if recipe is not None else {}
    return settings.build(cls, usual | dict(options), f"method '{method}'")
