"""One table, many renderings: rows are laid out once, then drawn by rich, as Markdown or as LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gcond.runtime.plain_text import counted, printable

if TYPE_CHECKING:
    from gcond.condensed import ClassMetrics, Score
    from gcond.graph.statistics import Statistics
    from gcond.reports.fitted_table import FittedTable
    from gcond.results import SourceSummary

MISSING = "–"


@dataclass(frozen=True)
class Table:
    """A heading for each column and cells of plain text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    words: Collection[int] = (0,)
    """Columns that hold words and start on the left; the others hold numbers, which line up on the right."""
    tight: bool = False
    """One space between columns, for many of them in a narrow window."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row has {len(row)} cells for {len(self.columns)} columns")

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, str]], title: str = "", **layout: Any) -> Table:
        """A table of ``rows`` that name their cells alike, by which the columns are called."""
        columns = tuple(rows[0]) if rows else ()
        return cls(columns, tuple(tuple(row[name] for name in columns) for row in rows), title, **layout)

    def rich(self) -> FittedTable:
        """For the terminal."""
        from gcond.reports.fitted_table import FittedTable

        rows = [[printable(cell) for cell in row] for row in self.rows]
        numbers = [place not in self.words for place in range(len(self.columns))]
        return FittedTable([*map(printable, self.columns)], rows, printable(self.title), numbers, self.tight)

    def markdown(self) -> str:
        """For documents: a GitHub-flavoured table."""
        rules = ["---" if place in self.words else "---:" for place in range(len(self.columns))]
        lines = [self.columns, tuple(rules), *self.rows]
        body = "\n".join("| " + " | ".join(_escape(cell) for cell in line) + " |" for line in lines)
        return f"**{_escape(self.title)}**\n\n{body}" if self.title else body

    def latex(self) -> str:
        """For papers: a ``tabular`` with the rules of the package booktabs."""
        layout = "".join("l" if place in self.words else "r" for place in range(len(self.columns)))
        body = [" & ".join(_escape_latex(cell) for cell in line) + r" \\" for line in (self.columns, *self.rows)]
        lines = [rf"\begin{{tabular}}{{{layout}}}", r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule"]
        caption = [f"% {' '.join(self.title.split())}"] if self.title else []
        return "\n".join([*caption, *lines, r"\end{tabular}"])


def score_table(scores: Sequence[Score], title: str = "", settings: Sequence[Mapping[str, Any]] = ()) -> Table:
    """Model, test accuracy, other metrics where there are some, runs and validation accuracy of each score.

    ``settings``, one mapping for each score, are what there is to say about how it came about; without any of
    them there is no such column.
    """
    rows = []
    for score, said in zip(scores, settings or [{}] * len(scores), strict=True):
        row = {"model": score.model, "test accuracy %": accuracy(score.mean, score.spread)}
        if any(each.metrics is not None for each in scores):
            row |= class_metric_cells(score.metrics, len(score.runs))
        row |= {"runs": str(len(score.runs)), "validation %": percent(score.val_mean)}
        rows.append(row | ({"settings": assignments(said)} if any(settings) else {}))
    return Table.of(rows, title, words=(0, len(rows[0]) - 1) if any(settings) else (0,))


def class_metric_cells(metrics: ClassMetrics | None, runs: int) -> dict[str, str]:
    """Macro-F1, balanced accuracy and that of the worst class, by heading; dashes where they were not counted."""
    if metrics is None:
        return dict.fromkeys(("macro-F1 %", "balanced %", "worst class %"), MISSING)
    stds = (metrics.macro_f1_std, metrics.balanced_accuracy_std) if runs > 1 else (None, None)
    return {
        "macro-F1 %": accuracy(metrics.macro_f1, stds[0]),
        "balanced %": accuracy(metrics.balanced_accuracy, stds[1]),
        "worst class %": known(metrics.worst_class_accuracy, percent),
    }


def statistics_table(columns: Mapping[str, Statistics | SourceSummary | None], title: str = "") -> Table:
    """Graphs side by side, one column for each; what is not known of one is left out there."""
    shown = {name: _known(found) for name, found in columns.items()}
    rows = tuple(
        (label, *(known(values.get(key), show) for values in shown.values()))
        for label, key, show in _STATISTICS
        if any(key in values for values in shown.values())
    )
    return Table(("", *shown), rows, title)


def facts(pairs: Mapping[str, str], title: str = "") -> Table:
    """Names on the left, what they are on the right; empty ones are left out."""
    return Table(("", ""), tuple((name, value) for name, value in pairs.items() if value), title, words=(0, 1))


def percent(fraction: float, digits: int = 1) -> str:
    return f"{100 * fraction:.{digits}f}"


def known(value: float | None, show: Callable[[float], str]) -> str:
    """``value`` as ``show`` writes it, where there is one."""
    return MISSING if value is None else show(value)


def accuracy(mean: float, std: float | None) -> str:
    """``71.2 ± 0.4``, in per cent; ``71.2`` where a single run leaves no deviation to speak of."""
    return percent(mean) if std is None else f"{percent(mean)} ± {percent(std)}"


def count(number: int, what: str) -> str:
    """``1 graph``, ``1,000 graphs``."""
    return counted(number, what)


def assignments(settings: Mapping[str, Any]) -> str:
    """``hidden=16, layers=3``."""
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def size(number: float) -> str:
    """Bytes in the largest unit of 1000 that leaves a number: ``14.9 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def megabytes(number: float) -> str:
    return size(1e6 * number)


