"""What results say of the source graph that they are about."""

from __future__ import annotations

from dataclasses import dataclass

from gcond.condensed.statistics import describe
from gcond.graph.learning_setting import Setting
from gcond.graph.source_graph import SourceGraph


@dataclass(frozen=True)
class Summary:
    """The source graph in numbers: what is condensed of it, so in the inductive setting its training nodes alone."""

    name: str
    sha256: str
    setting: Setting
    nodes: int
    edges: int
    features: int
    classes: int
    class_names: tuple[str, ...] | None
    class_nodes: tuple[int, ...]
    """Training nodes a class."""
    bytes: int


def summarise(source: SourceGraph) -> Summary:
    """Count ``source``."""
    found = describe(source.training_graph())
    return Summary(
        name=source.name,
        sha256=source.sha256,
        setting=source.setting,
        nodes=found.nodes,
        edges=found.edges,
        features=found.features,
        classes=found.classes,
        class_names=tuple(source.class_names) or None,
        class_nodes=found.class_nodes,
        bytes=found.bytes,
    )
