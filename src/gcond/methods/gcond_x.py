"""GCond-X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcond.matching.structure import NoStructure, Structure
from gcond.methods.base import Task
from gcond.methods.gcond import GradientMatching


@dataclass(frozen=True)
class GCondX(GradientMatching):
    """GCond without a structure of its own: the graph goes into the features, and A' = I."""

    name: ClassVar[str] = "gcond-x"
    summary: ClassVar[str] = "features alone, learned by matching gradients with those on the graph"
    citation: ClassVar[str] = "Jin et al., Graph Condensation for Graph Neural Networks, ICLR 2022"

    def structure_for(self, task: Task) -> Structure:
        return NoStructure()
