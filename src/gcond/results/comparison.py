"""What a comparison of methods found: what they keep, what they cost, and when they pay."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gcond import __version__
from gcond.jobs.runner import Failure
from gcond.results.run_folder import COMPARISON
from gcond.results.source_summary import Summary
from gcond.runtime.files import write_text

WHOLE = "whole"

Mark = Literal["best", "tied", ""]


@dataclass(frozen=True)
class Line:
    """One model on what one method made at one budget, over all graphs and runs; or on the whole graph."""

    method: str
    kind: Literal["whole", "learned", "selected", "merged"]
    model: str
    nodes: int
    ratio: float
    """``nodes`` as a share of what the budget is a share of."""
    edges: float
    bytes: float
    mean: float
    """Test accuracy, a fraction."""
    std: float
    """Sample standard deviation over all ``n`` trainings; 0 for a single one."""
    n: int
    kept: float
    """``mean`` as a share of the whole graph's."""
    condense_seconds: float
    """CPU time of making one graph: what else a machine does meanwhile does not count."""
    train_seconds: float | None
    """CPU time of one training, validation included, measured side by side for all lines; None where it was not."""
    peak_rss_mb: float | None
    """The most memory that making a graph took; not measured for the whole graph."""
    break_even: int | None
    """The first number of trainings at which condensing once and training small takes less time than training on the
    whole graph as often; None if it never does, or training was not timed."""
    mark: Mark
    """The best of its budget, or not distinguishable from it."""
    p_value: float | None
    """Of a t-test against the best of the budget, paired over the seeds of the graphs; None with fewer than two."""
    graphs: tuple[str, ...]
    """Where the condensed graphs are, relative to the run folder."""


@dataclass(frozen=True)
class Comparison:
    """A finished comparison; ``comparison.json`` of a run folder."""

    source: Summary
    models: tuple[str, ...]
    seeds: int
    """Condensed graphs a method and budget."""
    runs: int
    """Trainings a graph; the whole graph has as many in all."""
    recipe: dict[str, Any]
    """What was asked of the training beyond the models' own recipes."""
    lines: tuple[Line, ...]
    advice: tuple[str, ...]
    failures: tuple[Failure, ...]
    command: str = ""
    """The command line that made it."""

    def to_json(self) -> dict[str, Any]:
        return {"kind": "comparison", "gcond": __version__, **asdict(self)}

    def save(self, folder: Path) -> Path:
        write_text(folder / COMPARISON, json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")
        return folder / COMPARISON
