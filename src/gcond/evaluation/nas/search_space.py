"""A search space: the architectures of one model that a grid of its settings spans."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

from gcond import models as model_registry
from gcond.config import settings
from gcond.errors import GcondError
from gcond.models.model import ACTIVATIONS, Model
from gcond.training.fit import stackable

Grid = Mapping[str, Sequence[Any]]

PAPER: Mapping[str, Grid] = MappingProxyType(
    {
        "appnp": MappingProxyType(
            {
                "hops": (2, 4, 6, 8, 10),
                "alpha": (0.1, 0.2),
                "hidden": (16, 32, 64, 128, 256, 512),
                "activation": tuple(ACTIVATIONS),
            }
        )
    }
)
"""The space that the paper searches: 480 architectures of APPNP (appendix on architecture search)."""


@dataclasses.dataclass(frozen=True)
class Space:
    """The architectures of a grid."""

    grid: dict[str, list[Any]]
    """The values of each setting, as the model has them."""
    models: tuple[Model, ...]
    """Every combination once; the last setting of the grid changes fastest."""

    def settings(self, model: Model) -> dict[str, Any]:
        """What tells ``model`` from the others."""
        return {key: getattr(model, key) for key in self.grid}


def space(model: str, grid: Mapping[str, Iterable[Any]] | None = None) -> Space:
    """The architectures of ``model`` over ``grid``, by default the paper's; values may be text that spells them."""
    cls = model_registry.find(model)
    if grid is None:
        if model not in PAPER:
            known = ", ".join(field.name for field in dataclasses.fields(cls))
            raise GcondError(f"the paper has no search space for '{model}': give a grid over its settings ({known})")
        grid = PAPER[model]
    if not grid:
        raise GcondError("the grid is empty: name at least one setting and its values, for example hidden=16,64")
    values = {key: list(given) for key, given in grid.items()}
    for key, given in values.items():
        if not given:
            raise GcondError(f"the grid has no value for '{key}': give some, for example {key}=1,2")
    what = f"model '{model}'"
    built = [settings.build(cls, dict(zip(values, choice, strict=True)), what) for choice in product(*values.values())]
    models = tuple(dict.fromkeys(built))
    typed = {key: list(dict.fromkeys(getattr(one, key) for one in models)) for key in values}
    return Space(typed, models)


def parse_grid(pairs: Iterable[str]) -> dict[str, list[str]] | None:
    """``["hidden=16,32", …]`` from the command line; ``None`` where there is none. A setting may be named twice."""
    grid: dict[str, list[str]] = {}
    for pair in pairs:
        key, equals, values = pair.partition("=")
        listed = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not key.strip() or not listed:
            raise GcondError(f"--grid takes setting=value,value, and '{pair}' is not of that form")
        grid.setdefault(key.strip(), []).extend(listed)
    return grid or None


def groups(models: Iterable[Model], features: int, classes: int) -> list[tuple[Model, ...]]:
    """``models`` in groups that can be trained side by side (:func:`gcond.training.fit.stackable`)."""
    found: dict[tuple[Any, ...], list[Model]] = {}
    for model in models:
        found.setdefault(stackable(model, features, classes), []).append(model)
    return [tuple(group) for group in found.values()]
