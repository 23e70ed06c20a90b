"""How a score came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def changed(score: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the architecture and of the training in which a score is not its model's usual one."""
    from gcond import models
    from gcond.config import settings
    from gcond.training.recipe import Recipe

    cls = models.available().get(score["model"])
    if cls is None:  # a file may know models that are not here, and what is usual for them is not known
        return {}
    usual = settings.as_dict(cls()) | settings.as_dict(Recipe(**cls.recipe))
    used = {**score["settings"], **score["recipe"]}
    return {key: value for key, value in used.items() if key not in usual or usual[key] != value}
