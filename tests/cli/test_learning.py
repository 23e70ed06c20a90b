"""Commands that learn: recipes, checkpoints, interruptions, logs and growing, on a tiny graph."""

from __future__ import annotations

import contextlib
import json
import sys

import pytest
import torch

from cli.workspace import build_tiny
from gcond.callbacks.checkpoint import checkpoint_of
from gcond.cli.learning_options import learned_facts
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.graph.source_graph import SourceGraph
from gcond.methods.condense import condense
from gcond.methods.grow import grow
from gcond.runtime.tensor_file import read_tensors

QUICK = {"epochs": 4, "outer": 2, "inner": 1, "probe_every": 2, "structure_hidden": 8}
SET = ("--set", *(f"{key}={value}" for key, value in QUICK.items()))
# Probes after every epoch, however much they are of the work, and no patience.
STOP = ("probe_every=1", "probe_share=0.99", "patience=1")
OUT = "new.safetensors"


def parsed(outcome):
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("\n") == 1
    return json.loads(outcome.out)


@pytest.fixture
def interrupted(workspace, gcond, monkeypatch):
    """A condensation that Ctrl-C ended after its second epoch, with a checkpoint every so many seconds."""

    def run(*more, every=0):
        with monkeypatch.context() as patch:
            epochs = []

            def stop(self, run):
                epochs.append(run.epoch)
                if len(epochs) == 2:
                    raise KeyboardInterrupt

            patch.setattr("gcond.callbacks.Progress.on_epoch", stop)
            return gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, "--checkpoint-every", every, *more)

    return run


def test_condensing_says_what_the_library_makes(workspace, gcond):
    made = parsed(gcond("condense", workspace.source, "--nodes", 6, "--seed", 3, "--json", *SET))
    assert set(made) == {"out", "method", "nodes", "edges", "seconds", "cpu_seconds", "peak_rss_mb", "settings"}
    assert (made["out"], made["method"], made["nodes"]) == ("tiny-gcond-6.safetensors", "gcond", 6)
    expected = condense(SourceGraph.load(workspace.source), nodes=6, seed=3, **QUICK)
    assert CondensedGraph.load(made["out"]).sha256 == expected.sha256
    assert made["settings"]["epochs"] == 4
    assert not checkpoint_of(workspace.folder / made["out"]).exists()


def test_people_are_told_how_it_went(workspace, gcond):
    shown = gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET).out
    history = CondensedGraph.load(OUT).provenance.history
    assert "epochs" in shown
    assert f"{100 * max(history['probe']):.1f} % validation accuracy" in shown
    assert "stopped early" not in shown
    assert "retries" not in shown
    argv = ("condense", workspace.source, "--nodes", 6, "-o", OUT, "--force", *SET, "epochs=50", *STOP)
    early = gcond(*argv)
    ran = len(CondensedGraph.load(OUT).provenance.history["loss"])
    assert ran < 50
    assert f"{ran} of 50, stopped early" in early.out
    assert f"note: stopped after epoch {ran} of 50: the validation probe has not improved" in early.err
    assert gcond(*argv, "--quiet").err == ""


def test_facts_of_a_history(workspace):
    made = CondensedGraph.load(workspace.small).provenance
    assert learned_facts(made) == {}
    made.settings["epochs"] = 9
    made.history.update(loss=[1.0] * 9)
    assert learned_facts(made) == {"epochs": "9"}
    made.history.update(probe=[0.7, 0.8, 0.8], probe_epoch=[0, 4, 8], retried_epoch=[3, 3, 7], loss=[1.0] * 8)
    assert learned_facts(made) == {
        "epochs": "8 of 9, stopped early",
        "best probe": "80.0 % validation accuracy after epoch 8",
        "retries": "3 at half the rates, after numbers that were not finite in epoch 3, 7",
    }
    made.history.update(probe=[0.7, 0.6, 0.5])
    assert learned_facts(made)["best probe"] == "70.0 % validation accuracy at the start"
    assert learned_facts(made)["kept"] == "the start itself: nothing that was learned from it probed clearly better"
    made.history.update(probe=[0.6, 0.6, 0.5])  # to be equalled is not to be beaten
    assert learned_facts(made)["kept"].startswith("the start itself")
    made.history.update(probe=[0.6, 0.6, 0.7])
    assert "kept" not in learned_facts(made)


