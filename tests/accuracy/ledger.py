"""Measured figures: kept in docs/results.json, shown beside the paper's in docs/results.md."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

from gcond.reports import paper
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
    if whole := ledger.get("whole"):
        parts += [_WHOLE_TEXT, *_whole(whole), _note("whole")]
    if selection := ledger.get("selection"):
        parts += [_SELECTION_TEXT, *_selection(selection), _note("selection")]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


_WHOLE_TEXT = """
## Whole graphs

`gcond evaluate --whole DATASET --models MODEL --runs 10 --json`

| data set | model | ours | n | paper | difference |
|---|---|---|---|---|---|"""

_SELECTION_TEXT = """
## Selected nodes

A GCN trained on what each method selects, 5 selections (SEED 0 to 4) × 10 runs (from START = 10 · SEED):

`gcond condense DATASET --method METHOD --nodes NODES --seed SEED -o FILE`, then
`gcond evaluate FILE --on DATASET --models gcn --runs 10 --seed START --json`

| data set | nodes | method | ours | n | paper | difference |
|---|---|---|---|---|---|---|"""


def _whole(rows: dict[str, Any]) -> list[str]:
    lines = []
    for row in sorted(rows.values(), key=lambda r: (r["dataset"], r["model"])):
        theirs = paper.whole_graph(row["dataset"], row["model"])
        lines.append(f"| {row['dataset']} | {row['model']} | {_figure(row)} | {row['n']} | {_compare(row, theirs)} |")
    return lines


def _selection(rows: dict[str, Any]) -> list[str]:
    lines = []
    for row in sorted(rows.values(), key=lambda r: (r["dataset"], r["nodes"], r["method"])):
        theirs = paper.main_table(row["dataset"], row["position"], row["method"])
        what = f"{row['dataset']} | {row['nodes']} | {row['method']}"
        lines.append(f"| {what} | {_figure(row)} | {row['n']} | {_compare(row, theirs)} |")
    return lines


def _figure(row: dict[str, Any]) -> str:
    return f"{100 * row['mean']:.1f} ± {100 * row['std']:.1f}"


def _compare(row: dict[str, Any], theirs: paper.Figure | None) -> str:
    if theirs is None:
        return "– | –"
    shown = f"{theirs.mean:.1f}" + (f" ± {theirs.std:.1f}" if theirs.std is not None else "")
    return f"{shown} | {100 * row['mean'] - theirs.mean:+.1f}"


def _note(section: str) -> str:
    """What a person should know about a table, written by hand beside the figures."""
    path = ROOT / "docs" / "notes" / f"{section}.md"
    return "\n" + path.read_text().strip() + "\n" if path.exists() else ""
