"""Random selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from gcond.condensed import CondensedGraph, Task
from gcond.matching.callback import Callback
from gcond.methods.method import Method, induced_subgraph
from gcond.runtime.seeds import generator


@dataclass(frozen=True)
class Random(Method):
    """Labelled nodes drawn uniformly from each class, without replacement, and the edges among them."""

    name: ClassVar[str] = "random"
    kind: ClassVar[Literal["selected"]] = "selected"
    summary: ClassVar[str] = "labelled nodes drawn at random from each class"
    citation: ClassVar[str] = "the floor that every other method must beat"

    def reduce(self, task: Task, callbacks: Sequence[Callback] = ()) -> CondensedGraph:
        stream = generator(task.seed, "selection")
        chosen = []
        for label, count in enumerate(task.quota.tolist()):
            candidates = task.candidates(label)
            chosen.append(candidates[torch.randperm(len(candidates), generator=stream)[:count]])
        return induced_subgraph(task, torch.cat(chosen))
