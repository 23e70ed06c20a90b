"""Test models and backbones, one per file; adding a file registers it.

What is exported here is for users, who may also subclass :class:`Model`; the rest of the modules is internal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from gcond.config import registry
from gcond.models.appnp import APPNP
from gcond.models.cheby import Cheby
from gcond.models.gat import GAT
from gcond.models.gcn import GCN
from gcond.models.mlp import MLP
from gcond.models.model import Model
from gcond.models.sage import SAGE
from gcond.models.sgc import SGC

__all__ = ["APPNP", "GAT", "GCN", "MLP", "SAGE", "SGC", "Cheby", "Model", "available", "find", "resolve"]


def available() -> dict[str, type[Model]]:
    """Every registered model by name."""
    return registry.discover(sys.modules[__name__], Model)


def find(name: str) -> type[Model]:
    """The model called ``name``; a miss names the choices."""
    return registry.resolve("model", name, available())


def resolve(models: str | Model | Iterable[str | Model]) -> list[Model]:
    """The models that are meant: ``"all"``, a name, a model (one's own, too), or several of these names and models."""
    return registry.chosen("model", models, Model, available())
