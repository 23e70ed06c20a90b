"""A graph past memory from tables to a tested GCN: seconds, CPU seconds, memory and disk of each step.

Every step is a process of its own, as a person would run it: ``synthesize``, ``pack``, ``propagate``, ``condense`` by
clusters, and ``evaluate``, which trains a GCN on the condensed graph and tests it on the whole one. Each prints its own
line as soon as it is done. There are ten nodes to a hundred edges, 128 features and 50 classes.

    python benchmarks/large.py [--quick]                 a graph of 100 M edges (--quick: of 300,000)
    python benchmarks/large.py --edges 1000000 …         other sizes, one after the other
    python benchmarks/large.py --picture                 no run: the picture of the sizes that were kept

``--memory`` limits what a process may hold in all; by default it is 900 MB and 270 bytes for each node, so that groups
of columns are as wide on every graph, 3.6 GB at 10 M nodes. ``--keep`` keeps what was found in docs/results and writes
docs/results.md anew, ``--folder`` is where files go (about 250 bytes an edge), and ``--json`` prints JSON alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PICTURE = ROOT / "docs" / "images" / "growth.png"
FEATURES, CLASSES, CONDENSED = 128, 50, 1_000
STEPS = ("synthesize", "pack", "propagate", "condense", "evaluate")


@dataclass
class Step:
    """What one process took."""

    name: str
    seconds: float
    cpu_seconds: float
    """Of all its threads."""
    peak_mb: float
    """Resident memory at the most, mapped files included."""
    read_mb: float
    """From the disk: what the system had in memory anyway does not count."""
    written_mb: float


def main() -> None:
    arguments = parse()
    if not arguments.picture:
        for edges in arguments.edges:
            found = measured(edges, arguments)
            print(json.dumps(found) if arguments.json else shown(found), flush=True)
            if arguments.keep:
                keep(found)
    if arguments.picture:
        draw(kept())


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--edges", type=int, nargs="+")
    parser.add_argument("--memory", type=int, help="MB that a process may hold")
    parser.add_argument("--runs", type=int, default=1, help="trainings that are tested")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--picture", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.edges = arguments.edges or [300_000 if arguments.quick else 100_000_000]
    return arguments


def measured(edges: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """All steps on a graph of so many edges."""
    nodes = edges // 10
    memory = arguments.memory or round(900 + 270 * nodes / 10**6)
    with tempfile.TemporaryDirectory(prefix="large-", dir=arguments.folder) as name:
        folder = Path(name)
        tables, store, small = (str(folder / part) for part in ("tables", "graph.gcond", "small.safetensors"))
        made = [f"--features={FEATURES}", f"--classes={CLASSES}"]
        limit = ["--memory", f"{memory}MB"]
        commands = {
            "synthesize": ["-o", tables, f"--nodes={nodes}", f"--edges={edges}", *made],
            "pack": [tables, "-o", store, *limit],
            "propagate": [store, "--hops", "2", "-o", str(folder / "smooth.npy"), *limit],
            "condense": [store, "--nodes", str(CONDENSED), "--method", "clusters", "-o", small, *limit],
            "evaluate": [small, "--on", store, "--models", "gcn", "--runs", str(arguments.runs), *limit],
        }
        steps, said = [], {}
        for step in STEPS:
            one, said[step] = run(step, commands[step])
            steps.append(one)
            if not arguments.json:
                print(line(one), flush=True)
            if step == "pack":
                shutil.rmtree(tables)
            elif step == "propagate":
                (folder / "smooth.npy").unlink()
        taught = json.loads(gcond("inspect", [small]))["choices"]
    result = said["evaluate"]["results"][0]
    return {
        "title": f"{nodes:,} nodes, {edges:,} edges, {FEATURES} features, {CLASSES} classes, `--memory {memory}MB`",
        "command": f"python benchmarks/large.py --edges {edges} --runs {arguments.runs}",
        "nodes": nodes,
        "edges": edges,
        "memory_mb": memory,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[2],
        "steps": [asdict(step) for step in steps],
        "accuracy": {"model": "gcn", **{key: result[key] for key in ("mean", "std", "runs", "val_mean")}},
        "teacher_val_accuracy": taught.get("val_accuracy"),
    }


def run(step: str, options: list[str]) -> tuple[Step, dict[str, Any]]:
    """One command as a process: what it took, and the JSON that it said."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        process = subprocess.Popen([*program(step), *options, "--json", "--quiet"], stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        if process.returncode:
            sys.exit(f"{step}: {err.read().decode().strip()}")
        out.seek(0)
        said = json.loads(out.read())
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 10**6
    return Step(step, seconds, cpu, peak, used.ru_inblock * 512 / 10**6, used.ru_oublock * 512 / 10**6), said


def gcond(step: str, options: list[str]) -> str:
    return subprocess.run([*program(step), *options, "--json"], capture_output=True, text=True, check=True).stdout


def program(step: str) -> list[str]:
    return [sys.executable, "-m", "gcond", step]


