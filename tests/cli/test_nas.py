"""``gcond nas`` on a tiny graph."""

from __future__ import annotations

import builtins
import json

import pytest

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.evaluation.nas import architecture_search as nas
from gcond.graph.source_graph import SourceGraph
from gcond.jobs import training_job

GRID = ("--grid", "hidden=3,8", "hops=1,2")
QUICK = (*GRID, "--runs", 2, "--workers", 1, "--set", "epochs=4")


def numbers(made):
    rows = [{key: value for key, value in row.items() if "seconds" not in key} for row in made["architectures"]]
    return rows, {side: winner["runs"] for side, winner in made["winners"].items()}


def test_it_writes_what_the_library_finds(workspace, gcond):
    pytest.importorskip("matplotlib")
    outcome = gcond("nas", workspace.small, "--on", workspace.source, "--json", *QUICK)
    assert outcome.code == 0, outcome.err
    made = json.loads(outcome.out)
    assert (made.pop("out"), made.pop("same_source")) == ("small-nas", True)
    folder = workspace.folder / "small-nas"
    assert sorted(path.name for path in folder.iterdir()) == ["nas.json", "nas.png", "trials.jsonl"]
    assert json.loads((folder / "nas.json").read_text()) == made
    assert (folder / "nas.png").read_bytes().startswith(b"\x89PNG")
    expected = nas.search(
        CondensedGraph.load(workspace.small),
        on=SourceGraph.load(workspace.source),
        grid={"hidden": [3, 8], "hops": [1, 2]},
        recipe={"epochs": 4},
        runs=2,
    )
    assert numbers(made) == numbers(json.loads(json.dumps(expected.to_json())))
    assert made["command"].startswith("gcond nas ")
    assert "--grid hidden=3,8 hops=1,2 " in made["command"]
    assert "--set epochs=4" in made["command"]


def test_people_see_correlations_and_winners(workspace, gcond):
    shown = gcond("nas", workspace.small, "--on", workspace.source, "--out", "found", *QUICK)
    assert shown.code == 0, shown.err
    assert "4 architectures of appnp on tiny" in shown.out
    for word in ("Pearson", "Spearman", "condensed graph", "whole graph", "hidden=", "found"):
        assert word in shown.out


def test_the_same_command_goes_on(workspace, gcond, monkeypatch):
    argv = ("nas", workspace.small, "--on", workspace.source, "-o", "run", "--json", *QUICK)
    original, calls = training_job.train, []

    def stop(shared, batch, tell):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(batch)
        return original(shared, batch, tell)

    with monkeypatch.context() as patch:
        patch.setattr("gcond.jobs.runner.train", stop)
        stopped = gcond(*argv)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.endswith("gcond: interrupted: the same command goes on from what 'run' has\n")
    assert not (workspace.folder / "run" / "nas.json").exists()
    rows = (workspace.folder / "run" / "trials.jsonl").read_text().splitlines()
    assert rows
    resumed = gcond(*argv)
    assert resumed.code == 0, resumed.err
    assert (workspace.folder / "run" / "trials.jsonl").read_text().splitlines()[: len(rows)] == rows
    fresh = gcond("nas", workspace.small, "--on", workspace.source, "-o", "other", "--json", *QUICK)
    assert numbers(json.loads(resumed.out)) == numbers(json.loads(fresh.out))


def test_without_matplotlib_there_is_no_picture(workspace, gcond, monkeypatch):
    real = builtins.__import__

    def missing(name, *arguments, **options):
        if name.startswith(("matplotlib", "gcond.reports.figures")):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    outcome = gcond("nas", workspace.small, "--on", workspace.source, "-o", "run", *QUICK)
    assert outcome.code == 0, outcome.err
    assert "note: the picture needs matplotlib, so there is none" in outcome.err
    assert not (workspace.folder / "run" / "nas.png").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--runs", 0), "0 runs are too few"),
        (("--grid", "hidden"), "'hidden'"),
        (("--grid", "hiden=3"), "did you mean 'hidden'"),
        (("--model", "gcn"), "the paper has no search space for 'gcn'"),
        (("--set", "epoch=3"), "no setting 'epoch'"),
        (("--out", "small.safetensors"), "is a file: give a folder"),
        (("--out", "no/where"), "does not exist"),
        (("--engine", "rey"), "choose local or ray"),
        (("--workers", 0), "--workers 0"),
        (("--address", "1.2.3.4:5"), "is for Ray"),
    ],
)
def test_refusals_leave_nothing_behind(workspace, gcond, more, message):
    before = workspace.contents()
    outcome = gcond("nas", workspace.small, "--on", workspace.source, *more)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert workspace.contents() == before


def test_a_log_of_something_else_is_refused(workspace, gcond):
    (workspace.out / "trials.jsonl").write_text("hello\n")
    outcome = gcond("nas", workspace.small, "--on", workspace.source, "-o", workspace.out, *QUICK)
    assert outcome.code == 2
    assert "is not a file of trials" in outcome.err
