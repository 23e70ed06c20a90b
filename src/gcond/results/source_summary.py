"""A summary of the source graph that results are about."""

from __future__ import annotations

from dataclasses import dataclass

from gcond.condensed import Provenance
from gcond.graph import SourceGraph
from gcond.results.quantities import Count


@dataclass(frozen=True)
class SourceSummary:
    """The source graph in numbers: what is condensed of it, so in the inductive setting its training nodes alone.

    What is not known, because only a condensed file speaks of it, is ``None`` or empty.
    """

    name: str
    sha256: str = ""
    setting: str = ""
    nodes: Count | None = None
    edges: Count | None = None
    features: Count | None = None
    classes: Count | None = None
    class_names: tuple[str, ...] = ()
    class_nodes: tuple[Count, ...] = ()
    """Training nodes per class."""
    bytes: Count | None = None

    @classmethod
    def of(cls, source: SourceGraph) -> SourceSummary:
        """Count ``source``."""
        found = source.training_graph().statistics
        return cls(
            name=source.name,
            sha256=source.sha256,
            setting=source.setting,
            nodes=found.nodes,
            edges=found.edges,
            features=found.features,
            classes=found.classes,
            class_names=source.class_names,
            class_nodes=found.class_nodes,
            bytes=found.bytes,
        )

    @classmethod
    def remembered(cls, made: Provenance) -> SourceSummary:
        """As much as a condensed file knows of its source."""
        source = made.source
        return cls(
            name=source.get("name", ""),
            sha256=source.get("sha256", ""),
            setting=made.setting,
            nodes=source.get("nodes"),
            edges=source.get("edges"),
            features=source.get("features"),
            classes=made.num_classes,
            class_names=made.class_names,
            bytes=source.get("bytes"),
        )
