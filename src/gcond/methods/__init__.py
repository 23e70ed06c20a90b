"""Ways to a condensed graph, one a file; adding a file registers it."""

from __future__ import annotations

import sys

from gcond.methods.base import Method
from gcond.registry import discover, resolve


def available() -> dict[str, type[Method]]:
    """Every method by name."""
    return discover(sys.modules[__name__], Method)  # type: ignore[type-abstract]


def find(name: str) -> type[Method]:
    """The method called ``name``; a miss names the choices."""
    return resolve("method", name, available())
