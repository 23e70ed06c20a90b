"""Graphs: the source graph and its parts, as views that models compute on.

The names below are the room's surface, imported when first used: naming a setting costs no torch. The rest is internal.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcond.graph.budget import Budget as Budget
    from gcond.graph.budget import budget_for as budget_for
    from gcond.graph.inputs import Inputs as Inputs
    from gcond.graph.labelled_view import LabelledView as LabelledView
    from gcond.graph.learning_setting import Setting as Setting
    from gcond.graph.source_graph import SourceGraph as SourceGraph

_HOMES = {
    "Budget": "budget",
    "budget_for": "budget",
    "Inputs": "inputs",
    "LabelledView": "labelled_view",
    "Setting": "learning_setting",
    "SourceGraph": "source_graph",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gcond.graph' has no attribute '{name}'")
    return getattr(import_module(f"gcond.graph.{_HOMES[name]}"), name)
