"""DC-Graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from gcond.condensed import Task
from gcond.graph import Inputs, LabelledView
from gcond.linalg.sparse import Identity, take_rows
from gcond.matching.start import Init
from gcond.matching.structure import NoStructure, Structure
from gcond.methods.gradient_matching import GradientMatching
from gcond.teaching import TeacherName


@dataclass(frozen=True)
class DCGraph(GradientMatching):
    """Dataset condensation on the features alone: the graph comes in only when a model is tested on the source.

    Scored by a model that does not look at the graph either (``--models mlp``), it is plain dataset condensation, DC.
    """

    name: ClassVar[str] = "dc-graph"
    summary: ClassVar[str] = "features learned by matching gradients without the graph"
    citation: ClassVar[str] = (
        "Zhao et al., Dataset Condensation with Gradient Matching, ICLR 2021; Jin et al., ICLR 2022, for the variant"
    )

    auto_rate: ClassVar[float] = 0.01

    init: Init | Literal["auto"] = "sample"
    """Where X' starts; anything propagated would let the graph in."""
    teacher: TeacherName | Literal["none"] = "none"
    """None: a teacher would look at the graph."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.teacher != "none":
            raise ValueError("teacher must be none here: dc-graph condenses without the graph")
        if self.init in {"auto", "clusters", "propagated-means"}:
            raise ValueError(f"init must not be {self.init} here: dc-graph condenses without the graph")
        for name in ("fanout", "fanout_scaled"):
            if getattr(self, name) != getattr(type(self), name):
                raise ValueError(f"{name} is of neighbours, and dc-graph condenses without any: leave it out")

    def structure_for(self, task: Task) -> Structure:
        return NoStructure()

    def source_hops(self) -> int:
        return 0

    def source_view(self, task: Task) -> LabelledView:
        train = task.train
        rows = take_rows(train.inputs.x, train.nodes)
        everyone = torch.arange(len(train.nodes), device=train.nodes.device)
        return LabelledView(Inputs(rows, Identity()), everyone, train.y, train.source_index[train.nodes.cpu()])
