"""A table of the paper, measured: ours, the paper's figure, and the difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcond.reports.tables import MISSING, Table


def reproduction_table(report: Mapping[str, Any]) -> Table:
    """What :meth:`gcond.reproduction.reproduce.Report.to_json` says, a row a figure."""
    rows = tuple((row["dataset"], *row["labels"], *_compare(row, report["digits"])) for row in report["rows"])
    columns = ("data set", *report["columns"], "ours", "n", "paper", "difference")
    return Table(columns, rows, report["title"], words=range(1 + len(report["columns"])))


def _compare(row: Mapping[str, Any], digits: int) -> tuple[str, str, str, str]:
    ours, paper = row["ours"], row["paper"]
    digits = digits if row["digits"] is None else row["digits"]
    difference = MISSING if ours is None or paper is None else f"{ours['mean'] - paper['mean']:+,.{digits}f}"
    return _show(ours, digits), str(row["n"]), _show(paper, digits), difference


def _show(figure: Mapping[str, Any] | None, digits: int) -> str:
    if figure is None:
        return MISSING
    mean = f"{figure['mean']:,.{digits}f}"
    return mean if figure["std"] is None else f"{mean} ± {figure['std']:.{digits}f}"
