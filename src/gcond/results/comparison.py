"""A comparison of methods: what they keep, what they cost, and when they pay."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import FiniteFloat

from gcond.condensed import ClassMetrics
from gcond.config.metric import METRICS, Metric
from gcond.results.failure import Failure
from gcond.results.json_file import marked, read_json, write_json
from gcond.results.quantities import Accuracy, Amount, Count, CpuSeconds, SettingValue
from gcond.results.source_summary import SourceSummary
from gcond.runtime import notebook

COMPARISON = "comparison.json"
WHOLE = "whole"

Mark = Literal["best", "tied", ""]
ENOUGH_SEEDS = 5
"""Graphs of each method from which on a difference that was not found says something.

A paired t-test at 5 % finds a difference with a chance of four in five if it is 1.7 times the deviation of the paired
differences (5 seeds), 3.3 times (3 seeds) or 11.5 times (2 seeds): with two, methods 20 points apart pass for the same.
"""


@dataclass(frozen=True)
class Line:
    """One model on what one method made at one budget, over all graphs and runs; or on the whole graph.

    A line of a single condensed file does not know what the whole graph reaches: what follows from that is ``None``.
    """

    method: str
    kind: str
    """``learned``, ``selected``, ``merged`` or ``whole``; empty for a method that is not known here."""
    model: str
    nodes: Count
    ratio: FiniteFloat
    """``nodes`` as a share of what the budget is a share of."""
    edges: Amount
    bytes: Amount
    mean: Accuracy
    """Test accuracy, a fraction."""
    std: Amount
    """Sample standard deviation over all ``n`` trainings; 0 for a single one."""
    n: Count
    kept: Amount | None = None
    """``mean`` as a share of the whole graph's."""
    condense_cpu_seconds: CpuSeconds | None = None
    """Of making one graph."""
    train_cpu_seconds: CpuSeconds | None = None
    """Of one training, validation included, measured side by side for all lines; ``None`` where it was not."""
    peak_rss_mb: Amount | None = None
    """The most memory that making a graph took; not measured for the whole graph."""
    break_even: Count | None = None
    """The first number of trainings at which condensing once and training small takes less time than training on the
    whole graph as often; ``None`` if it never does, or training was not timed."""
    mark: Mark = ""
    """The best of its budget by the metric of the comparison, or not distinguishable from it: from
    :data:`ENOUGH_SEEDS` on, or where all accuracies are the same."""
    p_value: FiniteFloat | None = None
    """Of a t-test against the best of the budget, paired over the seeds of the graphs; ``None`` with fewer than two."""
    graphs: tuple[str, ...] = ()
    """Where the condensed graphs are, relative to the run folder."""
    changes: dict[str, SettingValue] = field(default_factory=dict)
    """Settings in which the training or the model was not the usual one."""
    metrics: ClassMetrics | None = None
    """Of the test nodes, over all ``n`` trainings; ``None`` where one of them was done before there were any."""

    @property
    def is_whole(self) -> bool:
        return self.kind == WHOLE

    def value(self, metric: Metric) -> float | None:
        """The mean over all trainings by ``metric``; ``None`` where it was not counted."""
        if metric == "accuracy":
            return self.mean
        if self.metrics is None:
            return None
        return self.metrics.macro_f1 if metric == "macro-f1" else self.metrics.balanced_accuracy

    @property
    def spread(self) -> float | None:
        """:attr:`std`, or ``None`` where a single training leaves no deviation to speak of."""
        return self.std if self.n > 1 else None


@dataclass(frozen=True)
class Comparison:
    """A finished comparison; ``comparison.json`` of a run folder."""

    source: SourceSummary
    lines: tuple[Line, ...]
    models: tuple[str, ...] = ()
    seeds: Count = 0
    """Condensed graphs per method and budget."""
    runs: Count = 0
    """Trainings per graph; the whole graph has as many in all."""
    recipe: dict[str, SettingValue] = field(default_factory=dict)
    """Training settings that were asked for beyond the models' own recipes."""
    advice: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    command: str = ""
    """The command line that made it."""

    @property
    def metric(self) -> Metric:
        """By which epochs, probes and the best of a budget were chosen."""
        asked = self.recipe.get("metric", "accuracy")
        return next((metric for metric in METRICS if metric == asked), "accuracy")

    def _repr_html_(self) -> str:
        """For notebooks; the report's page has all of it."""
        columns = ("method", "model", "nodes", "test accuracy", "n", "kept", "")
        rows = [
            (
                "whole graph" if line.is_whole else line.method,
                line.model,
                f"{line.nodes:,}",
                f"{100 * line.mean:.1f}" + ("" if line.spread is None else f" ± {100 * line.spread:.1f}") + " %",
                line.n,
                notebook.percent(line.kept),
                line.mark,
            )
            for line in self.lines
        ]
        table = notebook.grid(f"Comparison on {self.source.name}", columns, rows, words=(0, 1, 6))
        said = [*self.advice, *(f"failed: {each.what}: {each.error}" for each in self.failures)]
        return table + "".join(f"<div>{notebook.text(sentence)}</div>" for sentence in said)

    def to_json(self) -> dict[str, Any]:
        return marked("comparison", self)

    def save(self, folder: Path) -> Path:
        return write_json(folder / COMPARISON, self.to_json())

    @classmethod
    def load(cls, folder: Path) -> Comparison:
        return read_json(folder / COMPARISON, cls, "comparison")
