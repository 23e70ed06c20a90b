"""The task that a method is given, and what the method notes while it works."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gcond.graph import LabelledView
from gcond.runtime.stopwatch import Stopwatch


class Snapshot(NamedTuple):
    """The whole state of a run between two epochs, from which it goes on to the same graph."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]
    """Plain data: epoch, rate, start, seconds, and the lists of the history."""


@dataclass
class Notes:
    """Facts that a method writes down on its way; they become provenance."""

    history: dict[str, list[float]] = field(default_factory=dict)
    start: str = ""
    """Start of X', where the method had a choice."""
    choices: dict[str, Any] = field(default_factory=dict)
    """What validation, or a rule, decided on the way."""
    ended: str = ""
    """Why it ended, where it could have gone on."""
    threads: int = 0
    """CPU threads that it computes with."""
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
    """int64 [C]: nodes to make per class; sums to the budget."""
    seed: int
    source_nodes: int = 0
    """Number of nodes of the source, those that this task does not show included."""
    identity: str = ""
    """Fingerprint of the task and the method's settings: a checkpoint of it belongs to no other."""
    interrupted: Snapshot | None = None
    """State of an earlier run of the same identity, to go on from."""
    taught: LabelledView | None = None
    """All nodes of the training graph with the labels of a teacher, where there is one."""
    importance: Tensor | None = None
    """float32 [C]: what a validation node counts by its class so that they stand for all nodes, by that teacher."""
    notes: Notes = field(default_factory=Notes)

    @property
    def labels(self) -> Tensor:
        """int64 [n]: the classes of the nodes to make, in order."""
        return torch.repeat_interleave(torch.arange(self.num_classes), self.quota)

    def candidates(self, label: int) -> Tensor:
        """int64: the training nodes of class ``label``, by row of ``train.inputs``."""
        return self.train.nodes[self.train.y == label]
