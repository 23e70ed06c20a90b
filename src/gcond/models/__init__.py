"""Test models and backbones, one a file; adding a file registers it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gcond.config import registry
from gcond.errors import GcondError
from gcond.models.model import Model


def available() -> dict[str, type[Model]]:
    """Every model by name."""
    return registry.discover(sys.modules[__name__], Model)  # type: ignore[type-abstract]


def find(name: str) -> type[Model]:
    """The model called ``name``; a miss names the choices."""
    return registry.resolve("model", name, available())


def resolve(models: str | Model | Sequence[str | Model]) -> list[Model]:
    """The models that ``models`` names: one, several, ``"all"``, or models as they are."""
    models = [models] if isinstance(models, str | Model) else models
    if "all" in models:
        models = sorted(available())
    if not models:
        raise GcondError(f"no model is named: choose among {', '.join(sorted(available()))}, or all")
    return [model if isinstance(model, Model) else find(model)() for model in models]
