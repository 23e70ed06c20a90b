"""A table of the paper, measured: ours, the paper's figure, and the difference."""

from __future__ import annotations

from gcond.reports.tables import MISSING, Table
from gcond.results import Figure, ReproducedRow, Reproduction


def reproduction_table(found: Reproduction) -> Table:
    """A row for each figure of the paper's table."""
    rows = tuple((row.dataset, *row.labels, *_compare(row, found.digits)) for row in found.rows)
    columns = ("data set", *found.columns, "ours", "n", "paper", "difference")
    return Table(columns, rows, found.title, words=range(1 + len(found.columns)))


def _compare(row: ReproducedRow, digits: int) -> tuple[str, str, str, str]:
    ours, paper = row.ours, row.paper
    digits = digits if row.digits is None else row.digits
    difference = MISSING if ours is None or paper is None else f"{ours.mean - paper.mean:+,.{digits}f}"
    return _show(ours, digits), str(row.n), _show(paper, digits), difference


def _show(figure: Figure | None, digits: int) -> str:
    if figure is None:
        return MISSING
    mean = f"{figure.mean:,.{digits}f}"
    return mean if figure.std is None else f"{mean} ± {figure.std:.{digits}f}"