def test_a_start_that_nothing_beat_is_kept_and_said(workspace, gcond, monkeypatch):
    worse = iter([0.9, *[0.5] * 99])
    monkeypatch.setattr("gcond.matching.probe.Probe.accuracy", lambda self, view: next(worse))
    words = ("90.0 % validation accuracy at the start", "the start itself: nothing that was learned from init=sample")
    plain = ("init=sample", "teacher=none", "delta=0")
    argv = ("condense", workspace.source, "--nodes", 6, "-o")
    shown = gcond(*argv, OUT, *SET, *plain).out
    assert all(each in shown for each in words)
    assert all(each in gcond("inspect", OUT).out for each in words)
    assert gcond(*argv, "start.safetensors", *SET, *plain, "epochs=0").code == 0
    assert CondensedGraph.load(OUT).sha256 == CondensedGraph.load("start.safetensors").sha256
    assert "the start itself" not in gcond("inspect", "start.safetensors").out


def test_edges_that_validation_did_not_want_are_said(workspace, gcond, monkeypatch):
    monkeypatch.setattr("gcond.matching.probe.Probe.accuracy", lambda self, view: 0.5)
    words = "validation chose no edges: models train on A' = I"
    assert words in gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET).out
    assert CondensedGraph.load(OUT).num_edges == 0
    assert words in gcond("inspect", OUT).out
    argv = ("condense", workspace.source, "--nodes", 6, "-o", OUT, "--force", *SET, "probe_every=0", "epochs=0")
    even = gcond(*argv, "structure=free").out  # weights that are all the same: none is above twice the mean
    assert "no weight of A' is above twice the mean: models train on A' = I" in even


def test_a_structure_without_an_edge_is_said(workspace, gcond):
    words = "no weight of A' is above delta=0.999: models train on A' = I"
    argv = ("condense", workspace.source, "--nodes", 6, "-o", OUT, "--force", *SET)
    assert words in gcond(*argv, "delta=0.999").out
    assert words in gcond("inspect", OUT).out
    assert words in gcond("grow", OUT, "--on", workspace.source, "--nodes", 7, "--force").out
    kept = gcond(*argv, "delta=0").out + gcond("inspect", OUT).out
    assert "models train on A' = I" not in kept
    for method in ("gcond-x", "random"):  # no edges, and none were to be
        options = ("epochs=1",) if method == "gcond-x" else ()
        plain = gcond(*argv[: -len(SET)], "--method", method, *(("--set", *options) if options else ()))
        assert plain.code == 0
        assert "models train on" not in plain.out + gcond("inspect", OUT).out


def test_recipes_and_settings_on_top(workspace, gcond):
    lines = "".join(f"{key} = {value}\n" for key, value in QUICK.items())
    recipe = workspace.file("mine.toml", f"[gcond]\n{lines}")
    argv = ("condense", workspace.source, "--nodes", 6, "--recipe", recipe, "--json")
    assert parsed(gcond(*argv, "-o", "a.safetensors"))["settings"].items() >= QUICK.items()
    changed = parsed(gcond(*argv, "-o", "b.safetensors", "--set", "epochs=2"))["settings"]
    assert changed.items() >= (QUICK | {"epochs": 2}).items()


def test_a_recipe_by_name(workspace, gcond):
    argv = ("condense", workspace.source, "--nodes", 6, "--method", "gcond-x", "--recipe", "cora", "--json")
    made = parsed(gcond(*argv, "--set", "epochs=1", "outer=1"))["settings"]
    assert (made["epochs"], made["outer"], made["inner"], made["lr_features"]) == (1, 1, 15, 1e-4)


