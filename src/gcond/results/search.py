"""An architecture search: both sides' accuracies, how far they agree, and what the winners reach."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, Literal

from pydantic import Field

from gcond.condensed import CondensedGraph
from gcond.results import rank_agreement
from gcond.results.failure import Failure
from gcond.results.json_file import marked, read_json, write_json
from gcond.results.quantities import Accuracy, Count, CpuSeconds, SettingValue
from gcond.results.source_summary import SourceSummary

SEARCH = "nas.json"

Side = Literal["condensed", "whole"]
SIDES: tuple[Side, ...] = ("condensed", "whole")


@dataclass(frozen=True)
class Architecture:
    """One architecture, and what the two sides say about it."""

    settings: dict[str, SettingValue]
    condensed: Accuracy
    """Validation accuracy after training on the condensed graph, a fraction."""
    whole: Accuracy
    """The same after training on the whole graph."""
    condensed_cpu_seconds: CpuSeconds
    whole_cpu_seconds: CpuSeconds


@dataclass(frozen=True)
class Winner:
    """The architecture that a side likes best, trained on the whole graph and tested."""

    settings: dict[str, SettingValue]
    runs: Annotated[tuple[Accuracy, ...], Field(min_length=1)]
    """Test accuracy of each run, by seed."""

    @property
    def mean(self) -> float:
        return fmean(self.runs)

    @property
    def std(self) -> float:
        """Sample standard deviation; 0 for a single run."""
        return stdev(self.runs) if len(self.runs) > 1 else 0.0

    @property
    def spread(self) -> float | None:
        """:attr:`std`, or ``None`` where a single run leaves no deviation to speak of."""
        return self.std if len(self.runs) > 1 else None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "mean": self.mean, "std": self.std, "n": len(self.runs)}


@dataclass(frozen=True)
class CondensedSummary:
    """The condensed graph that was searched on; ``None`` where its file does not know how it was made."""

    nodes: Count
    edges: Count
    bytes: Count
    sha256: str = ""
    method: str | None = None
    seed: int | None = None

    @classmethod
    def of(cls, small: CondensedGraph) -> CondensedSummary:
        """Count ``small``."""
        found, made = small.statistics, small.provenance
        return cls(
            nodes=found.nodes,
            edges=found.edges,
            bytes=found.bytes,
            sha256=small.sha256,
            method=made.method if made is not None else None,
            seed=made.seed if made is not None else None,
        )


@dataclass(frozen=True)
class Search:
    """The outcome of :func:`gcond.search`; ``nas.json`` of a run folder."""

    source: SourceSummary
    condensed: CondensedSummary
    model: str
    grid: dict[str, list[SettingValue]]
    recipe: dict[str, SettingValue]
    """Of the whole graph's side, and of the winners."""
    condensed_epochs: Count
    seed: int
    architectures: tuple[Architecture, ...]
    """Those that both sides could train, in the order of the grid."""
    winners: dict[Side, Winner] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    """Trainings that failed, and why."""
    command: str = ""
    """The command line that made it."""

    @property
    def pearson(self) -> float | None:
        """Correlation of the validation accuracies; ``None`` where one side does not vary."""
        return rank_agreement.pearson(*self._sides())

    @property
    def spearman(self) -> float | None:
        """Correlation of their ranks."""
        return rank_agreement.spearman(*self._sides())

    @property
    def cpu_seconds(self) -> dict[Side, float]:
        """Training time of all architectures on each side."""
        return {
            "condensed": math.fsum(one.condensed_cpu_seconds for one in self.architectures),
            "whole": math.fsum(one.whole_cpu_seconds for one in self.architectures),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            **marked("nas", self),
            "winners": {side: winner.to_json() for side, winner in self.winners.items()},
            "pearson": self.pearson,
            "spearman": self.spearman,
            "cpu_seconds": self.cpu_seconds,
        }

    def save(self, folder: Path) -> Path:
        return write_json(folder / SEARCH, self.to_json())

    @classmethod
    def load(cls, folder: Path) -> Search:
        return read_json(folder / SEARCH, cls, "nas")

    def _sides(self) -> tuple[list[float], list[float]]:
        return [one.condensed for one in self.architectures], [one.whole for one in self.architectures]
