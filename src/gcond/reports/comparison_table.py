"""A comparison as a table."""

from __future__ import annotations

from collections.abc import Sequence

from gcond.reports.tables import (
    MISSING,
    Table,
    accuracy,
    class_metric_cells,
    count,
    known,
    megabytes,
    percent,
    seconds,
    size,
)
from gcond.results import Comparison, Failure, Line
from gcond.results.comparison import ENOUGH_SEEDS

MARKS = {"best": "●", "tied": "○", "": ""}
_LEGEND = "● best of its budget"
_TESTED = ", ○ not distinguishable from it (paired t-test over the seeds of the graphs, p ≥ 0.05)"
_TOO_FEW = ", from {}: {} or more would tell which of the others chance explains"
_TIMES = "; CPU seconds are of making one graph and of one training"


def comparison_table(comparison: Comparison) -> Table:
    """A row for each line, with the model in front where there are several."""
    several = len(comparison.models) > 1
    rows = [({"model": line.model} if several else {}) | _cells(line) for line in comparison.lines]
    if all(line.metrics is None for line in comparison.lines):
        rows = [{key: cell for key, cell in row.items() if key not in class_metric_cells(None, 1)} for row in rows]
    title = f"{comparison.source.name}: {count(comparison.seeds, 'graph')} × {count(comparison.runs, 'run')} each"
    if several:
        return Table.of(rows, title, words=(0, 1), tight=True)
    return Table.of(rows, ", ".join([title, *comparison.models]), tight=True)


def legend(comparison: Comparison) -> str:
    """The meaning of the marks and times."""
    by = "" if comparison.metric == "accuracy" else f" by {comparison.metric}"
    tested = comparison.seeds >= ENOUGH_SEEDS or any(line.mark == "tied" for line in comparison.lines)
    few = _TOO_FEW.format(f"{count(comparison.seeds, 'graph')} each", ENOUGH_SEEDS)
    return _LEGEND + by + (_TESTED if tested else few) + _TIMES


def failure_lines(failures: Sequence[Failure]) -> list[str]:
    """One for each failed job."""
    return [f"failed: {failure.what}: {failure.error}" for failure in failures]


def _cells(line: Line) -> dict[str, str]:
    pays = "never" if line.break_even is None else f"training {line.break_even:,}"
    return {
        "method": "whole graph" if line.is_whole else line.method,
        "nodes": f"{line.nodes:,}",
        "": MARKS[line.mark],
        "accuracy %": accuracy(line.mean, line.spread),
        **class_metric_cells(line.metrics, 1),  # their deviations are in the file
        "n": str(line.n),
        "kept %": known(line.kept, percent),
        "edges": f"{line.edges:,.0f}",
        "storage": size(line.bytes),
        "make CPU": MISSING if line.is_whole else known(line.condense_cpu_seconds, seconds),
        "train CPU": known(line.train_cpu_seconds, seconds),
        "memory": known(line.peak_rss_mb, megabytes),
        "pays from": MISSING if line.is_whole or line.train_cpu_seconds is None else pays,
    }
