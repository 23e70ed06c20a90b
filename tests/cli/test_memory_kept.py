"""``--memory`` is kept: what pack, propagate, condense and evaluate hold at the most, as the system counts it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gcond.data.synthetic_tables import synthesize

pytestmark = pytest.mark.slow

RUN = """
import sys
from gcond.cli.app import run
from gcond.runtime.memory import peak_rss_mb
code = run(sys.argv[1:])
print(peak_rss_mb(), file=sys.stderr)
sys.exit(code)
"""
NODES, EDGES, FEATURES = 400_000, 1_600_000, 64
LIMITS = {"pack": 900, "propagate": 840, "condense": 840, "evaluate": 840}
"""MB: the graph and the work on it would take more, so it is streamed."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("large")
    synthesize(place / "tables", nodes=NODES, edges=EDGES, features=FEATURES, classes=10, train=0.05, val=0.01)
    return place


def peak(*arguments) -> float:
    """MB that a process held at the most while it ran a command within the limit."""
    words = [*map(str, arguments), "--memory", f"{LIMITS[arguments[0]]}MB", "--quiet", "--json"]
    ended = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return float(ended.stderr.strip().splitlines()[-1])


def test_every_command_stays_within_the_limit(folder):
    store, small = folder / "large.gcond", folder / "small.safetensors"
    held = {
        "pack": peak("pack", folder / "tables", "-o", store),
        "propagate": peak("propagate", store, "--hops", 2, "-o", folder / "h.npy"),
        "condense": peak("condense", store, "--nodes", 50, "--method", "clusters", "-o", small),
        "evaluate": peak("evaluate", small, "--on", store, "--runs", 1, "--set", "epochs=20"),
    }
    assert (store / "derived").is_dir()  # it was streamed
    assert {name: mb for name, mb in held.items() if mb > LIMITS[name]} == {}, held
