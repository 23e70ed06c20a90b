"""``gcond compare``: what it says, and that killing it costs nothing that was done."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from gcond.cli.compare import how_to_go_on
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.jobs.runner import Runner

LITTLE = ("--seeds", "2", "--runs", "2", "--train", "epochs=5", "--workers", "1")


def test_it_compares_and_keeps_everything(gcond, workspace):
    done = gcond("compare", "tiny.safetensors", "--nodes", "6,9", "--methods", "random,k-center", *LITTLE, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    lines = found["lines"]
    assert [(line["method"], line["nodes"]) for line in lines] == [
        ("whole", 60),
        ("random", 6),
        ("k-center", 6),
        ("random", 9),
        ("k-center", 9),
    ]
    whole, *small = lines
    assert (whole["n"], whole["kept"], whole["break_even"], whole["mark"]) == (2, 1.0, None, "")
    for line in small:
        assert line["n"] == 4
        assert line["kept"] == pytest.approx(line["mean"] / whole["mean"])
        assert len(line["graphs"]) == 2
        for place in line["graphs"]:
            assert CondensedGraph.load(workspace.folder / found["folder"] / place).num_nodes == line["nodes"]
    assert [sum(line["mark"] == "best" for line in small if line["nodes"] == nodes) for nodes in (6, 9)] == [1, 1]
    assert found["advice"]
    folder = workspace.folder / "tiny-comparison"
    assert json.loads((folder / "comparison.json").read_text())["lines"] == lines
    assert "k-center" in (folder / "comparison.md").read_text()
    assert r"\toprule" in (folder / "comparison.tex").read_text()


def test_people_get_a_table_and_advice(gcond, workspace):
    done = gcond("compare", "tiny.safetensors", "--nodes", "6", "--methods", "random", *LITTLE)
    assert done.code == 0, done.err
    for part in ("whole graph", "random", "pays from", "of the whole graph's accuracy", "gcond report tiny-comparison"):
        assert part in done.out


def test_it_accepts_ratios_settings_and_several_models(gcond, workspace):
    done = gcond(
        "compare", "tiny.safetensors", "--ratio", "10%,0.15", "--methods", "random,gcond-x", "--models", "gcn,sgc",
        "--set", "epochs=1", "gcond-x.outer=2", *LITTLE, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["models"] == ["gcn", "sgc"]
    assert len(found["lines"]) == 2 * (1 + 2 * 2)
    learned = [line for line in found["lines"] if line["method"] == "gcond-x"]
    for place in learned[0]["graphs"]:
        made = CondensedGraph.load(workspace.folder / found["folder"] / place).provenance
        assert (made.settings["epochs"], made.settings["outer"]) == (1, 2)


def test_so_far_shows_what_is_there_and_does_nothing(gcond, workspace):
    first = ("compare", "tiny.safetensors", "--nodes", "6", "-o", "run", *LITTLE, "--json")
    assert gcond(*first, "--methods", "random").code == 0
    trials = (workspace.folder / "run" / "trials.jsonl").read_bytes()
    done = gcond(*first, "--methods", "random,k-center", "--so-far")
    assert done.code == 0, done.err
    lines = json.loads(done.out)["lines"]
    assert [(line["method"], line["n"]) for line in lines] == [("whole", 2), ("random", 4)]
    held = json.loads((workspace.folder / "run" / "comparison.json").read_text())["lines"]
    assert lines == held  # times and what pays as well
    (workspace.folder / "run" / "timings.jsonl").unlink()
    untimed = gcond(*first, "--methods", "random", "--so-far")
    assert [(line["train_cpu_seconds"], line["break_even"]) for line in json.loads(untimed.out)["lines"]] == [
        (None, None)
    ] * 2
    shown = gcond(*first[:-1], "--methods", "random", "--so-far").out
    assert "never" not in shown
    assert "pays in" not in shown
    assert (workspace.folder / "run" / "trials.jsonl").read_bytes() == trials
    empty = gcond("compare", "tiny.safetensors", "--nodes", "6", "-o", "out", "--methods", "random", "--so-far")
    assert empty.code == 2
    assert "no training on the whole graph" in empty.err
    assert not list((workspace.folder / "out").iterdir())
    before = (workspace.folder / "run" / "comparison.json").read_bytes()
    assert len(json.loads(before)["lines"]) == 2


REFUSALS = {
    "no budget": ((), "give budgets as either --ratio or --nodes"),
    "two kinds of budget": (("--nodes", "6", "--ratio", "10%"), "give budgets as either --ratio or --nodes"),
    "an empty budget": (("--nodes", ","), "--nodes names no budget"),
    "a budget that is no number": (("--nodes", "6,x"), "--nodes cannot be 'x'"),
    "too small a budget": (("--nodes", "2"), "2 nodes are too few for 3 classes"),
    "an unknown method": (("--nodes", "6", "--methods", "herdin"), "did you mean 'herding'?"),
    "no method": (("--nodes", "6", "--methods", ","), "--methods names no method"),
    "an unknown setting": (("--nodes", "6", "--methods", "gcond", "--set", "epoch=1"), "did you mean 'epochs'?"),
    "a setting where there are none": (("--nodes", "6", "--methods", "random", "--set", "epochs=1"), "they have none"),
    "a setting of another method": (
        ("--nodes", "6", "--methods", "gcond", "--set", "gcond-x.epochs=1"),
        "a method that is not compared",
    ),
    "no seeds": (("--nodes", "6", "--seeds", "0"), "use --seeds 1 or more"),
    "no runs": (("--nodes", "6", "--runs", "0"), "use --runs 1 or more"),
    "no workers": (("--nodes", "6", "--workers", "0"), "--workers 0"),
    "a training that cannot be": (("--nodes", "6", "--train", "epochs=0"), "epochs must be at least 1"),
    "an address without ray": (("--nodes", "6", "--address", "auto"), "add --engine ray"),
    "a folder that is a file": (("--nodes", "6", "-o", "small.safetensors"), "small.safetensors"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_is_refused_in_one_sentence(case, gcond, workspace):
    options, sentence = REFUSALS[case]
    done = gcond("compare", "tiny.safetensors", *options)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.strip().count("\n") == done.err.strip().count("\nnote: ")


def test_failures_are_told_and_the_rest_stands(gcond, workspace):
    done = gcond(
        "compare", "tiny.safetensors", "--nodes", "6", "--methods", "random,gcond-x", "--set", "lr_features=1e38",
        "epochs=1", *LITTLE, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert {line["method"] for line in found["lines"]} == {"whole", "random"}
    named = "gcond-x (epochs=1, lr_features=1e+38), 6 nodes, seed"
    assert [failure["what"] for failure in found["failures"]] == [f"{named} {seed}" for seed in (0, 1)]
    assert f"failed: {named} 0" in (workspace.folder / "tiny-comparison" / "comparison.md").read_text()


def test_why_the_whole_graph_failed_is_told(gcond, workspace):
    options = ("--nodes", "6", "--methods", "random", "--train", "lr=1e30", "epochs=5", "--workers", "1")
    done = gcond("compare", "tiny.safetensors", *options)
    assert done.code == 2
    assert "no training on the whole graph to compare with: training gcn diverged" in done.err


def test_a_folder_of_another_graph_is_refused(gcond, workspace):
    done = gcond("compare", "tiny.safetensors", "--nodes", "6", "--methods", "random", *LITTLE, "-o", "run")
    assert done.code == 0, done.err
    other = gcond("compare", "synthetic:tiny", "--nodes", "6", "--methods", "random", *LITTLE, "-o", "run")
    assert other.code == 2
    assert "'run' holds a comparison on another graph" in other.err


def test_a_damaged_graph_is_made_again(gcond, workspace):
    command = ("compare", "tiny.safetensors", "--nodes", "6", "--methods", "random", *LITTLE, "-o", "run", "--json")
    first = json.loads(gcond(*command).out)
    place = workspace.folder / "run" / first["lines"][1]["graphs"][0]
    whole = place.read_bytes()
    place.write_bytes(whole[:300])
    again = gcond(*command)
    assert again.code == 0, again.err
    assert json.loads(again.out)["lines"][1]["mean"] == first["lines"][1]["mean"]
    assert CondensedGraph.load(place).num_nodes == 6


FORTY = (
    "compare", "tiny.safetensors", "--nodes", "6", "--methods", "random,k-center,gcond-x", "--seeds", "3",
    "--runs", "4", "--train", "epochs=40", "--set", "gcond-x.epochs=2", "--workers", "2", "--threads", "2",
    "--json", "--quiet",
)  # fmt: skip


def outcome(folder):
    """What must not depend on how it came about: everything but times and memory."""
    found = json.loads((folder / "comparison.json").read_text())
    same = ("method", "model", "nodes", "mean", "std", "n", "kept", "mark", "p_value", "graphs", "edges", "bytes")
    return [{key: line[key] for key in same} for line in found["lines"]]


@pytest.fixture(scope="module")
def calm(files, tmp_path_factory):
    """The outcome of an undisturbed comparison."""
    folder = tmp_path_factory.mktemp("calm")
    (folder / "tiny.safetensors").write_bytes(files["tiny.safetensors"])
    subprocess.run([sys.executable, "-m", "gcond", *FORTY, "-o", "run"], check=True, capture_output=True, cwd=folder)
    return outcome(folder / "run")


@pytest.mark.slow
def test_killed_three_times_every_trial_is_kept_once(workspace, calm):
    """40 trials, kill -9 to the whole of it: what was done stays done, and the table is that of an undisturbed one."""
    command = [sys.executable, "-m", "gcond", *FORTY]
    rows = workspace.folder / "killed" / "trials.jsonl"
    graphs = workspace.folder / "killed" / "graphs"

    def done():
        return len(rows.read_text().splitlines()) if rows.exists() else 0

    made: dict[str, int] = {}
    for enough in (1, 12, 24):
        process = subprocess.Popen([*command, "-o", "killed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and done() < enough:
            time.sleep(0.005)
        assert process.poll() is None, "it was over before it could be killed"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert 0 < done() < 40
        times = {path.name: path.stat().st_mtime_ns for path in graphs.glob("*.safetensors")}
        assert made.items() <= times.items(), "a graph was made again"
        made = times
    before = rows.read_text().splitlines()
    subprocess.run([*command, "-o", "killed"], check=True, capture_output=True)
    after = [json.loads(line) for line in rows.read_text().splitlines()]
    assert rows.read_text().splitlines()[: len(before)] == before, "what was written is rewritten"
    assert len(after) == 40
    assert set(Counter((row["key"], row["seed"]) for row in after).values()) == {1}
    assert outcome(workspace.folder / "killed") == calm


@pytest.mark.slow
def test_ray_gives_the_same_table_though_a_worker_is_killed(workspace, calm):
    """The same trials on a real Ray, one of whose workers is killed on the way."""
    command = [sys.executable, "-m", "gcond", *FORTY, "-o", "ray", "--engine", "ray"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    graphs = workspace.folder / "ray" / "graphs"
    killed = False
    while process.poll() is None and not killed:
        if len(list(graphs.glob("*.safetensors"))) >= 1:
            killed = kill_a_worker_of(process.pid)
        time.sleep(0.005)
    _, complaint = process.communicate()
    assert killed, "no worker was found at work"
    assert process.returncode == 0, complaint
    rows = [json.loads(line) for line in (workspace.folder / "ray" / "trials.jsonl").read_text().splitlines()]
    assert len(rows) == 40
    assert set(Counter((row["key"], row["seed"]) for row in rows).values()) == {1}
    assert outcome(workspace.folder / "ray") == calm


def kill_a_worker_of(driver):
    """Kill one process of the driver's Ray that is at work on a job; whether there was one."""
    found = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], check=True, capture_output=True, text=True).stdout
    table = [line.split(None, 2) for line in found.splitlines()]
    family = {driver}
    for _ in range(4):  # driver, raylet, worker
        family |= {int(pid) for pid, parent, *_ in table if int(parent) in family}
    for pid, _, *arguments in table:
        if int(pid) in family and arguments and arguments[0].startswith("ray::_work"):
            os.kill(int(pid), signal.SIGKILL)
            return True
    return False