def seconds(duration: float) -> str:
    """``0.04 s``, ``12.3 s`` or ``2 min 5 s``."""
    if duration < 120:
        return f"{duration:.2f} s" if duration < 10 else f"{duration:.1f} s"
    return f"{int(duration // 60)} min {int(duration % 60)} s"


def rough_time(duration: float) -> str:
    """``8 seconds``, ``12 minutes`` or ``3.5 hours``: rounded up, for what is only estimated."""
    if duration < 90:
        return count(max(1, math.ceil(duration)), "second")
    if duration < 5400:
        return count(math.ceil(duration / 60), "minute")
    return f"{math.ceil(duration / 360) / 10:,.1f} hours"


def _whole(number: float) -> str:
    return f"{number:,.0f}"


def _density(fraction: float) -> str:
    return f"{100 * fraction:.2f} %" if fraction >= 0.00005 or fraction == 0 else f"{100 * fraction:.1g} %"


def _classes(counts: Sequence[int]) -> str:
    return f"{min(counts):,} to {max(counts):,}" if min(counts) < max(counts) else f"{max(counts):,}"


_STATISTICS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("nodes", "nodes", _whole),
    ("edges", "edges", _whole),
    ("edges as listed", "listed_edges", _whole),
    ("features", "features", _whole),
    ("classes", "classes", _whole),
    ("density", "density", _density),
    ("homophily", "homophily", "{:.2f}".format),
    ("labelled nodes per class", "class_nodes", _classes),
    ("storage", "bytes", size),
)


def _known(found: Statistics | SourceSummary | None) -> dict[str, Any]:
    """The values that there are to show; of a source that a file only remembers, those that it does."""
    values = asdict(found) if found is not None else {}
    if "listed_edges" not in values:
        return {key: value for key, value in values.items() if value not in (None, ())}
    if values["listed_edges"] == values["edges"]:
        del values["listed_edges"]  # nothing that the line above does not say
    return values


def _escape_latex(cell: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in cell).replace("\n", " ")


_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "−": "$-$",
    "δ": r"$\delta$",
    "Φ": r"$\Phi$",
    "α": r"$\alpha$",
    "×": r"$\times$",
    "●": r"$\bullet$",
    "○": r"$\circ$",
    "≥": r"$\geq$",
}


def _escape(cell: str) -> str:
    """Text of a data set's stays text: neither a cell's end, nor markup of Markdown or HTML."""
    plain = re.sub(r"([\\|*_`])", r"\\\1", cell.replace("\n", " "))
    return plain.replace("&", "&amp;").replace("<", "&lt;")