def line(step: Step) -> str:
    return (
        f"{step.name:<12}{step.seconds:>8.0f} s{step.cpu_seconds:>8.0f} CPU s{step.peak_mb:>8.0f} MB at most"
        f"{step.read_mb:>9.0f} MB read{step.written_mb:>9.0f} MB written"
    )


def shown(found: dict[str, Any]) -> str:
    total = sum(step["seconds"] for step in found["steps"]), sum(step["cpu_seconds"] for step in found["steps"])
    peak = max(step["peak_mb"] for step in found["steps"])
    accuracy = found["accuracy"]
    return (
        f"{'in all':<12}{total[0]:>8.0f} s{total[1]:>8.0f} CPU s{peak:>8.0f} MB at most\n{found['title']}: a GCN on "
        f"{CONDENSED:,} nodes has {100 * accuracy['mean']:.2f} % on all test nodes (n = {len(accuracy['runs'])}), "
        f"the teacher {100 * found['teacher_val_accuracy']:.2f} % on validation nodes"
    )


def keep(found: dict[str, Any]) -> None:
    """Beside what was measured before, as two tables of docs/results.md: the largest graph, and how cost grows."""
    sys.path.insert(0, str(ROOT / "tests"))
    from accuracy import ledger

    measured = sorted([found, *(one for one in kept() if one["edges"] != found["edges"])], key=lambda one: one["edges"])
    ledger.keep("large-steps", {"kind": "table", **steps_table(measured[-1])})
    command = f"python benchmarks/large.py --keep --edges {' '.join(str(one['edges']) for one in measured)}"
    growth = {
        "kind": "table",
        "title": "How cost grows: CPU seconds and, in brackets, MB of resident memory at the most. "
        "Accuracy in % on all test nodes, of a GCN trained on 1,000 nodes.",
        "command": command,
        "rows": [growth_row(one) for one in measured],
        "measured": measured,
    }
    ledger.keep("large-growth", growth)


def kept() -> list[dict[str, Any]]:
    """What was measured before."""
    path = RESULTS / "large-growth.json"
    return json.loads(path.read_text())["measured"] if path.exists() else []


def steps_table(found: dict[str, Any]) -> dict[str, Any]:
    """One graph, a row for each step."""
    rows = [
        {
            "step": step["name"],
            "seconds": f"{step['seconds']:.0f}",
            "CPU seconds": f"{step['cpu_seconds']:.0f}",
            "MB at most": f"{step['peak_mb']:,.0f}",
            "MB read from disk": f"{step['read_mb']:,.0f}",
            "MB written": f"{step['written_mb']:,.0f}",
        }
        for step in found["steps"]
    ]
    total = {key: sum(step[key] for step in found["steps"]) for key in ("seconds", "cpu_seconds")}
    peak = max(step["peak_mb"] for step in found["steps"])
    last = {"step": "in all", "seconds": f"{total['seconds']:.0f}", "CPU seconds": f"{total['cpu_seconds']:.0f}"}
    rows.append(last | {"MB at most": f"{peak:,.0f}", "MB read from disk": "", "MB written": ""})
    accuracy = found["accuracy"]
    said = (
        f"{found['title']}. {found['cores']} cores, load {found['load']:.0f}. A GCN trained on {CONDENSED:,} nodes has "
        f"{100 * accuracy['mean']:.2f} % on all test nodes (n = {len(accuracy['runs'])}); the teacher, a linear model, "
        f"has {100 * found['teacher_val_accuracy']:.2f} % on validation nodes."
    )
    return {"title": said, "command": f"{found['command']} --keep", "rows": rows}


def growth_row(found: dict[str, Any]) -> dict[str, str]:
    """One graph, a cell for each step."""
    cells = {step["name"]: f"{step['cpu_seconds']:.0f} ({step['peak_mb']:,.0f})" for step in found["steps"]}
    return {"edges": f"{found['edges']:,}", **cells, "accuracy": f"{100 * found['accuracy']['mean']:.1f}"}


def draw(measured: list[dict[str, Any]]) -> None:
    """CPU seconds and memory of each step over the number of edges."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    edges = [one["edges"] for one in measured]
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for place, name in enumerate(STEPS):
        steps = [one["steps"][place] for one in measured]
        for axis, key in zip(axes, ("cpu_seconds", "seconds", "peak_mb"), strict=True):
            axis.plot(edges, [step[key] for step in steps], "o-", label=name)
    for axis, key in zip(axes[:2], ("cpu_seconds", "seconds"), strict=True):
        level = max(step[key] for step in measured[-1]["steps"]) * 1.6
        axis.plot(
            [edges[0], edges[-1]], [level * edges[0] / edges[-1], level], ":", color="grey", label="in proportion"
        )
    axes[2].plot(edges, [one["memory_mb"] for one in measured], ":", color="grey", label="the limit")
    titles = ("CPU seconds", "seconds, on a machine that was shared", "resident memory at the most, MB")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(xscale="log", yscale="log", xlabel="edges", title=title)
        axis.grid(visible=True, which="both", alpha=0.25)
    axes[0].legend()
    axes[2].legend(handles=axes[2].lines[-1:])
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
