"""What a method is given, and what it writes down."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gcond.graph.labelled_view import LabelledView
from gcond.runtime.stopwatch import Stopwatch


@dataclass
class Notes:
    """What a method writes down on its way; it becomes provenance."""

    history: dict[str, list[float]] = field(default_factory=dict)
    start: str = ""
    """Where X' started, where the method had a choice."""
    stopwatch: Stopwatch = field(default_factory=Stopwatch)


@dataclass(frozen=True, eq=False)
class Task:
    """All that a method may see of the source graph: test labels are not in it.

    In the inductive setting it holds the training nodes' own graph; validation nodes are in
    ``val`` alone, for methods that probe their progress.
    """

    train: LabelledView
    val: LabelledView
    num_classes: int
    quota: Tensor
    """int64 [C]: nodes to make a class; sums to the budget."""
    seed: int
    source_nodes: int = 0
    """How many nodes the source has, those that this task does not show included."""
    identity: str = ""
    """What the task and the method's settings are, as a fingerprint: a checkpoint of it belongs to no other."""
    notes: Notes = field(default_factory=Notes)

    @property
    def labels(self) -> Tensor:
        """int64 [n]: the classes of the nodes to make, in order."""
        return torch.repeat_interleave(torch.arange(self.num_classes), self.quota)

    def candidates(self, label: int) -> Tensor:
        """int64: the training nodes of class ``label``, by row of ``train.inputs``."""
        return self.train.nodes[self.train.y == label]
