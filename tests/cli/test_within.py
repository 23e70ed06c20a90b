"""``--within`` and ``--threads``, from the command line to the file and what is said of it."""

from __future__ import annotations

import json

import pytest
import torch

from gcond.callbacks.checkpoint import checkpoint_of
from gcond.callbacks.deadline import OUT_OF_TIME, Deadline
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.graph.source_graph import SourceGraph
from gcond.methods.condense import condense

QUICK = {"epochs": 9, "outer": 2, "inner": 1, "probe_every": 2, "structure_hidden": 8, "init": "sample", "patience": 0}
QUICK |= {"probe_share": 0.99}
SET = ("--set", *(f"{key}={value}" for key, value in QUICK.items()))
OUT = "new.safetensors"


@pytest.fixture
def slow(monkeypatch):
    """Time is up after the third epoch, whatever the clock says."""

    def fits(self, run, more):
        return self.epochs_seen < 3

    def seen(self, run):
        self.epochs_seen = run.epoch
        before(self, run)

    before = Deadline.on_epoch
    monkeypatch.setattr(Deadline, "epochs_seen", 0, raising=False)
    monkeypatch.setattr(Deadline, "_fits", fits)
    monkeypatch.setattr(Deadline, "on_epoch", seen)


def test_a_run_that_ends_in_time_says_so_and_how_to_make_it_again(workspace, gcond, slow):
    said = gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, "--within", "60s", *SET)
    assert said.code == 0, said.err
    made = CondensedGraph.load(OUT).provenance
    assert made.ended == OUT_OF_TIME
    assert len(made.history["loss"]) == 3
    assert f"3 of 9, {OUT_OF_TIME}" in said.out
    assert not checkpoint_of(workspace.folder / OUT).exists()
    assert made.history["probe_epoch"] == [0, 2]  # there was no time for a last look
    start, later = made.history["probe"]
    kept = 2 if later > start else 0  # the start has to be beaten
    assert f"epochs={kept} with init=sample" in said.out
    shown = gcond("inspect", OUT)
    assert f"epochs={kept} with init=sample" in shown.out
    again = condense(SourceGraph.load(workspace.source), nodes=6, **QUICK | {"epochs": kept})
    assert again.sha256 == CondensedGraph.load(OUT).sha256


def test_json_names_the_end_only_where_the_clock_was_it(workspace, gcond, slow):
    late = gcond("condense", workspace.source, "--nodes", 6, "-o", OUT, "--within", "60s", "--json", *SET)
    assert json.loads(late.out)["ended"] == OUT_OF_TIME
    whole = gcond("condense", workspace.source, "--nodes", 6, "-o", "whole.safetensors", "--json", *SET)
    assert "ended" not in json.loads(whole.out)


@pytest.mark.parametrize("command", ["condense", "grow"])
def test_what_is_no_time_is_refused_in_the_words_of_the_command_line(command, workspace, gcond):
    on = ("--on", workspace.source) if command == "grow" else ()
    said = gcond(command, "small.safetensors" if on else workspace.source, *on, "--nodes", 9, "--within", "soon")
    assert said.code == 2
    assert (
        said.err == "gcond: --within soon is not a time: write for example --within 60s, --within 2min or --within 1h\n"
    )


def test_methods_that_do_not_learn_say_where_it_took_longer(workspace, gcond):
    command = ("condense", workspace.source, "--nodes", 6, "--method", "random")
    short = gcond(*command, "-o", OUT, "--within", "0.0001")
    assert short.code == 0
    assert "note: random took" in short.err
    assert CondensedGraph.load(OUT).provenance.ended == ""
    enough = gcond(*command, "-o", "other.safetensors", "--within", "1h")
    assert "took" not in enough.err


@pytest.mark.parametrize(("asked", "used"), [((), 1), (("--threads", 2), 2)])
def test_the_file_says_with_how_many_threads_it_was_made(workspace, gcond, asked, used):
    torch.set_num_threads(1)
    assert gcond("condense", workspace.source, "--nodes", 6, "--method", "random", "-o", OUT, *asked).code == 0
    assert CondensedGraph.load(OUT).provenance.threads == used
    shown = gcond("inspect", OUT).out
    assert any(line.split() == ["threads", str(used)] for line in shown.splitlines())
    assert json.loads(gcond("inspect", OUT, "--json").out)["threads"] == used
