"""The tables of a page, as text that templates lay out: the comparison, the source, the graphs and their settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gcond.reports.page.page_run import PageRun
from gcond.reports.tables import MISSING, accuracy, assignments, percent, seconds, size
from gcond.results import Line, SourceSummary


@dataclass(frozen=True)
class ModelRow:
    """A line of the comparison as text; ``mark`` is ``best``, ``tied`` or nothing."""

    method: str
    kind: str
    cells: tuple[str, ...]
    mark: str
    whole: bool
    new_budget: bool
    """Whether the rows from here on are of another size."""


@dataclass(frozen=True)
class ModelTable:
    """All lines of one model."""

    model: str
    columns: tuple[str, ...]
    rows: tuple[ModelRow, ...]


_COLUMNS = (
    # What people look for first comes first: a phone shows the first few columns.
    "nodes",
    "test accuracy %",
    "kept %",
    "trainings",
    "size",
    "of source",
    "edges",
    "CPU to condense",
    "CPU to train once",
    "peak memory",
    "paid back after",
    "p against best",
    "trained with",
)


def model_tables(run: PageRun) -> list[ModelTable]:
    """A table for each model; a column in which nothing is known is left out."""
    tables = []
    for model in dict.fromkeys(line.model for line in run.comparison.lines):
        lines = [line for line in run.comparison.lines if line.model == model]
        cells = [_cells(line, run.source.bytes) for line in lines]
        known = [i for i in range(len(_COLUMNS)) if any(row[i] != MISSING for row in cells)]
        rows = tuple(
            ModelRow(
                "whole graph" if line.is_whole else line.method,
                "" if line.is_whole else line.kind,
                tuple(row[i] for i in known),
                line.mark,
                line.is_whole,
                place > 0 and line.nodes != lines[place - 1].nodes,
            )
            for place, (line, row) in enumerate(zip(lines, cells, strict=True))
        )
        tables.append(ModelTable(model, tuple(_COLUMNS[i] for i in known), rows))
    return tables


def _cells(line: Line, source_bytes: int | None) -> tuple[str, ...]:
    return (
        f"{line.nodes:,}",
        accuracy(line.mean, line.spread),
        _maybe(line.kept, percent),
        f"{line.n:,}",
        size(line.bytes),
        _share(line.bytes / source_bytes) if source_bytes else MISSING,
        f"{line.edges:,.0f}",
        MISSING if line.is_whole else _maybe(line.condense_cpu_seconds, seconds),
        _maybe(line.train_cpu_seconds, seconds),
        _maybe(line.peak_rss_mb, _megabytes),
        _maybe(line.break_even, "{:,}".format),
        _maybe(line.p_value, lambda p: f"{p:.3f}" if p >= 0.001 else "< 0.001"),
        assignments(line.changes) or MISSING,
    )


def _maybe(value: float | None, show: Callable[[float], str]) -> str:
    return MISSING if value is None else show(value)


def _megabytes(number: float) -> str:
    return size(1e6 * number)


def _share(fraction: float) -> str:
    return f"{100 * fraction:.1f} %" if fraction >= 0.0995 else f"{100 * fraction:.2g} %"


def source_facts(source: SourceSummary) -> dict[str, str]:
    """What is known of the source, by name."""
    counts = {key: getattr(source, key) for key in ("nodes", "edges", "features", "classes")}
    found = {
        "name": source.name,
        **{key: "" if number is None else f"{number:,}" for key, number in counts.items()},
        "size": size(source.bytes) if source.bytes else "",
        "setting": source.setting,
        "sha256": source.sha256,
    }
    return {key: value for key, value in found.items() if value}


def graph_rows(run: PageRun) -> list[dict[str, str]]:
    """A row for each graph: file, how it was made, its price and its fingerprint."""
    rows = []
    for each in run.graphs:
        made, found = each.graph.provenance, each.graph.statistics
        cost = made.cost if made else {}
        rows.append(
            {
                "file": each.file,
                "method": made.method if made else MISSING,
                "seed": str(made.seed) if made else MISSING,
                "nodes": f"{found.nodes:,}",
                "edges": f"{found.edges:,}",
                "size": size(found.bytes),
                "wall time": _maybe(cost.get("wall_seconds"), seconds),
                "CPU time": _maybe(cost.get("cpu_seconds"), seconds),
                "peak memory": _maybe(cost.get("peak_rss_mb"), _megabytes),
                "gcond": made.gcond_version if made else MISSING,
                "sha256 of the tensors": each.graph.sha256[:16] + "…",
            }
        )
    return rows


def method_settings(run: PageRun) -> list[tuple[str, str]]:
    """Each method with the settings that it ran with; the same ones once."""
    made = [each.graph.provenance for each in run.graphs]
    return list(dict.fromkeys((p.method, assignments(p.settings) or "no settings") for p in made if p is not None))
