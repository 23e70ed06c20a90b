"""The tables of a page, as text that templates lay out: the comparison, the source, the graphs and their settings."""

from __future__ import annotations

from dataclasses import dataclass

from gcond.reports.class_table import class_table
from gcond.reports.page.page_run import PageRun
from gcond.reports.tables import (
    MISSING,
    Table,
    accuracy,
    assignments,
    class_metric_cells,
    known,
    megabytes,
    percent,
    seconds,
    size,
)
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


def model_tables(run: PageRun) -> list[ModelTable]:
    """A table for each model; a column in which nothing is known is left out."""
    tables = []
    for model in dict.fromkeys(line.model for line in run.comparison.lines):
        lines = [line for line in run.comparison.lines if line.model == model]
        cells = [_cells(line, run.source.bytes) for line in lines]
        columns = tuple(name for name in cells[0] if any(row[name] != MISSING for row in cells))
        rows = tuple(
            ModelRow(
                "whole graph" if line.is_whole else line.method,
                "" if line.is_whole else line.kind,
                tuple(row[name] for name in columns),
                line.mark,
                line.is_whole,
                place > 0 and line.nodes != lines[place - 1].nodes,
            )
            for place, (line, row) in enumerate(zip(lines, cells, strict=True))
        )
        tables.append(ModelTable(model, columns, rows))
    return tables


def _cells(line: Line, source_bytes: int | None) -> dict[str, str]:
    """The cells of one row, most wanted first: a phone shows the first few columns."""
    return {
        "nodes": f"{line.nodes:,}",
        "test accuracy %": accuracy(line.mean, line.spread),
        "kept %": known(line.kept, percent),
        **class_metric_cells(line.metrics, line.n),
        "trainings": f"{line.n:,}",
        "size": size(line.bytes),
        "of source": _share(line.bytes / source_bytes) if source_bytes else MISSING,
        "edges": f"{line.edges:,.0f}",
        "CPU to condense": MISSING if line.is_whole else known(line.condense_cpu_seconds, seconds),
        "CPU to train once": known(line.train_cpu_seconds, seconds),
        "peak memory": known(line.peak_rss_mb, megabytes),
        "paid back after": known(line.break_even, "{:,}".format),
        "p against best": known(line.p_value, lambda p: f"{p:.3f}" if p >= 0.001 else "< 0.001"),
        "trained with": assignments(line.changes) or MISSING,
    }


def class_tables(run: PageRun) -> list[Table]:
    """For each model, its accuracy in every class, by method at the best budget of each and on the whole graph."""
    tables = []
    for model in dict.fromkeys(line.model for line in run.comparison.lines):
        columns: dict[str, Line] = {}
        for line in run.comparison.lines:
            name = "whole graph" if line.is_whole else line.method
            if line.model == model and (name not in columns or line.mean > columns[name].mean):
                columns[name] = line
        headed = {
            name if line.is_whole else f"{name}, {line.nodes:,} nodes": line.metrics for name, line in columns.items()
        }
        tables.append(class_table(headed, run.class_names, f"Accuracy in each class with {model.upper()}, %"))
    return [table for table in tables if table is not None]


def _share(fraction: float) -> str:
    return f"{100 * fraction:.1f} %" if fraction >= 0.0995 else f"{100 * fraction:.2g} %"


def source_facts(source: SourceSummary) -> dict[str, str]:
    """The facts known of the source, by name."""
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
                "wall time": known(cost.get("wall_seconds"), seconds),
                "CPU time": known(cost.get("cpu_seconds"), seconds),
                "peak memory": known(cost.get("peak_rss_mb"), megabytes),
                "gcond": made.gcond_version if made else MISSING,
                "sha256 of the tensors": each.graph.sha256[:16] + "…",
            }
        )
    return rows


def method_settings(run: PageRun) -> list[tuple[str, str]]:
    """Each method with the settings that it ran with; the same ones once."""
    made = [each.graph.provenance for each in run.graphs]
    return list(dict.fromkeys((p.method, assignments(p.settings) or "no settings") for p in made if p is not None))
