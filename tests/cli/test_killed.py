"""kill -9 in the middle of pack, propagate and condense, and then the same command again: the same result."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gcond.condensed import CondensedGraph
from gcond.data.store_reading import open_store
from gcond.data.synthetic_tables import synthesize

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).parents[1] / "reference" / "killing.py"
KILLS = 5
LEARNING = ("epochs=6", "outer=2", "inner=2", "probe_every=2", "teacher=ridge")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tables, and a store of them."""
    folder = tmp_path_factory.mktemp("made")
    synthesize(folder / "tables", nodes=3000, edges=12_000, features=24, classes=4, shards=2, train=0.1, val=0.05)
    subprocess.run(
        [sys.executable, "-m", "gcond", "pack", folder / "tables", "-o", folder / "own.gcond", "-q"], check=True
    )
    return folder


def digest(path):
    if path.suffix == ".gcond":
        return open_store(path, anew=True).sha256
    if path.suffix == ".safetensors":
        return CondensedGraph.load(path).sha256
    return hashlib.sha256(path.read_bytes()).hexdigest()


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix != ".lock")


def killed(work, result, arguments, seed):
    """Kill the command ``KILLS`` times and let it finish after each; how often it really died on its way."""
    start = work.with_name("start")
    shutil.copytree(work, start)
    command = [sys.executable, str(DRIVER), str(work), str(KILLS), str(seed), *map(str, arguments)]
    deaths = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as driver:

        def told():
            line = driver.stdout.readline()
            assert line, "the driver is gone"
            return json.loads(line)

        def go_on():
            driver.stdin.write("\n")
            driver.stdin.flush()

        assert told()["total"] > 0
        expected, present = digest(result), everything(work)
        for _ in range(KILLS):
            shutil.rmtree(work)
            shutil.copytree(start, work)
            go_on()
            end = told()
            deaths += end["killed"]
            if result.exists():  # it is there whole, or not there
                assert digest(result) == expected
                (shutil.rmtree if result.is_dir() else Path.unlink)(result)
            go_on()
            assert told()["status"] == 0, end
            assert digest(result) == expected, end
            assert everything(work) == present, end
    assert driver.returncode == 0
    return deaths


def test_pack(made, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    result = work / "own.gcond"
    assert killed(work, result, ["pack", made / "tables", "-o", result, "--memory", "4GB", "-q"], seed=0) > 0


def commands(work):
    store = work / "own.gcond"
    clusters = ["condense", store, "--nodes", "40", "--method", "clusters", "-o", work / "small.safetensors"]
    learned = ["condense", store, "--nodes", "40", "--method", "gcond-x", "-o", work / "small.safetensors", "--resume"]
    learned += [word for setting in LEARNING for word in ("--set", setting)] + ["--checkpoint-every", "0"]
    return {
        "propagate": (work / "h.npy", ["propagate", store, "--hops", "2", "-o", work / "h.npy"]),
        "clusters": (work / "small.safetensors", clusters),
        "gcond-x": (work / "small.safetensors", learned),
    }


@pytest.mark.parametrize("name", ["propagate", "clusters", "gcond-x"])
def test_from_a_store(name, made, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    shutil.copytree(made / "own.gcond", work / "own.gcond")
    result, arguments = commands(work)[name]
    assert killed(work, result, [*arguments, "--memory", "4GB", "-q"], seed=1) > 0
