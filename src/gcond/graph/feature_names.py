"""The names of features: which column of a person's table each is."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from gcond.errors import GcondError
from gcond.linalg.sparse import take_columns

if TYPE_CHECKING:
    from gcond.graph.source_graph import SourceGraph


def check_feature_names(names: Sequence[str], width: int) -> tuple[str, ...]:
    """One name for each of ``width`` features, all different, or none at all."""
    found = tuple(map(str, names))
    if found and len(found) != width:
        raise GcondError(f"there are {len(found)} feature names for {width} features: give one for each")
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise GcondError(f"the feature name '{twice}' appears more than once: every feature needs its own")
    return found


def check_same_features(graph: SourceGraph, expected: Sequence[str]) -> None:
    """Refuse a graph whose features are not those that are ``expected``, in whatever order."""
    own = graph.feature_names
    if missing := sorted(set(expected) - set(own), key=list(expected).index):
        raise GcondError(
            f"'{graph.name}' has no feature column '{missing[0]}', which the model takes: "
            "give a graph with the features that it was trained on"
        )
    if extra := sorted(set(own) - set(expected), key=list(own).index):
        raise GcondError(
            f"'{graph.name}' has the feature column '{extra[0]}', which the model was not trained on: leave it out"
        )


def in_order(graph: SourceGraph, names: Sequence[str]) -> SourceGraph:
    """The same graph with its features in the order of ``names``, which are those that it has."""
    place = {name: at for at, name in enumerate(graph.feature_names)}
    x = take_columns(graph.x, torch.tensor([place[name] for name in names]))
    return dataclasses.replace(graph, x=x, feature_names=tuple(names))