def test_an_interruption_says_how_to_go_on_and_going_on_gives_the_same_graph(workspace, gcond, interrupted):
    whole = condense(SourceGraph.load(workspace.source), nodes=6, **QUICK)
    stopped = interrupted(*SET)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err == f"gcond: interrupted: the same command with --resume goes on from '{OUT}.checkpoint'\n"
    argv = ("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET)
    refused = gcond(*argv)
    assert refused.code == 2
    assert "--resume" in refused.err
    assert "--force" in refused.err
    other = gcond(*argv, "--resume", "--seed", 1)
    assert other.code == 2
    assert "of another run" in other.err
    resumed = gcond(*argv, "--resume")
    assert resumed.code == 0
    assert "note: going on after epoch 2 of at most 4\n" in resumed.err
    assert CondensedGraph.load(OUT).sha256 == whole.sha256
    assert not checkpoint_of(workspace.folder / OUT).exists()


def test_an_interruption_before_the_first_checkpoint(workspace, gcond, monkeypatch):
    """While the start is made, so that there is not even that to write down."""

    def stop(task, init):
        raise KeyboardInterrupt

    monkeypatch.setattr("gcond.methods.gradient_matching.initial_features", stop)
    before = workspace.contents()
    stopped = gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET, "init=sample")
    assert stopped.code == 130
    assert stopped.err == (
        "gcond: interrupted before the first checkpoint: nothing was kept, so start the same command again\n"
    )
    assert workspace.contents() == before


def test_an_old_checkpoint_is_not_taken_for_a_new_one(workspace, interrupted):
    assert interrupted(*SET).code == 130
    assert read_tensors(checkpoint_of(workspace.folder / OUT))[1]["run"]["epoch"] == 2
    again = interrupted(*SET, "--force", "--seed", 7, every=1000)
    assert "--resume goes on" in again.err
    assert read_tensors(checkpoint_of(workspace.folder / OUT))[1]["run"]["epoch"] == 0


def test_force_starts_anew(workspace, gcond, interrupted):
    interrupted(*SET)
    outcome = gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, "--force", "--seed", 1, *SET)
    assert outcome.code == 0
    assert "going on" not in outcome.err
    expected = condense(SourceGraph.load(workspace.source), nodes=6, seed=1, **QUICK)
    assert CondensedGraph.load(OUT).sha256 == expected.sha256


def test_resuming_where_nothing_was_begun_just_starts(workspace, gcond):
    outcome = gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, "--resume", *SET)
    assert outcome.code == 0
    assert outcome.err == ""


def test_the_checkpoint_stays_until_the_result_is_safe(workspace, gcond, monkeypatch):
    def fail(self, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(CondensedGraph, "save", fail)
    argv = ("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET)
    assert "--resume goes on" in gcond(*argv).err
    assert checkpoint_of(workspace.folder / OUT).exists()


def test_what_does_not_learn_passes_over_the_options(workspace, gcond):
    argv = ("condense", workspace.source, "--nodes", 6, "--method", "random", "-o", OUT)
    outcome = gcond(*argv, "--resume", "--checkpoint-every", 5, "--log", "events")
    assert outcome.code == 0
    assert outcome.err == "note: random has no steps to log, so 'events' is left alone\n"
    workspace.file(f"{OUT}.checkpoint", "precious")
    assert gcond(*argv, "--force").code == 0
    assert (workspace.folder / f"{OUT}.checkpoint").read_text() == "precious"


def test_logging(workspace, gcond):
    pytest.importorskip("tensorboard")
    argv = ("condense", workspace.source, "--nodes", 6, "-o", OUT, "--log", "events", *SET)
    assert gcond(*argv).code == 0
    assert list((workspace.folder / "events").glob("events.out.*"))


def test_logging_without_the_extra(workspace, gcond, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    before = workspace.contents()
    outcome = gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, "--log", "events", *SET)
    assert (outcome.code, outcome.out) == (2, "")
    assert "pip install 'gcond[tensorboard]'" in outcome.err
    assert workspace.contents() == before


def test_growing(workspace, gcond):
    assert gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET).code == 0
    small, source = CondensedGraph.load(OUT), SourceGraph.load(workspace.source)
    found = parsed(gcond("grow", OUT, "--on", workspace.source, "--nodes", 9, "--seed", 2, "--json"))
    assert (found["out"], found["nodes"], found["method"]) == ("new-grown-9.safetensors", 9, "gcond")
    assert found["grown_from"] == small.sha256
    grown = CondensedGraph.load(found["out"])
    assert grown.sha256 == grow(small, on=source, nodes=9, seed=2).sha256
    assert torch.equal(grown.x[:6], small.x)
    shown = gcond("grow", OUT, "--on", workspace.source, "--nodes", 9, "-o", "b.safetensors", "--set", "epochs=2").out
    assert "9, 3 of them new" in shown
    assert CondensedGraph.load("b.safetensors").provenance.settings["epochs"] == 2
    assert gcond("evaluate", found["out"], "--on", workspace.source, "--runs", 1, "--set", "epochs=2").code == 0
    inspected = parsed(gcond("inspect", found["out"], "--json"))
    assert inspected["grown_from"] == small.sha256
    assert inspected["parent"]["history"] == small.provenance.history
    again = ("grow", found["out"], "--on", workspace.source, "--nodes", 12, "--seed", 8, "--set", "epochs=1")
    twice = parsed(gcond(*again, "--json"))["out"]
    shown = " ".join(gcond("inspect", twice).out.split())
    assert f"sha256 {found['grown_from'][:12]}…, {small.num_nodes} nodes, seed 0, 4 epochs from" in shown
    assert shown.index("sha256 ", shown.index("grown from")) < shown.index(found["grown_from"][:12])


def test_growing_uses_the_setting_of_the_file(workspace, gcond):
    argv = ("condense", workspace.source, "--nodes", 6, "-o", OUT, "--setting", "inductive", *SET)
    assert gcond(*argv).code == 0
    assert gcond("grow", OUT, "--on", workspace.source, "--nodes", 9).code == 0


def test_growing_in_place(workspace, gcond):
    assert gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET).code == 0
    small = CondensedGraph.load(OUT)
    assert gcond("grow", OUT, "--on", workspace.source, "--nodes", 9, "-o", OUT, "--force").code == 0
    grown = CondensedGraph.load(OUT)
    assert (grown.num_nodes, grown.provenance.grown_from) == (9, small.sha256)


