"""Ways to a condensed graph, one a file; adding a file registers it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcond.config import settings
from gcond.config.registry import discover, resolve
from gcond.errors import GcondError
from gcond.methods.method import Method


def available() -> dict[str, type[Method]]:
    """Every method by name."""
    return discover(sys.modules[__name__], Method)


def find(name: str) -> type[Method]:
    """The method called ``name``; a miss names the choices."""
    return resolve("method", name, available())


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