QUICK = ("--nodes", "6", "--methods", "random,k-center", "--seeds", 1, "--runs", 1, "--train", "epochs=2", "-o", "out")


def test_a_folder_knows_what_it_compares(gcond, workspace):
    whole = gcond("compare", "tiny.safetensors", *QUICK, "--features", "unit-rows", "--json")
    assert whole.code == 0, whole.err
    again = gcond("compare", "tiny.safetensors", "--so-far", "-o", "out", "--json")
    assert again.code == 0, again.err
    bare = gcond("compare", "--so-far", "-o", "out", "--json")
    assert bare.code == 0, bare.err
    one, other, third = (json.loads(each.out) for each in (whole, again, bare))
    assert one.pop("command") != other.pop("command") != third.pop("command")
    assert one == other == third
    (workspace.out / "asked.json").unlink()  # as an earlier version left it
    shown = gcond("compare", "tiny.safetensors", "--so-far", "-o", "out", "--features", "unit-rows")
    assert shown.code == 0, shown.err
    assert "k-center" in shown.out
    assert (
        "random"
        not in gcond(
            "compare", "tiny.safetensors", "--so-far", "-o", "out", "--features", "unit-rows", "--methods", "k-center"
        ).out
    )
    unknown = gcond("compare", "--so-far", "-o", "out")
    assert unknown.code == 2
    assert "'out' does not know its source: give SOURCE as when it was started" in unknown.err
    assert "gcond compare needs SOURCE" in gcond("compare", "--nodes", "6", "-o", "out").err
    lost = gcond("compare", "tiny.safetensors", "--so-far", "-o", "nowhere")
    assert lost.code == 2
    assert "'nowhere' does not know what to compare: give --ratio or --nodes" in lost.err


