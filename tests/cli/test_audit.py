"""``gcond audit`` on a tiny graph."""

from __future__ import annotations

import json

import pytest

import gcond as library
from cli.workspace import build_tiny
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.graph.source_graph import SourceGraph
from gcond.results import Audit
from gcond.runtime.engines import LocalEngine

QUICK = ("--seeds", 1, "--runs", 2, "--workers", 1, "--set", "epochs=9")


def test_it_writes_what_the_library_finds(workspace, gcond):
    outcome = gcond("audit", workspace.small, "--on", workspace.source, "--json", *QUICK)
    assert outcome.code == 0, outcome.err
    made = json.loads(outcome.out)
    folder = workspace.folder / "small-audit"
    assert made.pop("out") == "small-audit"
    assert json.loads((folder / "audit.json").read_text()) == made
    assert made["command"].startswith("gcond audit ")
    with LocalEngine(workers=1) as engine:
        expected = library.audit(
            CondensedGraph.load(workspace.small),
            on=SourceGraph.load(workspace.source),
            seeds=1,
            runs=2,
            epochs=9,
            engine=engine,
        )
    found = Audit.load(folder)
    for part in ("accuracies", "closeness", "membership", "subjects", "noise", "recipe", "notes"):
        assert getattr(found, part) == getattr(expected, part)


def test_people_see_tables_and_the_next_command(workspace, gcond):
    shown = gcond("audit", workspace.small, "--on", workspace.source, "--noise", "labels=50%", "edges=0", *QUICK)
    assert shown.code == 0, shown.err
    for words in ("50 % labels", "6 random nodes", "whole graph", "Membership by confidence", "worst class", "copies"):
        assert words in shown.out
    assert "% edges" not in shown.out
    assert "a page of it: gcond report small-audit" in shown.out
    page = gcond("report", "small-audit", "-o", "page.html")
    assert page.code == 0
    assert "What noise does, and what it gives away" in (workspace.folder / "page.html").read_text()


def test_several_files_quick_and_models(workspace, gcond):
    assert gcond("condense", workspace.source, "--method", "herding", "--nodes", 9, "-o", "other.safetensors").code == 0
    files = (workspace.small, "other.safetensors")
    options = ("--models", "sgc,mlp", "--quick", "--workers", 1, "--set", "epochs=2", "-o", "run", "--json")
    found = json.loads(gcond("audit", *files, "--on", workspace.source, *options).out)
    assert (found["seeds"], found["runs"], found["models"]) == (1, 2, ["sgc", "mlp"])
    names = [one["name"] for one in found["subjects"]]
    assert names[-2:] == ["random, 6 nodes", "herding, 9 nodes"]


def test_so_far_shows_what_is_there_and_does_nothing(workspace, gcond):
    argv = ("audit", workspace.small, "--on", workspace.source, "-o", "run", *QUICK, "--json")
    whole = json.loads(gcond(*argv).out)
    log = workspace.folder / "run" / "observations.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:3]))
    kept = workspace.contents()
    part = json.loads(gcond(*argv, "--so-far").out)
    assert 0 < len(part["accuracies"]) < len(whole["accuracies"])
    assert workspace.contents() == kept
    again = json.loads(gcond(*argv).out)
    assert again["accuracies"] == whole["accuracies"]


