"""Condense, score, keep: every measurement goes through the command line, as docs/results.md says.

Files and trials are kept in ``runs/accuracy``: an interrupted session goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from accuracy.ledger import ROOT, RUNS
from gcond import methods
from gcond.artefact import CondensedGraph
from gcond.cli.app import run


def gcond(*arguments: str) -> dict[str, Any]:
    """Run the command line in this process and parse the object it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run([*arguments, "--json", "--quiet"])
    assert not code, arguments
    return json.loads(out.getvalue())


def budgets(dataset: str) -> list[int]:
    """The paper's, in nodes."""
    return tomllib.loads((ROOT / "recipes" / f"{dataset}.toml").read_text())["budgets"]


def whole(dataset: str, model: str, runs: int = 10) -> dict[str, Any]:
    """Accuracy of ``model`` trained on the whole graph."""
    RUNS.mkdir(parents=True, exist_ok=True)
    trials = str(RUNS / f"whole-{dataset}.jsonl")
    (result,) = gcond("evaluate", "--whole", dataset, "--models", model, "--runs", str(runs), "--trials", trials)[
        "results"
    ]
    return {"dataset": dataset, "model": model, "mean": result["mean"], "std": result["std"], "n": len(result["runs"])}


def condensed(
    dataset: str,
    method: str,
    size: int | str,
    *,
    model: str = "gcn",
    seeds: Sequence[int] = range(5),
    runs: int = 10,
    settings: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Accuracy of ``model`` on the test nodes, trained on what ``method`` makes: ``seeds`` graphs × ``runs`` runs.

    ``size`` is a number of nodes, or a ratio such as ``1%``.
    """
    budget = ["--nodes", str(size)] if isinstance(size, int) else ["--ratio", size]
    scores: list[float] = []
    made: list[CondensedGraph] = []
    for seed in seeds:
        name = "-".join([dataset, method, *(f"{key}={value}" for key, value in (settings or {}).items()), str(size)])
        file = RUNS / f"{name}-{seed}.safetensors"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            options = [part for key, value in (settings or {}).items() for part in ("--set", f"{key}={value}")]
            options += ["--resume"] if methods.find(method).kind == "learned" else []
            options += [*budget, "--seed", str(seed), "-o", str(file)]
            gcond("condense", dataset, "--method", method, *options)
        made.append(CondensedGraph.load(file))
        trials = str(RUNS / f"trials-{dataset}.jsonl")
        # Runs of their own for each graph, also where a method makes the same graph of every seed.
        options = ["--models", model, "--runs", str(runs), "--seed", str(10 * seed), "--trials", trials, "--no-record"]
        scores += gcond("evaluate", str(file), "--on", dataset, *options)["results"][0]["runs"]
    seconds = [graph.provenance.cost["cpu_seconds"] for graph in made if graph.provenance is not None]
    return {
        "dataset": dataset,
        "method": method,
        "nodes": made[0].num_nodes,
        "model": model,
        "mean": fmean(scores),
        "std": stdev(scores),
        "n": len(scores),
        "graphs": len(made),
        "seconds": fmean(seconds),
    }
