"""GCond-X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcond.condensed import Task
from gcond.matching.structure import NoStructure, Structure
from gcond.methods.gradient_matching import GradientMatching


@dataclass(frozen=True)
class GCondX(GradientMatching):
    """GCond without a structure of its own: the graph goes into the features, and A' = I."""

    name: ClassVar[str] = "gcond-x"
    summary: ClassVar[str] = "features alone, learned by matching gradients with those on the graph"
    citation: ClassVar[str] = "Jin et al., Graph Condensation for Graph Neural Networks, ICLR 2022"

    auto_rate: ClassVar[float] = 0.01

    def structure_for(self, task: Task) -> Structure:
        return NoStructure()
