"""A table of the paper, measured: our figures beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from pydantic import FiniteFloat

from gcond.results.failure import Failure
from gcond.results.json_file import marked, read_json, write_json
from gcond.results.quantities import Amount, Count


@dataclass(frozen=True)
class Figure:
    """A number as the paper prints it, accuracies in %, and its deviation where there is one."""

    mean: FiniteFloat
    std: Amount | None = None

    @classmethod
    def over(cls, values: Sequence[float]) -> Figure | None:
        """Mean and sample standard deviation of what was measured; ``None`` of nothing."""
        if not values:
            return None
        return cls(fmean(values), stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class ReproducedRow:
    """One figure of ours beside the paper's."""

    labels: tuple[str, ...]
    ours: Figure | None
    """``None`` where it failed."""
    n: Count
    """The number of values that the mean is over; 1 is a single measurement."""
    paper: Figure | None
    """``None`` where the paper prints nothing."""
    digits: Count | None = None
    """After the point; ``None`` as the rest of the table."""
    dataset: str = ""


@dataclass(frozen=True)
class Reproduction:
    """One table of the paper, measured on some data sets; ``TABLE.json`` of a reproduction's folder."""

    table: str
    title: str
    columns: tuple[str, ...]
    """The headings of the labels of the rows."""
    digits: Count
    settings: str
    """Whose settings the methods had: ``gcond``'s own defaults, or the ``paper``'s."""
    seeds: Count
    runs: Count
    rows: tuple[ReproducedRow, ...]
    failures: tuple[Failure, ...] = ()
    command: str = ""

    def of(self, dataset: str) -> list[ReproducedRow]:
        """The rows of one data set."""
        return [row for row in self.rows if row.dataset == dataset]

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.dataset for row in self.rows))

    def to_json(self) -> dict[str, Any]:
        return marked("reproduction", self)

    def save(self, folder: Path) -> Path:
        return write_json(folder / f"{self.table}.json", self.to_json())

    @classmethod
    def load(cls, path: Path) -> Reproduction:
        return read_json(path, cls, "reproduction")
