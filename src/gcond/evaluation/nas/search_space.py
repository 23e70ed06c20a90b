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
from gcond.models import Model
from gcond.models.model import ACTIVATIONS

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
        """The settings that tell ``model`` from the others."""
        return {key: getattr(model, key) for key in self.grid}


def space(model: str | Model, grid: Mapping[str, Iterable[Any]] | None = None) -> Space:
    """The architectures of ``model`` over ``grid``, by default the paper's; values may be text that spells them."""
    (base,) = model_registry.resolve(model)
    if grid is None:
        if base.name not in PAPER:
            known = ", ".join(field.name for field in dataclasses.fields(base))
            raise GcondError(
                f"the paper has no search space for '{base.name}': give a grid over its settings ({known})"
            )
        grid = PAPER[base.name]
    if not grid:
        raise GcondError("the grid is empty: name at least one setting and its values, for example hidden=16,64")
    values = {key: list(given) for key, given in grid.items()}
    for key, given in values.items():
        if not given:
            raise GcondError(f"the grid has no value for '{key}': give some, for example {key}=1,2")
    others, what = dataclasses.asdict(base), f"model '{base.name}'"
    choices = (dict(zip(values, choice, strict=True)) for choice in product(*values.values()))
    built = [settings.build(type(base), others | choice, what) for choice in choices]
    models = tuple(dict.fromkeys(built))
    typed = {key: list(dict.fromkeys(getattr(one, key) for one in models)) for key in values}
    return Space(typed, models)
