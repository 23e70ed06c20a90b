"""``gcond reproduce``."""

from __future__ import annotations

import dataclasses
import json

import pytest

from gcond import load
from gcond.cli.common_options import Common
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.reproduction import experiment_setup
from gcond.reproduction.experiment_setup import ExperimentSetup


def test_without_a_table_they_are_listed(gcond):
    done = gcond("reproduce")
    assert done.code == 0
    assert "cross-depth" in done.out
    listed = json.loads(gcond("reproduce", "--json").out)["tables"]
    assert {"main", "nas", "pubmed"} <= {entry["table"] for entry in listed}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("mian",), "unknown table 'mian' (did you mean 'main'?)"),
        (("main", "--datasets", "corra"), "unknown data set 'corra' (did you mean 'cora'?)"),
        (("pubmed", "--datasets", "cora"), "unknown data set 'cora'"),
        (("main", "--datasets", ","), "--datasets names no data set"),
        (("main", "--seeds", "0"), "use --seeds 1 or more"),
        (("main", "--settings", "mine"), "choose gcond or paper"),
    ],
)
def test_what_cannot_be_is_refused(options, sentence, gcond):
    done = gcond("reproduce", *options)
    assert done.code == 2
    assert sentence in done.err


def test_missing_data_sets_are_told_with_how_to_get_them(gcond, tmp_path, monkeypatch):
    monkeypatch.setenv("GCOND_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = gcond("reproduce", "main", "-o", str(tmp_path / "out"))
    assert done.code == 2
    assert "cora is not here (downloaded on first use)" in done.err
    assert "ogbn-arxiv is not here (put " in done.err
    assert "no data set is at hand" in done.err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def tiny(monkeypatch):
    """Any data set is the tiny graph, at budgets that it has."""
    source = load("synthetic:tiny")
    monkeypatch.setattr(Common, "load", lambda self, name, voice: source)
    monkeypatch.setattr(ExperimentSetup, "budgets", (8, 9, 10))
    space = {"hops": (1,), "hidden": (8,), "activation": ("relu", "sigmoid")}
    less = dataclasses.replace(experiment_setup.QUICK, epochs=1, train={"epochs": 5}, architectures=space)
    monkeypatch.setattr(experiment_setup, "QUICK", less)


def test_a_quick_table_and_what_it_leaves(gcond, workspace, tiny):
    command = ("reproduce", "parametrization", "--datasets", "cora", "--quick", "--workers", "1", "-o", "out")
    done = gcond(*command)
    assert done.code == 0, done.err
    assert "Markdown, LaTeX and JSON are in out" in done.out
    folder = workspace.folder / "out"
    assert sorted(path.name for path in folder.iterdir()) == [
        "cora", "parametrization.json", "parametrization.md", "parametrization.tex",
    ]  # fmt: skip
    held = json.loads((folder / "parametrization.json").read_text())
    assert [(row["labels"], row["n"]) for row in held["rows"]] == [(["free"], 2), (["mlp"], 2)]
    assert held["rows"][1]["paper"] == {"mean": 80.1, "std": 0.6}
    trials = (folder / "cora" / "trials.jsonl").read_bytes()
    shown = gcond(*command, "--so-far", "--json")
    assert json.loads(shown.out)["tables"][0]["rows"] == held["rows"]
    assert (folder / "cora" / "trials.jsonl").read_bytes() == trials


def test_so_far_of_nothing_makes_nothing(gcond, workspace, tiny):
    done = gcond("reproduce", "nas", "--datasets", "cora", "--quick", "--so-far", "-o", "nowhere")
    assert done.code == 0, done.err
    assert "are in" not in done.out
    assert not (workspace.folder / "nowhere").exists()


def test_the_papers_settings_are_used_when_asked_for(gcond, workspace, tiny):
    command = ("reproduce", "parametrization", "--datasets", "cora", "--quick", "--workers", "1", "-o", "out")
    done = gcond(*command, "--settings", "paper")
    assert done.code == 0, done.err
    made = [CondensedGraph.load(path).provenance for path in (workspace.folder / "out" / "cora" / "graphs").iterdir()]
    assert {graph.settings["lr_features"] for graph in made} == {1e-4}
    assert {graph.settings["probe_every"] for graph in made} == {0}


@pytest.mark.slow
def test_ray_gives_the_same_rows(gcond, workspace, tiny):
    rows = {}
    for engine in ("local", "ray"):
        command = ("reproduce", "parametrization", "nas", "--datasets", "cora", "--quick", "--workers", "2", "--json")
        done = gcond(*command, "--engine", engine, "-o", engine)
        assert done.code == 0, done.err
        tables = json.loads(done.out)["tables"]
        rows[engine] = [row for table in tables for row in table["rows"] if "seconds" not in row["labels"][-1]]
    assert len(rows["ray"]) == 2 + 3 * 3 + 1
    assert rows["ray"] == rows["local"]
