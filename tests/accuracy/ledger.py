"""Measured figures: kept in docs/results.json, shown beside the paper's in docs/results.md."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

from accuracy import paper
from gcond.reports.tables import MISSING, Table, accuracy
from gcond.storage import atomic_path

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "docs" / "results.json"
PAGE = ROOT / "docs" / "results.md"
RUNS = ROOT / "runs" / "accuracy"

INTRODUCTION = """# Measured results

Test accuracy in %, mean ± sample standard deviation over n runs, by the recipe of
[the architecture page](architecture.md#evaluation): 2 layers, 256 hidden, 600 epochs, Adam, weight decay 5e-4,
no dropout, tested with the weights of the best validation epoch (GAT: 16 heads of 16, 3000 epochs, rate 0.001).
*Paper* is the figure of "Graph Condensation for Graph Neural Networks" (ICLR 2022); *difference* is ours minus it.
`make accuracy` measures everything again and writes this page; finished runs are kept in `runs/accuracy`, so it can be
stopped and goes on where it was.
"""


def record(section: str, key: str, row: dict[str, Any]) -> None:
    """Keep ``row`` under ``section`` and ``key``, and write the page anew."""
    with open(RUNS / "ledger.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several sessions may measure side by side
        ledger = json.loads(LEDGER.read_text()) if LEDGER.exists() else {}
        ledger.setdefault(section, {})[key] = row
        with atomic_path(LEDGER) as path:
            path.write_text(json.dumps(ledger, indent=1, sort_keys=True) + "\n")
        with atomic_path(PAGE) as path:
            path.write_text(render(ledger))


def render(ledger: dict[str, Any]) -> str:
    parts = [INTRODUCTION]
    for section, (text, table) in _SECTIONS.items():
        if rows := ledger.get(section):
            parts += [text, table(list(rows.values())).markdown(), _note(section)]
    return "\n".join(parts).rstrip() + "\n"


_WHOLE_TEXT = """## Whole graphs

`gcond evaluate --whole DATASET --models MODEL --runs 10 --json`
"""

_SELECTION_TEXT = """## Selected nodes

A GCN trained on what each method selects, 5 selections (SEED 0 to 4) × 10 runs (from START = 10 · SEED):

`gcond condense DATASET --method METHOD --nodes NODES --seed SEED -o FILE`, then
`gcond evaluate FILE --on DATASET --models gcn --runs 10 --seed START --json`
"""


def _whole(rows: list[dict[str, Any]]) -> Table:
    cells = [
        (row["dataset"], row["model"], *_compare(row, paper.whole_graph(row["dataset"], row["model"])))
        for row in sorted(rows, key=lambda r: (r["dataset"], r["model"]))
    ]
    return Table(("data set", "model", *_COMPARED), tuple(cells), words=(0, 1))


def _selection(rows: list[dict[str, Any]]) -> Table:
    cells = [
        (
            row["dataset"],
            str(row["nodes"]),
            row["method"],
            *_compare(row, paper.main_table(row["dataset"], row["position"], row["method"])),
        )
        for row in sorted(rows, key=lambda r: (r["dataset"], r["nodes"], r["method"]))
    ]
    return Table(("data set", "nodes", "method", *_COMPARED), tuple(cells), words=(0, 2))


_SECTIONS = {"whole": (_WHOLE_TEXT, _whole), "selection": (_SELECTION_TEXT, _selection)}
_COMPARED = ("ours", "n", "paper", "difference")


def _compare(row: dict[str, Any], theirs: paper.Figure | None) -> tuple[str, str, str, str]:
    """Ours, the number of runs, the paper's figure, and ours minus it."""
    ours = accuracy(row["mean"], row["std"])
    if theirs is None:
        return ours, str(row["n"]), MISSING, MISSING
    shown = f"{theirs.mean:.1f}" + (f" ± {theirs.std:.1f}" if theirs.std is not None else "")
    return ours, str(row["n"]), shown, f"{100 * row['mean'] - theirs.mean:+.1f}"


def _note(section: str) -> str:
    """What a person should know about a table, written by hand."""
    path = ROOT / "docs" / "notes" / f"{section}.md"
    return "\n" + path.read_text().strip() + "\n" if path.exists() else ""


if __name__ == "__main__":
    PAGE.write_text(render(json.loads(LEDGER.read_text())))
