"""Test models and backbones, one a file; adding a file registers it."""

from __future__ import annotations

import sys

from gcond.config.registry import discover, resolve
from gcond.models.model import Model


def available() -> dict[str, type[Model]]:
    """Every model by name."""
    return discover(sys.modules[__name__], Model)  # type: ignore[type-abstract]


def find(name: str) -> type[Model]:
    """The model called ``name``; a miss names the choices."""
    return resolve("model", name, available())
