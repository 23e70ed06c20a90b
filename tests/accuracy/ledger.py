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


_LEARNED_TEXT = """## Learned graphs

A GCN trained on what each method learns with its default settings: 5 graphs (SEED 0 to 4) × 10 runs (from
START = 10 · SEED); gcond-x 5 × 5, start 5 × 1, dc-graph and dc 2 × 2. `start` is what gcond-x starts from, centres of
propagated features with nothing matched yet (`--method gcond-x --set epochs=0`); `dc` is dc-graph scored without
the graph (MODEL mlp, else gcn). *CPU s* is the mean cost of one condensation, probes included.

`gcond condense DATASET --method METHOD --nodes NODES --seed SEED -o FILE`, then
`gcond evaluate FILE --on DATASET --models MODEL --runs RUNS --seed START --json`
"""

_UNTUNED_TEXT = """## Graphs that nobody tuned for

The same with 1 % of all nodes (`--ratio 1%`), 3 graphs × 1 run (`--runs 1`), default settings.
"""

_VERSATILITY_TEXT = """## Backbones and test models

Cora, 70 nodes, 1 graph × 2 runs; rows of the paper's table are BACKBONE, its columns MODEL.

`gcond condense cora --nodes 70 --set backbone=BACKBONE --seed SEED -o FILE`, then
`gcond evaluate FILE --on cora --models MODEL --runs 2 --seed START --json`
"""

_ABLATION_TEXT = """## Ablations

The middle budgets, 2 graphs × 3 runs; the settings are the default, `schedule=joint` and `structure=free`.
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


def _learned(rows: list[dict[str, Any]]) -> Table:
    cells = [
        (
            row["dataset"],
            str(row["nodes"]),
            row["method"],
            *_compare(row, paper.learned(row["dataset"], row["position"], row["method"])),
            f"{row['seconds']:.0f}",
        )
        for row in sorted(rows, key=lambda r: (r["dataset"], r["nodes"], r["method"]))
    ]
    return Table(("data set", "nodes", "method", *_COMPARED, "CPU s"), tuple(cells), words=(0, 2))


def _untuned(rows: list[dict[str, Any]]) -> Table:
    cells = [
        (
            row["dataset"],
            str(row["nodes"]),
            row["method"],
            accuracy(row["mean"], row["std"]),
            str(row["n"]),
            f"{row['seconds']:.0f}",
        )
        for row in sorted(rows, key=lambda r: (r["dataset"], r["mean"]))
    ]
    return Table(("data set", "nodes", "method", "ours", "n", "CPU s"), tuple(cells), words=(0, 2))


def _versatility(rows: list[dict[str, Any]]) -> Table:
    cells = [
        (
            row["backbone"],
            row["model"],
            *_compare(row, paper.versatility(row["dataset"], row["backbone"], row["model"])),
        )
        for row in sorted(rows, key=lambda r: (r["backbone"], r["model"]))
    ]
    return Table(("backbone", "test model", *_COMPARED), tuple(cells), words=(0, 1))


def _ablation(rows: list[dict[str, Any]]) -> Table:
    cells = [
        (row["dataset"], row["variant"], *_compare(row, paper.ablation(row["dataset"], row["variant"])))
        for row in sorted(rows, key=lambda r: (r["dataset"], r["variant"]))
    ]
    return Table(("data set", "variant", *_COMPARED), tuple(cells), words=(0, 1))


_SECTIONS = {
    "whole": (_WHOLE_TEXT, _whole),
    "learned": (_LEARNED_TEXT, _learned),
    "untuned": (_UNTUNED_TEXT, _untuned),
    "selection": (_SELECTION_TEXT, _selection),
    "versatility": (_VERSATILITY_TEXT, _versatility),
    "ablation": (_ABLATION_TEXT, _ablation),
}
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
