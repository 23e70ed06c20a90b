"""A comparison as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gcond.reports.tables import MISSING, Table, accuracy, percent, seconds, size

MARKS = {"best": "●", "tied": "○", "": ""}
_LEGEND = "● best of its budget"
_TESTED = ", ○ not distinguishable from it (paired t-test over the seeds of the graphs, p ≥ 0.05)"
_TIMES = "; times are CPU seconds of one graph and of one training"


def comparison_table(comparison: Mapping[str, Any]) -> Table:
    """What :meth:`gcond.results.comparison.Comparison.to_json` says, a row a line."""
    source, lines = comparison["source"], comparison["lines"]
    several = len(comparison["models"]) > 1
    rows = tuple(((line["model"],) if several else ()) + _cells(line) for line in lines)
    headings = (
        "method",
        "nodes",
        "",
        "accuracy %",
        "n",
        "kept %",
        "edges",
        "storage",
        "condensing",
        "training",
        "memory",
        "pays from",
    )
    columns = (("model",) if several else ()) + headings
    title = f"{source['name']}: {_count(comparison['seeds'], 'graph')} × {_count(comparison['runs'], 'run')} each"
    if not several:
        title += f", {comparison['models'][0]}"
    words = (0, 1) if several else (0,)
    return Table(columns, rows, title, words=words, tight=True)


def legend(comparison: Mapping[str, Any]) -> str:
    """What the marks and times mean."""
    return _LEGEND + (_TESTED if comparison["seeds"] > 1 else ", from one graph each") + _TIMES


def failure_lines(failures: Sequence[Mapping[str, str]]) -> list[str]:
    """One a failed job."""
    return [f"failed: {failure['what']}: {failure['error']}" for failure in failures]


def _cells(line: Mapping[str, Any]) -> tuple[str, ...]:
    whole = line["kind"] == "whole"
    trained = line["train_seconds"]
    return (
        "whole graph" if whole else line["method"],
        f"{line['nodes']:,}",
        MARKS[line["mark"]],
        accuracy(line["mean"], line["std"] if line["n"] > 1 else None),
        str(line["n"]),
        percent(line["kept"]),
        f"{line['edges']:,.0f}",
        size(line["bytes"]),
        MISSING if whole else seconds(line["condense_seconds"]),
        MISSING if trained is None else seconds(trained),
        MISSING if line["peak_rss_mb"] is None else size(line["peak_rss_mb"] * 10**6),
        MISSING if whole or trained is None else _pays(line["break_even"]),
    )


def _pays(break_even: int | None) -> str:
    return "never" if break_even is None else f"training {break_even:,}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number != 1 else ''}"
