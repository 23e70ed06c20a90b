"""What condensing graphs of ogbn-arxiv's and Reddit's size costs: seconds, memory, and the share of the probes.

Each part is a process of its own, because a peak of memory never goes down again: it loads the graph, condenses it by
the method's own settings to the end of its own stopping rule, and tells what each took. One more makes 5,000 synthetic
nodes by gcond for an epoch of Φ and one of X', whose pairs are candidates (``neighbours``), and one more starts from
k-means. Prints a table and the same as JSON; ``--keep`` writes what docs/results.md shows.

    python benchmarks/condensing_large.py [--quick] [--keep] [PART …]          --quick: small graphs, few epochs
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

QUICK = "--quick" in sys.argv
SIZES = {"arxiv": 60, "reddit": 60} if QUICK else {"arxiv": 454, "reddit": 307}
BOUNDS = {"clusters": 15, "gcond-x": 180, "gcond": 600}
"""Seconds of two cores that arxiv may take, as they are asked for; 2 GB of memory go with them."""
EPOCH = {"epochs": 2, "features_epochs": 1, "structure_epochs": 1, "probe_every": 0}
MANY = 500 if QUICK else 5000
RESULTS = Path(__file__).parents[1] / "docs" / "results" / "large-condensing.json"

PARTS: dict[str, tuple[str, int, str, dict[str, Any]]] = {
    f"{source}, {method}": (source, nodes, method, {"epochs": 2} if QUICK and method != "clusters" else {})
    for source, nodes in SIZES.items()
    for method in BOUNDS
} | {
    "arxiv, gcond-x from k-means": ("arxiv", SIZES["arxiv"], "gcond-x", {"init": "propagated-means", "epochs": 0}),
    f"arxiv, gcond, {MANY} nodes": (
        "arxiv",
        MANY,
        "gcond",
        {"epochs": 2, **EPOCH, **({"neighbours": 8} if QUICK else {})},
    ),
}


def part(name: str) -> dict[str, Any]:
    """One part, in this process."""
    import gcond
    from gcond.matching.callback import Callback
    from gcond.matching.probe import Probe
    from gcond.runtime.memory import peak_rss_mb, reuse_memory

    reuse_memory()  # as every gcond command does
    source, nodes, method, settings = PARTS[name]

    def now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    probes: list[float] = []
    accuracy = Probe.accuracy

    def timed(self: Probe, condensed: Any) -> float:
        if self.without_graph:
            self.rows.inputs.x  # noqa: B018 (propagated here: matching needs the same, and a run makes it once)
        before = time.process_time()
        found = accuracy(self, condensed)
        probes.append(time.process_time() - before)
        return found

    Probe.accuracy = timed  # type: ignore[method-assign]

    class Clock(Callback):
        def __init__(self) -> None:
            self.epochs: list[tuple[float, float]] = []
            self.before = 0.0

        def on_start(self, run: Any) -> None:
            self.epochs.append(now())
            self.before = sum(probes)

        def on_epoch(self, run: Any) -> None:
            self.epochs.append(now())

    began, clock = now(), Clock()
    graph = gcond.load("synthetic:small" if QUICK else f"synthetic:{source}")
    loaded, held = now(), peak_rss_mb()
    small = gcond.condense(graph, method=method, nodes=nodes, callbacks=[clock], **settings)
    done = now()
    made = small.provenance
    assert made is not None
    each = [b - a for (_, a), (_, b) in zip(clock.epochs, clock.epochs[1:], strict=False)]
    return {
        "nodes": nodes,
        "edges": small.num_edges,
        "load": [after - before for before, after in zip(began, loaded, strict=True)],
        "condense": [after - before for before, after in zip(loaded, done, strict=True)],
        "loaded_mb": held,
        "peak_mb": peak_rss_mb(),
        "threads": made.threads,
        "epochs": len(each),
        "epoch_cpu": each,
        "ended": made.ended,
        "probes": len(probes),
        "probe_cpu": sum(probes),
        "choice_cpu": clock.before,
        "best_probe": max(made.history.get("probe", []), default=None),
        "neighbours": made.choices.get("neighbours"),
    }


def rows_of(results: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
    """The table."""
    rows = []
    for name, found in results.items():
        wall, cpu = found["condense"]
        method = PARTS[name][2]
        bound = BOUNDS[method] if name == f"arxiv, {method}" and not QUICK else None
        share = f"{(found['probe_cpu'] - found['choice_cpu']) / cpu:.1%} ({found['probe_cpu'] / cpu:.1%})"
        each = sorted(found["epoch_cpu"])
        rows.append(
            {
                "what": name,
                "nodes": str(found["nodes"]),
                "CPU s": f"{cpu:.1f}",
                "wall s": f"{wall:.1f}",
                "bound s": "–" if bound is None else str(bound),
                "epochs": str(found["epochs"]),
                "CPU s an epoch": f"{each[len(each) // 2]:.2f}" if each else "–",
                "probes' share (with those that choose the start)": share,
                "loading, CPU s": f"{found['load'][1]:.1f}",
                "graph loaded, MB": f"{found['loaded_mb']:.0f}",
                "peak MB": f"{found['peak_mb']:.0f}",
            }
        )
    return rows


def main() -> None:
    words = [word for word in sys.argv[1:] if word not in ("--quick", "--keep")]
    if words[:1] == ["--part"]:
        print(json.dumps(part(words[1])))
        return
    if unknown := [word for word in words if word not in PARTS]:
        sys.exit(f"'{unknown[0]}' is no part of this benchmark: choose among {'; '.join(PARTS)}, or give none for all")
    results: dict[str, dict[str, Any]] = {}
    before = json.loads(RESULTS.read_text())["measured"] if "--keep" in sys.argv and RESULTS.exists() else {}
    for name in words or PARTS:
        command = [sys.executable, __file__, *(["--quick"] if QUICK else []), "--part", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name}: failed")
        results[name] = json.loads(done.stdout)
        print(" | ".join(f"{key}: {value}" for key, value in rows_of({name: results[name]})[0].items()), flush=True)
        if "--keep" in sys.argv and not QUICK:
            measured = {key: (before | results)[key] for key in PARTS if key in before | results}
            kept = {
                "kind": "table",
                "title": f"Condensing, by the methods' own settings, on {os.cpu_count()} cores",
                "command": "python benchmarks/condensing_large.py --keep",
                "rows": rows_of(measured),
                "measured": measured,
            }
            RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
