"""Peak resident memory of whole processes: load a graph of ogbn-arxiv's size, propagate it twice, save the result.

Each scenario is a fresh process, because a peak never goes down again. Bounds are those that
tests/graph/test_propagation.py asserts. Prints a table, and the same as one line of JSON.

    python benchmarks/memory.py [--quick]          --quick: synthetic:small in place of synthetic:arxiv
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SCENARIO = """
import json, sys
import torch
torch.set_num_threads(1)
import gcond
from gcond.runtime.memory import peak_rss_mb

source, limit, folder, steps = sys.argv[1], sys.argv[2] or None, sys.argv[3], sys.argv[4].split()
peaks, blocks = {"import torch": peak_rss_mb()}, 0

def count(done, total):
    global blocks
    blocks = total

if "load" in steps:
    graph = gcond.load(source)
    peaks["load"] = peak_rss_mb()
if "propagate" in steps:
    gcond.propagate(graph, hops=2, memory_limit=limit, out=f"{folder}/h.npy", on_block=count)
    peaks["propagate, save"] = peak_rss_mb()
if "keep" in steps:
    graph.save(f"{folder}/graph.safetensors")
    peaks["save the graph"] = peak_rss_mb()
print(json.dumps({"peak_mb": peaks, "blocks": blocks}))
"""

# name, memory limit, steps, bound on the peak in MB
SCENARIOS = (
    ("load alone", "", "load", None),
    ("load, save the graph", "", "load keep", None),
    ("load, propagate twice, save: in memory", "", "load propagate", 2000),
    ("load, propagate twice, save: limit 500 MB", "500MB", "load propagate", 500),
)


def main() -> None:
    source = "synthetic:small" if "--quick" in sys.argv else "synthetic:arxiv"
    rows = []
    for name, limit, steps, bound in SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", SCENARIO, source, limit, folder, steps]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
        result = json.loads(done.stdout)
        peaks = {step: round(peak) for step, peak in result["peak_mb"].items()}
        row = {"scenario": name, "peak_mb": max(peaks.values()), "bound_mb": bound}
        rows.append(row | {"blocks": result["blocks"], "after": peaks})
    print(f"{source}, one thread, MB are 10^6 bytes")
    print(f"{'scenario':<44}{'peak MB':>8}{'bound':>7}{'blocks':>7}   peak after each step")
    for row in rows:
        steps = ", ".join(f"{step} {peak}" for step, peak in row["after"].items())
        print(f"{row['scenario']:<44}{row['peak_mb']:>8}{row['bound_mb'] or '':>7}{row['blocks'] or '':>7}   {steps}")
    print(json.dumps({"source": source, "scenarios": rows}))


if __name__ == "__main__":
    main()
