"""Condense a large attributed graph into a tiny synthetic one on which GNNs train as well.

>>> import gcond
>>> graph = gcond.load("cora")
>>> small = gcond.condense(graph, ratio="2.6%")
>>> gcond.evaluate(small, on=graph, models=["gcn"], runs=10)

:func:`gcond.compare` sets methods side by side and :func:`gcond.search` searches architectures;
:mod:`gcond.callbacks` listens to a condensation, :mod:`gcond.recipes` has the paper's settings,
:mod:`gcond.engines` does many jobs at a time, and :mod:`gcond.transforms` is for PyG. Names are imported when they
are first used, so that ``gcond --help`` answers without importing torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gcond.artefact import CondensedGraph as CondensedGraph
    from gcond.condensing import condense as condense
    from gcond.data import load as load
    from gcond.errors import GcondError as GcondError
    from gcond.evaluation import evaluate as evaluate
    from gcond.evaluation.comparing import compare as compare
    from gcond.evaluation.nas import search as search
    from gcond.graph import SourceGraph as SourceGraph
    from gcond.growing import grow as grow
    from gcond.propagation import propagate as propagate
    from gcond.training import Recipe as Recipe

_HOMES = {
    "load": "gcond.data",
    "condense": "gcond.condensing",
    "grow": "gcond.growing",
    "evaluate": "gcond.evaluation",
    "compare": "gcond.evaluation.comparing",
    "search": "gcond.evaluation.nas",
    "propagate": "gcond.propagation",
    "CondensedGraph": "gcond.artefact",
    "SourceGraph": "gcond.graph",
    "Recipe": "gcond.training",
    "GcondError": "gcond.errors",
}

_MODULES = ("callbacks", "engines", "recipes", "transforms")

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"gcond.{name}")
    raise AttributeError(f"module 'gcond' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
