"""The schedule: which of X' and Φ learns in an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Order = Literal["structure-first", "features-first", "joint"]


@dataclass(frozen=True)
class Schedule:
    """Turns of X' and Φ; ``joint`` updates both at every step."""

    order: Order
    features_epochs: int = 1
    """τ₁: epochs of one turn of X'."""
    structure_epochs: int = 1
    """τ₂: epochs of one turn of Φ."""

    def __post_init__(self) -> None:
        if self.features_epochs < 1 or self.structure_epochs < 1:
            raise ValueError("features_epochs and structure_epochs must be at least 1")

    def learns(self, epoch: int) -> tuple[bool, bool]:
        """Whether X' and whether Φ learns in ``epoch``, counted from 0."""
        if self.order == "joint":
            return True, True
        at = epoch % (self.features_epochs + self.structure_epochs)
        structure = at < self.structure_epochs if self.order == "structure-first" else at >= self.features_epochs
        return not structure, structure
