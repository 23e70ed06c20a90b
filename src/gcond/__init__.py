"""Condense a large attributed graph into a tiny synthetic one on which GNNs train as well.

>>> import gcond
>>> graph = gcond.load("cora")
>>> small = gcond.condense(graph, ratio="2.6%")
>>> gcond.evaluate(small, on=graph, models=["gcn"], runs=10)

Public are the names here and those of ``gcond.methods`` and ``gcond.models`` (what there is, by name or by class),
``gcond.recipes`` (``gcond.recipes.load("cora")`` has the paper's settings), ``gcond.callbacks`` (listeners to a
condensation), ``gcond.results`` (what comparisons and searches return), ``gcond.condensed`` (what methods take and
make), ``gcond.runtime.engines`` and ``gcond.transforms`` (condensation in PyG). All else is internal and may move.
Names are imported when they are first used, so that ``gcond --help`` answers without importing torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gcond.condensed.condensed_graph import CondensedGraph as CondensedGraph
    from gcond.data import load as load
    from gcond.data.packing import pack as pack
    from gcond.data.synthetic_tables import synthesize as synthesize
    from gcond.errors import GcondError as GcondError
    from gcond.errors import GcondWarning as GcondWarning
    from gcond.evaluation.audit.audit import audit as audit
    from gcond.evaluation.compare import compare as compare
    from gcond.evaluation.evaluate import evaluate as evaluate
    from gcond.evaluation.nas.architecture_search import search as search
    from gcond.evaluation.recommend import recommend as recommend
    from gcond.evaluation.train import train as train
    from gcond.evaluation.tuning.hyperparameter_search import tune as tune
    from gcond.graph.features import FeatureTransform as FeatureTransform
    from gcond.graph.propagation import propagate as propagate
    from gcond.graph.source_graph import SourceGraph as SourceGraph
    from gcond.methods.compact import compact as compact
    from gcond.methods.condense import condense as condense
    from gcond.methods.grow import grow as grow
    from gcond.methods.update import update as update
    from gcond.runtime.engines import open_engine as open_engine
    from gcond.training.predictions import Predictions as Predictions
    from gcond.training.recipe import Recipe as Recipe
    from gcond.training.trained_model import TrainedModel as TrainedModel
    from gcond.training.trained_model import load_model as load_model

_HOMES = {
    "load": "gcond.data",
    "pack": "gcond.data.packing",
    "synthesize": "gcond.data.synthetic_tables",
    "condense": "gcond.methods.condense",
    "grow": "gcond.methods.grow",
    "update": "gcond.methods.update",
    "compact": "gcond.methods.compact",
    "evaluate": "gcond.evaluation.evaluate",
    "train": "gcond.evaluation.train",
    "load_model": "gcond.training.trained_model",
    "compare": "gcond.evaluation.compare",
    "search": "gcond.evaluation.nas.architecture_search",
    "recommend": "gcond.evaluation.recommend",
    "tune": "gcond.evaluation.tuning.hyperparameter_search",
    "audit": "gcond.evaluation.audit.audit",
    "propagate": "gcond.graph.propagation",
    "open_engine": "gcond.runtime.engines",
    "CondensedGraph": "gcond.condensed.condensed_graph",
    "SourceGraph": "gcond.graph.source_graph",
    "TrainedModel": "gcond.training.trained_model",
    "Predictions": "gcond.training.predictions",
    "FeatureTransform": "gcond.graph.features",
    "Recipe": "gcond.training.recipe",
    "GcondError": "gcond.errors",
    "GcondWarning": "gcond.errors",
}

_MODULES = {
    "callbacks": "gcond.callbacks",
    "methods": "gcond.methods",
    "models": "gcond.models",
    "recipes": "gcond.methods.recipe_file",
    "transforms": "gcond.transforms",
}

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'gcond' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
