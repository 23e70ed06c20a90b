"""One training as a row of a file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from gcond.results.row_log import RowLog

Accuracy = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Trial:
    """One model, trained once on one graph from one seed."""

    key: str
    """Fingerprint of everything that determines the trial but the seed; see :func:`trial_key`."""
    source: str
    condensed: str | None
    """sha256 of the condensed graph's tensors; None where the whole graph was trained on."""
    model: str
    seed: int
    test: Accuracy
    """Test accuracy at the selected epoch, a fraction."""
    val: Accuracy
    """Validation accuracy there."""
    epoch: Annotated[int, Field(ge=1)]
    """The selected epoch, counted from 1."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Wall time of this trial; runs trained together share theirs equally."""


def trial_key(identity: dict[str, Any]) -> str:
    """A short fingerprint of ``identity``, the same for the same content in any order."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


class TrialLog(RowLog[Trial]):
    """The :class:`RowLog` of trials."""

    def __init__(self, path: str | Path | None) -> None:
        super().__init__(path, Trial, "trial")
