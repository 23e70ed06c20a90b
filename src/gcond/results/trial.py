"""One training, and how long one takes: the rows of a run folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from gcond.results.quantities import Accuracy, Count, CpuSeconds


@dataclass(frozen=True)
class Trial:
    """One model, trained once on one graph from one seed."""

    key: str
    """Fingerprint of everything that determines the trial but the seed; see :func:`trial_key`."""
    source: str
    """Name of the graph that it was tested on."""
    condensed: str | None
    """sha256 of the condensed graph's tensors; ``None`` where the whole graph was trained on."""
    model: str
    seed: int
    val: Accuracy
    """Validation accuracy at the selected epoch, a fraction; or the metric of the recipe, where that is another."""
    test: Accuracy | None
    """Test accuracy there; ``None`` where a search did not look at the test nodes."""
    epoch: Annotated[int, Field(ge=1)]
    """The selected epoch, counted from 1."""
    cpu_seconds: CpuSeconds
    """Of this trial; runs that were trained together share theirs equally."""
    epochs: Annotated[int, Field(ge=1)] | None = None
    """The epochs that were done; ``None`` in logs of versions that did not count them."""
    looks: Annotated[int, Field(ge=0)] | None = None
    """How often the validation nodes were looked at; ``None`` as above."""
    confusion: tuple[tuple[Count, ...], ...] | None = None
    """Test nodes of each true class (row) by predicted class (column), from which every metric follows; ``None`` where
    the test nodes were not looked at, and in logs of versions that kept the accuracy alone."""

    def __post_init__(self) -> None:
        if self.confusion is not None and any(len(row) != len(self.confusion) for row in self.confusion):
            raise ValueError("a confusion matrix has as many columns as rows")


@dataclass(frozen=True)
class Timing:
    """One training, timed side by side with those that it is compared with."""

    key: str
    """Fingerprint of the training; that of its trials."""
    seed: int
    cpu_seconds: CpuSeconds
    """Of a whole training, validation included."""


def trial_key(identity: dict[str, Any]) -> str:
    """A short fingerprint of ``identity``, the same for the same content in any order."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
