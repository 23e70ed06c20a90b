"""What an architecture search found: both sides' accuracies, how far they agree, and what the winners reach."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

from gcond import __version__
from gcond.jobs.runner import Failure
from gcond.results.run_folder import SEARCH
from gcond.runtime.files import write_text

Side = Literal["condensed", "whole"]
SIDES: tuple[Side, ...] = ("condensed", "whole")


@dataclass(frozen=True)
class Architecture:
    """What the two sides say about one architecture."""

    settings: dict[str, Any]
    condensed: float
    """Validation accuracy after training on the condensed graph, a fraction."""
    whole: float
    """The same after training on the whole graph."""
    condensed_seconds: float
    whole_seconds: float


@dataclass(frozen=True)
class Winner:
    """The architecture that a side likes best, trained on the whole graph and tested."""

    settings: dict[str, Any]
    runs: tuple[float, ...]
    """Test accuracy of each run, by seed."""

    @property
    def mean(self) -> float:
        return fmean(self.runs)

    @property
    def std(self) -> float:
        """Sample standard deviation; 0 for a single run."""
        return stdev(self.runs) if len(self.runs) > 1 else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "settings": self.settings,
            "mean": self.mean,
            "std": self.std,
            "n": len(self.runs),
            "runs": list(self.runs),
        }


@dataclass(frozen=True)
class SearchResult:
    """The outcome of :func:`gcond.search`."""

    source: dict[str, Any]
    condensed: dict[str, Any]
    model: str
    grid: dict[str, list[Any]]
    recipe: dict[str, Any]
    """Of the whole graph's side, and of the winners."""
    condensed_epochs: int
    seed: int
    architectures: tuple[Architecture, ...]
    """Those that both sides could train, in the order of the grid."""
    winners: dict[Side, Winner]
    failures: tuple[Failure, ...] = ()
    """What could not be trained, and why."""
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
    def seconds(self) -> dict[Side, float]:
        """Training time of all architectures on each side."""
        return {
            "condensed": math.fsum(one.condensed_seconds for one in self.architectures),
            "whole": math.fsum(one.whole_seconds for one in self.architectures),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "nas",
            "gcond": __version__,
            "source": self.source,
            "condensed": self.condensed,
            "model": self.model,
            "grid": self.grid,
            "recipe": self.recipe,
            "condensed_epochs": self.condensed_epochs,
            "seed": self.seed,
            "architectures": [asdict(one) for one in self.architectures],
            "pearson": self.pearson,
            "spearman": self.spearman,
            "winners": {side: winner.to_json() for side, winner in self.winners.items()},
            "seconds": self.seconds,
            "failures": [asdict(failure) for failure in self.failures],
            "command": self.command,
        }

    def save(self, folder: Path) -> Path:
        write_text(folder / SEARCH, json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")
        return folder / SEARCH

    def _correlate(self, function: Callable[..., Any]) -> float | None:
        if len(self.architectures) < 2:
            return None
        columns = [[getattr(one, side) for one in self.architectures] for side in SIDES]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy warns of a side that does not vary, and says NaN
            value = float(function(*columns).statistic)
        return value if math.isfinite(value) else None
