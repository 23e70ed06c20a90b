"""How long a training takes, as rows of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field


@dataclass(frozen=True)
class Timing:
    """One training, timed beside others."""

    key: str
    """Fingerprint of the training; that of its trials."""
    seed: int
    cpu_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Of a whole training, validation included: what else a machine does meanwhile does not count."""
