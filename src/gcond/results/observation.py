"""One training that was looked at from several sides: a row of an audit's log."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import FiniteFloat

from gcond.results.quantities import Count, CpuSeconds


@dataclass(frozen=True)
class Observation:
    """One model, trained once on one graph from one seed, and tested on one or several others."""

    key: str
    """Fingerprint of everything that determines it but the seed."""
    seed: int
    model: str
    confusions: dict[str, tuple[tuple[Count, ...], ...]]
    """For each graph that it was tested on, by name: test nodes of each true class (row) by predicted class."""
    cpu_seconds: CpuSeconds
    members: tuple[FiniteFloat, ...] = ()
    """Log-probabilities that it gives to the labels of nodes that were trained on, where that was asked for."""
    others: tuple[FiniteFloat, ...] = ()
    """The same of nodes that were not."""
