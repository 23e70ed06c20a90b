"""Ways to a condensed graph, one a file; adding a file registers it."""

from __future__ import annotations

import sys

from gcond.config.registry import discover, resolve
from gcond.methods.method import Method


def available() -> dict[str, type[Method]]:
    """Every method by name."""
    return discover(sys.modules[__name__], Method)  # type: ignore[type-abstract]


def find(name: str) -> type[Method]:
    """The method called ``name``; a miss names the choices."""
    return resolve("method", name, available())
