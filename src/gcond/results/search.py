"""An architecture search: both sides' accuracies, how far they agree, and what the winners reach."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, Literal

from pydantic import Field

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
        from scipy.stats import pearsonr

        return self._correlate(pearsonr)

    @property
    def spearman(self) -> float | None:
        """Correlation of their ranks."""
        from scipy.stats import spearmanr

        return self._correlate(spearmanr)

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

    def _correlate(self, function: Callable[..., Any]) -> float | None:
        if len(self.architectures) < 2:
            return None
        columns = [[getattr(one, side) for one in self.architectures] for side in SIDES]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy warns of a side that does not vary, and says NaN
            value = float(function(*columns).statistic)
        return value if math.isfinite(value) else None