def test_growing_refuses(workspace, gcond):
    assert gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET).code == 0
    build_tiny(name="other", extra_edges=[(0, 1), (1, 0)]).save(workspace.folder / "other.safetensors")
    before = workspace.contents()
    for argv, words in {
        ("--on", workspace.source, "--nodes", 6): "has 6 nodes already",
        ("--on", workspace.source, "--nodes", 31): "more than the 30 labelled",
        ("--on", "other.safetensors", "--nodes", 9): "'other' is not the graph this was made from ('tiny')",
        ("--on", workspace.source, "--nodes", 9, "-o", OUT): "exists already",
        ("--on", workspace.source, "--nodes", 9, "-o", workspace.source, "--force"): "is the source itself",
        ("--on", workspace.source, "--nodes", 9, "--set", "schedule=joint"): "of the structure",
    }.items():
        outcome = gcond("grow", OUT, *argv)
        assert (outcome.code, outcome.out) == (2, ""), argv
        assert words in outcome.err
        assert outcome.err.count("\n") == 1
    assert workspace.contents() == before


def test_a_growth_can_be_interrupted_too(workspace, gcond, monkeypatch):
    assert gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET).code == 0
    argv = ("grow", OUT, "--on", workspace.source, "--nodes", 9)
    assert gcond(*argv, "-o", "whole.safetensors").code == 0
    with monkeypatch.context() as patch:

        def stop(self, run):
            if run.epoch == 2:
                raise KeyboardInterrupt

        patch.setattr("gcond.callbacks.Progress.on_epoch", stop)
        stopped = gcond(*argv, "--checkpoint-every", 0)
    assert stopped.code == 130
    assert "--resume goes on from 'new-grown-9.safetensors.checkpoint'" in stopped.err
    assert gcond(*argv, "--resume").code == 0
    whole, resumed = CondensedGraph.load("whole.safetensors"), CondensedGraph.load("new-grown-9.safetensors")
    assert resumed.sha256 == whole.sha256


def test_the_bar_keeps_one_piece_of_work(workspace, gcond, monkeypatch):
    """A bar that started anew at every loss could not tell the time left."""
    seen = []

    @contextlib.contextmanager
    def progress(self, what):
        yield lambda what, done, total, detail="": seen.append((what, done, total, detail))

    monkeypatch.setattr("gcond.cli.output.Voice.progress", progress)
    assert gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, *SET).code == 0
    assert [(what, done, total) for what, done, total, _ in seen] == [("gcond", i + 1, 8) for i in range(8)]
    assert all("loss" in detail and "val" in detail for *_, detail in seen)
