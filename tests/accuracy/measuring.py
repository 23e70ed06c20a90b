"""Every measurement goes through the command line, as docs/results.md says.

Runs are kept in ``runs/``: an interrupted session goes on where it stopped. What comes out is kept in ``docs/results``.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from accuracy import ledger
from gcond.cli.app import run

RUNS = Path("runs")  # of the checkout, where pytest is started; the commands on the page name it so


def gcond(*arguments: str) -> dict[str, Any]:
    """Run the command line in this process and parse the object it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run([*arguments, "--json", "--quiet"])
    assert not code, arguments
    return json.loads(out.getvalue())


def reproduce(table: str, datasets: str, seeds: int, runs: int) -> dict[str, Any]:
    """Measure one of the paper's tables, and keep it."""
    scale = ("--seeds", str(seeds), "--runs", str(runs))
    (found,) = gcond("reproduce", table, "--datasets", datasets, *scale, "-o", str(RUNS / "reproduction"))["tables"]
    ledger.keep(table, found)
    return found


def compare(name: str, dataset: str, *options: str) -> dict[str, Any]:
    """Compare methods on one data set, and keep it under ``name``."""
    found = gcond("compare", dataset, *options, "-o", str(RUNS / name / dataset))
    ledger.keep(f"{name}-{dataset}", {key: value for key, value in found.items() if key != "folder"})
    return found


def tune(name: str, *options: str) -> dict[str, Any]:
    """Search hyper-parameters, and keep what was found under ``name``."""
    found = gcond("tune", *options, "-o", str(RUNS / "tune" / name))
    ledger.keep(f"tune-{name}", {key: value for key, value in found.items() if key not in ("out", "saved", "next")})
    return found


def audit(name: str, *options: str) -> dict[str, Any]:
    """Audit condensed graphs, and keep what was found under ``name``."""
    found = gcond("audit", *options, "-o", str(RUNS / "audit" / name))
    ledger.keep(f"audit-{name}", {key: value for key, value in found.items() if key != "out"})
    return found


def cell(found: dict[str, Any], dataset: str, *labels: str) -> float:
    """Our mean, in %, of the row with these labels."""
    (row,) = [row for row in found["rows"] if row["dataset"] == dataset and row["labels"] == list(labels)]
    assert row["ours"] is not None, labels
    return row["ours"]["mean"]
