"""A comparison as a table."""

from __future__ import annotations

from collections.abc import Sequence

from gcond.reports.tables import MISSING, Table, accuracy, count, percent, seconds, size
from gcond.results import Comparison, Failure, Line

MARKS = {"best": "●", "tied": "○", "": ""}
_LEGEND = "● best of its budget"
_TESTED = ", ○ not distinguishable from it (paired t-test over the seeds of the graphs, p ≥ 0.05)"
_TIMES = "; CPU seconds are of making one graph and of one training"
_COLUMNS = (
    "method",
    "nodes",
    "",
    "accuracy %",
    "n",
    "kept %",
    "edges",
    "storage",
    "make CPU",
    "train CPU",
    "memory",
    "pays from",
)


def comparison_table(comparison: Comparison) -> Table:
    """A row for each line, with the model in front where there are several."""
    several = len(comparison.models) > 1
    rows = tuple(((line.model,) if several else ()) + _cells(line) for line in comparison.lines)
    title = f"{comparison.source.name}: {count(comparison.seeds, 'graph')} × {count(comparison.runs, 'run')} each"
    if several:
        return Table(("model", *_COLUMNS), rows, title, words=(0, 1), tight=True)
    return Table(_COLUMNS, rows, ", ".join([title, *comparison.models]), tight=True)


def legend(comparison: Comparison) -> str:
    """What the marks and times mean."""
    return _LEGEND + (_TESTED if comparison.seeds > 1 else ", from one graph each") + _TIMES


def failure_lines(failures: Sequence[Failure]) -> list[str]:
    """One for each failed job."""
    return [f"failed: {failure.what}: {failure.error}" for failure in failures]


def _cells(line: Line) -> tuple[str, ...]:
    condensed, trained, memory = line.condense_cpu_seconds, line.train_cpu_seconds, line.peak_rss_mb
    return (
        "whole graph" if line.is_whole else line.method,
        f"{line.nodes:,}",
        MARKS[line.mark],
        accuracy(line.mean, line.spread),
        str(line.n),
        MISSING if line.kept is None else percent(line.kept),
        f"{line.edges:,.0f}",
        size(line.bytes),
        MISSING if line.is_whole or condensed is None else seconds(condensed),
        MISSING if trained is None else seconds(trained),
        MISSING if memory is None else size(memory * 10**6),
        MISSING if line.is_whole or trained is None else _pays(line.break_even),
    )


def _pays(break_even: int | None) -> str:
    return "never" if break_even is None else f"training {break_even:,}"
