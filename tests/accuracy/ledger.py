"""Measured figures: kept in docs/results, shown beside the paper's in docs/results.md.

python tests/accuracy/ledger.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeAlias

from accuracy.following import Following
from gcond.reports.audit_table import audit_lines, audit_tables
from gcond.reports.comparison_table import comparison_table, legend
from gcond.reports.reproduction_table import reproduction_table
from gcond.reports.tables import Table
from gcond.reports.tuning_table import sides_table, tuning_tables
from gcond.results import Audit, Comparison, Reproduction, Tuning
from gcond.results.json_file import read_json
from gcond.runtime.files import write_text

DOCS = Path(__file__).parents[2] / "docs"

INTRODUCTION = """# Measured results

Test accuracy in %, mean ± sample standard deviation over n trainings, by the recipe of
[the architecture page](architecture.md#evaluation): 2 layers, 256 hidden, at most 600 epochs, Adam, weight decay 5e-4,
no dropout, tested with the weights of the best validation epoch (GAT: 16 heads of 16, 3000 epochs, rate 0.001).
Comparisons look at validation nodes when weights have moved and stop by patience; tables of the paper look after every
epoch and do all of them, and there gcond and gcond-x match labelled nodes alone, as the paper does.
*Paper* is the figure of "Graph Condensation for Graph Neural Networks" (ICLR 2022); *difference* is ours minus it.
Under each table stands the command that makes it. A reproduction is of 5 graphs × 10 runs unless told otherwise; where
n is lower, fewer were done (`--seeds`, `--runs`), and `--so-far` shows as much as there is. `make accuracy` measures
everything again and writes this page; finished runs are kept in `runs/`, so it can be stopped and goes on where it was.
"""

# The order of the page: each file of docs/results by its name, or by how its name begins.
ORDER = (
    "best-",
    "models-",
    "untuned-",
    "tune-",
    "audit-",
    "update-",
    "main",
    "pubmed",
    "architectures",
    "versatility",
    "parametrization",
    "optimization",
    "nas",
    "statistics",
    "sparsification",
    "depth",
    "cross-depth",
    "propagation",
    "time",
    "store",
    "large-",
    "original",
)

HEADINGS = {
    "best-": "The most accurate, by the fixed recipe",
    "models-": "All test models",
    "untuned-": "Other graphs, by default settings",
    "tune-": "Searching hyper-parameters on the condensed and on the whole graph",
    "audit-": "Noise, distances and membership",
    "store": "From a packed store, a few columns at a time",
    "large-": "Large graphs: seconds and memory",
    "update-": "Following a graph that grows",
}


def keep(name: str, found: Mapping[str, Any]) -> None:
    """Keep a result under ``name``, and write the page anew."""
    (DOCS / "results").mkdir(exist_ok=True)
    write_text(DOCS / "results" / f"{name}.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    write_text(DOCS / "results.md", render())


def render() -> str:
    parts = [INTRODUCTION]
    for name in ORDER:
        files = [path for path in sorted((DOCS / "results").glob("*.json")) if _belongs(path.stem, name)]
        if not files:
            continue
        found = [_load(path) for path in files]
        heading = HEADINGS.get(name)
        titles = [one.title for one in found if isinstance(one, Reproduction)]
        parts.append(f"## {heading or titles[0]}\n")
        parts += _sides([one for one in found if isinstance(one, Tuning)])
        parts += [_show(one) for one in found]
        parts.append(_note(name.rstrip("-")))
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _belongs(stem: str, name: str) -> bool:
    return stem.startswith(name) if name.endswith("-") else stem == name


@dataclass(frozen=True)
class Measured:
    """A table of a benchmark or a test: each row's cells by the names of their columns."""

    title: str
    command: str
    rows: Sequence[Mapping[str, str]]


Found: TypeAlias = Comparison | Reproduction | Tuning | Audit | Following | Measured


def _load(path: Path) -> Found:
    found = json.loads(path.read_text())
    if found.get("kind") == "table":
        return Measured(found["title"], found["command"], found["rows"])
    if found.get("kind") == "store":
        return _store_table(found["lines"])
    if found.get("kind") == "audit":
        return read_json(path, Audit)
    if found.get("kind") == "update":
        return Following.from_json(found)
    if found.get("kind") == "tune":
        return read_json(path, Tuning)
    return read_json(path, Comparison) if "lines" in found else read_json(path, Reproduction)


def _sides(searches: Sequence[Tuning]) -> list[str]:
    """Searches of one source side by side."""
    names = dict.fromkeys(one.source.name for one in searches)
    return [sides_table([one for one in searches if one.source.name == name]).markdown() + "\n" for name in names]


def _show(found: Found) -> str:
    if isinstance(found, Following):
        return found.markdown()
    command = _portable(found.command)
    if isinstance(found, Measured):
        return f"{found.title}\n\n{Table.of(found.rows).markdown()}\n\n`{command}`\n"
    if isinstance(found, Audit):
        tables = "\n\n".join(table.markdown() for table in audit_tables(found))
        said = "\n".join(f"- {line}" for line in audit_lines(found))
        return f"### {found.source.name}, {_sizes(found)} nodes\n\n{tables}\n\n{said}\n\n`{command}`\n"
    if isinstance(found, Tuning):
        finalists, said = tuning_tables(found)
        listed = "\n".join(f"- {name}: {value}" for name, value in said.rows)
        return f"{finalists.markdown()}\n\n{listed}\n\n`{command}`\n"
    if isinstance(found, Comparison):
        return f"{comparison_table(found).markdown()}\n\n{legend(found)}.\n\n`{command}`\n"
    return f"{reproduction_table(replace(found, title='')).markdown()}\n\n`{command}`\n"


def _store_table(lines: Sequence[Mapping[str, Any]]) -> Measured:
    """Graphs in memory beside the same streamed from their stores; ``tests/accuracy/test_store.py`` explains a line."""
    rows = [
        {
            "graph": line["source"],
            "nodes": str(line["nodes"]),
            "in memory": _percent(line["memory"]),
            "from the store": _percent(line["store"]),
            "columns at a time": f"{line['columns']} of {line['features']}",
            "n": f"{len(line['store'])} ({line['seeds']} graphs)",
        }
        for line in lines
    ]
    return Measured("Test accuracy of a GCN in %", "pytest -m accuracy tests/accuracy/test_store.py", rows)


def _percent(values: Sequence[float]) -> str:
    return f"{100 * fmean(values):.1f} ± {100 * stdev(values):.1f}"


def _sizes(found: Audit) -> str:
    return " and ".join(dict.fromkeys(f"{one.nodes:,}" for one in found.subjects if one.kind == "condensed"))


def _portable(command: str) -> str:
    """The command without what only says how it should speak."""
    return command.removesuffix(" --json --quiet").removesuffix(" --so-far")


def _note(name: str) -> str:
    """What a person should know about a table, written by hand."""
    path = DOCS / "notes" / f"{name}.md"
    return path.read_text().strip() + "\n" if path.exists() else ""


if __name__ == "__main__":
    write_text(DOCS / "results.md", render())
