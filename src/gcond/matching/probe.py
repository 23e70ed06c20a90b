"""The validation probe: how well does a quick model trained on the current condensed graph do?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gcond.errors import DivergedError, GcondError
from gcond.graph import LabelledView
from gcond.matching.cost_estimate import BACKWARD, step_work
from gcond.models import GCN, Model
from gcond.training import Recipe, fit
from gcond.training.progress import longest


@dataclass(frozen=True)
class Probed:
    """Validation accuracy that a probe found, and when."""

    epoch: int
    """Epochs done when it was taken."""
    accuracy: float
    """Validation accuracy, a fraction."""


@dataclass(frozen=True, eq=False)
class Probe:
    """A narrow GCN, trained briefly on the condensed graph and scored on the validation nodes, at its best epoch."""

    val: LabelledView
    classes: int
    seed: int
    model: ClassVar[Model] = GCN(layers=2, hidden=64)
    recipe: ClassVar[Recipe] = Recipe(epochs=120, lr=0.03, patience=0)
    runs: ClassVar[int] = 2

    def accuracy(self, condensed: LabelledView) -> float:
        """Mean validation accuracy over the runs: the same seeds at every probe, so that probes compare.

        A graph that the model diverges on scores 0.
        """
        if len(self.val.nodes) == 0:
            raise GcondError("there is no validation node to probe on: give some, or turn probes off by probe_every=0")
        seeds = range(self.seed, self.seed + self.runs)
        try:
            found = fit(self.model, condensed, self.val, classes=self.classes, seeds=list(seeds), recipe=self.recipe)
        except DivergedError:
            return 0.0
        return float(found.val_accuracy.mean())

    def work(self, condensed: LabelledView) -> float:
        """Estimated cost of a probe, see :mod:`gcond.matching.cost_estimate`."""
        look = step_work(self.model, self.val, self.classes) / BACKWARD
        whole = longest(self.recipe)
        return self.runs * (whole.epoch * step_work(self.model, condensed, self.classes) + whole.looks * look)


def probe_interval(asked: int, share: float, epoch_work: float, probe_work: float) -> int:
    """Epochs from one probe to the next: as ``asked``, or more where probes would be above ``share`` of all work."""
    return max(asked, math.ceil(probe_work * (1 - share) / (share * epoch_work)))