def test_it_says_how_long_it_will_take(gcond, workspace):
    told = gcond("compare", "tiny.safetensors", *QUICK)
    (line,) = [line for line in told.err.splitlines() if "to make" in line]
    assert re.match(r"note: 2 graphs to make and 3 trainings to do: about \d+ \w+ on \d+ workers?, as", line)
    assert line.endswith(" as short ones went, and what random, k-center take, which do not learn")
    assert "to make" not in gcond("compare", "tiny.safetensors", *QUICK).err
    assert "to make" not in gcond("compare", "tiny.safetensors", *QUICK, "--so-far").err


def test_an_interrupted_comparison_says_how_to_go_on(gcond, workspace, monkeypatch):
    """It is stopped after its graphs are made; what it had is shown, and the same command goes on."""
    made = Runner.train

    def stopped(self, jobs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "train", stopped)
    outcome = gcond("compare", "tiny.safetensors", *QUICK)
    monkeypatch.setattr(Runner, "train", made)
    assert outcome.code == 130
    assert outcome.err.endswith(
        "gcond: interrupted: the same command goes on from what 'out' has, "
        "and no training is done yet that could be shown\n"
    )
    shown = gcond("compare", "tiny.safetensors", "-o", "out", "--so-far")
    assert "no training on the whole graph to compare with yet, and 2 graphs made: leave --so-far out" in shown.err
    assert len(list((workspace.out / "graphs").iterdir())) == 2
    assert gcond("compare", "tiny.safetensors", *QUICK).code == 0
    assert how_to_go_on(Path("out"), "tiny").endswith("and gcond compare tiny -o out --so-far shows it")