def test_an_interrupted_audit_says_how_to_go_on(workspace, gcond, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gcond.evaluation.audit.audit.perturbed", interrupt)
    stopped = gcond("audit", workspace.small, "--on", workspace.source, "-o", "run", *QUICK)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.endswith("gcond: interrupted: the same command goes on from what 'run' has\n")


def test_files_of_other_tools_are_audited_but_for_what_nobody_knows(workspace, gcond):
    from safetensors.torch import save_file

    small = CondensedGraph.load(workspace.small)
    save_file({"x": small.x, "y": small.y}, str(workspace.folder / "foreign.safetensors"))
    found = gcond("audit", "foreign.safetensors", "--on", workspace.source, *QUICK, "--json")
    made = json.loads(found.out)
    assert made["subjects"][-1]["repeated"] is False
    assert any("because it does not say how it was made" in note for note in made["notes"])
    assert {one["stage"] for one in made["accuracies"] if one["subject"] == "unknown method, 6 nodes"} == {
        "clean",
        "test",
    }


ON = ("SMALL", "--on", "SOURCE")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "needs a file: give one or more condensed graphs"),
        (("SMALL",), "add --on SOURCE"),
        ((*ON, "--seeds", "0"), "0 seeds are too few: use --seeds 1 or more"),
        ((*ON, "--runs", "0"), "0 runs are too few: use --runs 1 or more"),
        ((*ON, "--runs", "many"), "--runs cannot be 'many'"),
        ((*ON, "--models", "gnc"), "unknown model 'gnc'"),
        ((*ON, "--models", ","), "--models names no model"),
        ((*ON, "--noise", "labels"), "--noise takes what=share"),
        ((*ON, "--noise", "labels=some"), "has no number: write for example labels=10%"),
        ((*ON, "--noise", "label=10%"), "did you mean 'labels'"),
        ((*ON, "--noise", "labels=120%"), "must be at least 0 and below 1"),
        ((*ON, "--noise", "edges=nan"), "edges"),
        ((*ON, "--set", "epoch=3"), "did you mean 'epochs'"),
        ((*ON, "--metric", "f1"), "metric"),
        ((*ON, "-o", "small.safetensors"), "is a file: give a folder"),
        ((*ON, "-o", "no/where"), "does not exist"),
        ((*ON, "--engine", "rey"), "choose local or ray"),
        ((*ON, "--workers", "0"), "--workers 0"),
        ((*ON, "--so-far"), "nothing is done yet, so leave --so-far out"),
        (("nowhere.safetensors", "--on", "SOURCE"), "nowhere.safetensors"),
        (("SOURCE", "--on", "SOURCE"), "a condensed graph is needed here"),
        (("SMALL", "--on", "nowhere"), "nowhere"),
    ],
)
def test_refusals_leave_nothing_behind(workspace, gcond, words, message):
    places = {"SMALL": str(workspace.small), "SOURCE": str(workspace.source)}
    before = workspace.contents()
    outcome = gcond("audit", *[places.get(word, word) for word in words])
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert workspace.contents() == before


def test_a_source_that_it_cannot_be_of_is_refused_before_anything_is_made(workspace, gcond):
    build_tiny(name="wide", features=9).save("wide.safetensors")
    before = workspace.contents()
    refused = gcond("audit", workspace.small, "--on", "wide.safetensors", "-q", *QUICK)
    assert (refused.code, refused.out) == (2, "")
    assert "has 8 features and 'wide' has 9" in refused.err
    assert workspace.contents() == before


def test_folders_of_another_graph_and_damaged_logs_are_refused(workspace, gcond):
    argv = ("audit", workspace.small, "--on", workspace.source, "-o", "run", *QUICK)
    assert gcond(*argv).code == 0
    build_tiny(name="another", extra_edges=((0, 1), (1, 0))).save("another.safetensors")
    refused = gcond("audit", workspace.small, "--on", "another.safetensors", "-o", "run", "-q", *QUICK)
    assert (refused.code, refused.out) == (2, "")
    assert "holds an audit on another graph, 'tiny'" in refused.err
    log = workspace.folder / "run" / "observations.jsonl"
    log.write_text(log.read_text().replace('"seed": ', '"seed": "x', 1))
    log.write_text(log.read_text().replace('"model": "gcn"', '"model": 7', 2))
    damaged = gcond(*argv)
    assert damaged.code == 2
    assert "delete the line to run that observation again" in damaged.err
    log.write_text("no log\n")
    foreign = gcond(*argv)
    assert foreign.code == 2
    assert "is not a file of observations" in foreign.err
