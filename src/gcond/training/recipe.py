"""The training recipe: how a model is trained, recorded with every score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gcond.config import settings
from gcond.config.metric import Metric
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.models import Model

PAPER_PROTOCOL: Mapping[str, Any] = {"validate_every": 1, "patience": 0}
"""Every epoch is done and looked at, as in the paper: what reproductions of its figures use."""


@dataclass(frozen=True)
class Recipe:
    """The way a test model is trained; recorded with every score."""

    epochs: int = 600
    """The most epochs, the paper's number (3000 for GAT)."""
    lr: float = 0.01
    """Adam's rate in the first half; a tenth of it, with fresh moments, in the second (released scripts)."""
    weight_decay: float = 5e-4
    """L2 penalty on every parameter (paper, evaluation process)."""
    dropout: float = 0.0
    """On hidden layers. 0 in the paper's text; its released transductive script uses 0.5."""
    select: Literal["best-validation", "last"] = "best-validation"
    """Which epoch's weights are tested."""
    validate_every: int | Literal["auto"] = "auto"
    """Epochs between two looks at the validation nodes; the last epoch is always looked at. ``auto`` looks after every
    epoch while weights move fast, at the start and when the rate has dropped, and then whenever the epochs at that rate
    have grown by a tenth. The paper looks after each."""
    patience: int | Literal["auto"] = "auto"
    """Epochs without a better look after which the rate drops before half-way; after half as many at the lower rate the
    training ends. Nothing ends before a model has fitted its training nodes half-way. ``auto`` is a sixth of the epochs
    and at least 100; 0 does every epoch, as the paper. Of no effect where the last epoch is selected."""
    metric: Metric = field(default="accuracy", metadata=settings.LATER)
    """What is best on the validation nodes: ``accuracy``, as in the paper; ``macro-f1`` or ``balanced-accuracy`` where
    rare classes count as much as frequent ones."""

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("validate_every", 1), ("weight_decay", 0), ("patience", 0)):
            value = getattr(self, name)
            if value != "auto" and value < least:
                raise ValueError(f"{name} must be at least {least}")
        if self.lr <= 0:
            raise ValueError("lr must be positive")
        if not 0 <= self.dropout < 1:
            raise ValueError("dropout must be at least 0 and below 1")

    @property
    def epochs_to_wait(self) -> int | None:
        """:attr:`patience` in epochs; ``None`` where nothing ends early."""
        return (max(100, self.epochs // 6) if self.patience == "auto" else self.patience) or None


def recipe_for(model: Model, given: Recipe | Mapping[str, Any] | None = None) -> Recipe:
    """The recipe as given, or the model's own with what is given on top."""
    if isinstance(given, Recipe):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise GcondError(f"recipe={given!r} is no way to train: give a Recipe, or settings such as {{'epochs': 200}}")
    return settings.build(Recipe, {**model.recipe, **(given or {})}, "the training recipe")
