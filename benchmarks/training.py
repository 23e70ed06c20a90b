"""A training on a condensed graph against one on the whole graph, validation included, under both protocols.

*paper* does all 600 epochs and looks at the validation nodes after each; *auto* is the default of ``gcond evaluate``.
Both sides are trained by gcond, one after the other for each seed, on one thread; the ratio is taken within one run.
On Cora and CiteSeer trainings are done to the end, and tested. On ``synthetic:arxiv`` the whole graph would take hours:
there an epoch, a look and the rest are timed in short trainings, as ``gcond compare`` does, and counted as often as a
training has them: on the condensed graph as one had that was done, on the whole graph as often as the paper's recipe
says, or, for *auto*, as often as it allows at most.

    python benchmarks/training.py [--quick] [--json] [--runs 10]
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from statistics import fmean

import torch

import gcond
from gcond.condensed import CondensedGraph
from gcond.graph import SourceGraph
from gcond.jobs.training_job import Length, TimedTogether, TrainingGround, TrainingJob, time_together
from gcond.models import GCN
from gcond.runtime.memory import reuse_memory
from gcond.training import PAPER_PROTOCOL, Recipe, accuracy, fit

QUICK = "--quick" in sys.argv
RUNS = int(sys.argv[sys.argv.index("--runs") + 1]) if "--runs" in sys.argv else 1 if QUICK else 10
LARGE = "synthetic:tiny" if QUICK else "synthetic:arxiv"
EPOCHS = {"epochs": 40} if QUICK else {}
PROTOCOLS = {"paper": Recipe(**EPOCHS, **PAPER_PROTOCOL), "auto": Recipe(**EPOCHS)}


@dataclass
class Row:
    """One kind of training."""

    source: str
    trained_on: str
    protocol: str
    cpu_seconds: float
    """Of one training, the mean over the runs."""
    epochs: float
    looks: float
    test: float | None = None
    """Mean accuracy in %."""


def done(graph: SourceGraph, small: CondensedGraph) -> list[Row]:
    """Trainings done to the end, all four kinds of a seed before the next seed."""
    val, test = graph.view("val"), graph.view("test")
    views = {f"{small.num_nodes} nodes": small.view(), "whole graph": graph.view("train")}
    found: dict[tuple[str, str], list[tuple[float, float, float, float]]] = {}
    for seed in range(-1, RUNS):  # the first is for warming up
        for place, view in views.items():
            for protocol, recipe in PROTOCOLS.items():
                start = time.process_time()
                fitted = fit(GCN(), view, val, classes=graph.num_classes, seeds=[max(seed, 0)], recipe=recipe)
                seconds = time.process_time() - start
                tested = 100 * float(accuracy(GCN(), fitted.parameters, test))
                if seed >= 0:
                    one = (seconds, float(fitted.epochs), float(fitted.looks), tested)
                    found.setdefault((place, protocol), []).append(one)
    return [Row(graph.name, *key, *(fmean(part) for part in zip(*own, strict=True))) for key, own in found.items()]


def estimated(graph: SourceGraph, small: CondensedGraph) -> list[Row]:
    """Trainings of which only the one on the condensed graph is done, to see how long it is."""
    kinds = [(place, name) for place in (f"{small.num_nodes} nodes", "whole graph") for name in PROTOCOLS]
    jobs = [
        TrainingJob(small if place != "whole graph" else None, GCN(), PROTOCOLS[name], (0,)) for place, name in kinds
    ]
    lengths = [Length.of([], job.recipe) for job in jobs]
    val, auto = graph.view("val"), kinds.index((f"{small.num_nodes} nodes", "auto"))
    fitted = fit(GCN(), small.view(), val, classes=graph.num_classes, seeds=[0], recipe=PROTOCOLS["auto"])
    lengths[auto] = Length(float(fitted.epochs), float(fitted.looks))
    timed = TimedTogether(tuple(jobs), tuple(lengths))
    seconds = time_together(TrainingGround(graph, "cpu"), timed, lambda share: None)
    return [
        Row(graph.name, *kind, spent, length.epochs, length.looks)
        for kind, spent, length in zip(kinds, seconds, lengths, strict=True)
    ]


def main() -> None:
    torch.set_num_threads(1)
    reuse_memory()  # as every gcond command does
    rows: list[Row] = []
    for name, nodes in (("cora", 70), ("citeseer", 60)):
        graph = gcond.load(name)
        rows += done(graph, gcond.condense(graph, method="gcond-x", nodes=nodes, epochs=5))
    graph = gcond.load(LARGE)
    rows += estimated(graph, gcond.condense(graph, method="random", nodes=20 if QUICK else 454))
    if "--json" in sys.argv:
        print(json.dumps({"runs": RUNS, "rows": [vars(row) for row in rows]}))
        return
    print(f"a GCN, {PROTOCOLS['paper'].epochs} epochs at most, CPU seconds of one training ({RUNS} runs), one thread")
    for row in rows:
        whole = {
            one.protocol: one.cpu_seconds for one in rows if one.source == row.source and "whole" in one.trained_on
        }
        shares = "   ".join(f"{row.cpu_seconds / whole[name]:.3f} of whole, {name}" for name in PROTOCOLS)
        tested = "" if row.test is None else f"   test {row.test:.2f} %"
        kind = f"{row.source:<16} {row.trained_on:<12} {row.protocol:<6}"
        length = f"{row.epochs:>4.0f} epochs {row.looks:>4.0f} looks"
        print(f"{kind} {row.cpu_seconds:>9.2f} s  {length}   {shares}{tested}")


if __name__ == "__main__":
    main()
