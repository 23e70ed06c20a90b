"""``gcond tune`` on a tiny graph."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

import gcond as library
from cli.workspace import build_tiny
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.graph.source_graph import SourceGraph
from gcond.jobs import training_job
from gcond.results import Tuning

pytest.importorskip("optuna")

GRID = ("--grid", "hidden=3,8", "layers=1..2")
QUICK = (*GRID, "--trials", 9, "--batch", 4, "--top", 3, "--final-runs", 2, "--workers", 1, "--set", "epochs=9")


def numbers(made: dict) -> tuple:
    """What a search found, without times."""
    trials = [(one["model"], one["settings"], one["state"], one["accuracies"]) for one in made["trials"]]
    return trials, [(one["trial"], one["confirmed"], one["val"], one["test"]) for one in made["finalists"]]


def test_it_writes_what_the_library_finds(workspace, gcond):
    pytest.importorskip("matplotlib")
    outcome = gcond("tune", workspace.small, "--on", workspace.source, "--json", *QUICK)
    assert outcome.code == 0, outcome.err
    made = json.loads(outcome.out)
    folder = workspace.folder / "small-tune"
    assert sorted(path.name for path in folder.iterdir()) == ["trials.jsonl", "tune.json", "tune.png"]
    assert (folder / "tune.png").read_bytes().startswith(b"\x89PNG")
    assert (made.pop("out"), made.pop("saved"), made.pop("same_source")) == ("small-tune", False, True)
    assert made.pop("next").startswith(f"gcond train {workspace.small} --on {workspace.source} --model gcn --set ")
    assert json.loads((folder / "tune.json").read_text()) == made
    expected = library.tune(
        CondensedGraph.load(workspace.small),
        on=SourceGraph.load(workspace.source),
        grid={"hidden": [3, 8], "layers": "1..2"},
        trials=9,
        batch=4,
        top=3,
        final_runs=2,
        epochs=9,
    )
    assert numbers(made) == numbers(json.loads(json.dumps(expected.to_json())))
    assert Tuning.load(folder).to_json()["command"] == made["command"]
    assert made["command"].startswith("gcond tune ")
    for key in ("spearman", "kendall", "search_cpu_seconds", "whole_estimate_cpu_seconds", "condense_cpu_seconds"):
        assert key in made


def test_people_see_the_table_and_the_next_command(workspace, gcond):
    shown = gcond("tune", workspace.small, "--on", workspace.source, *QUICK)
    assert shown.code == 0, shown.err
    for words in (
        "searched on 6 condensed nodes",
        "winner",
        "usual",
        "Spearman",
        "Kendall",
        "an estimate",
        "small-tune",
    ):
        assert words in shown.out
    assert "given up on the way" in shown.out


def test_the_next_command_trains_by_what_was_found(workspace, gcond):
    made = json.loads(gcond("tune", workspace.small, "--on", workspace.source, "--json", *QUICK).out)
    trained = gcond(*made["next"].split()[1:], "--json")
    assert trained.code == 0, trained.err
    winner, model = made["finalists"][0], library.load_model(workspace.folder / "model.safetensors")
    assert (asdict(model.model), model.record.recipe) == (winner["settings"], winner["recipe"])
    assert model.record.val_accuracy == winner["confirmed"][0]


def test_saved_it_is_the_file_s_recommendation(workspace, gcond):
    found = gcond("tune", workspace.small, "--on", workspace.source, "--save", "--json", *QUICK)
    assert found.code == 0, found.err
    made = json.loads(found.out)
    assert made["saved"]
    assert made["next"].endswith("--recipe recommended -o model.safetensors")
    (kept,) = CondensedGraph.load(workspace.small).provenance.recommendations
    assert kept.settings == made["finalists"][0]["settings"]
    text = " ".join(gcond("inspect", workspace.small).out.split())
    assert "recommended gcn:" in text
    trained = gcond(*made["next"].split()[1:], "--json")
    assert trained.code == 0, trained.err
    assert json.loads(trained.out)["recipe"] == made["finalists"][0]["recipe"]
    whole = gcond("evaluate", "--whole", workspace.source, "--recipe", workspace.small, "--runs", 1, "--json")
    assert json.loads(whole.out)["recipe"] == made["finalists"][0]["recipe"]


def test_without_the_whole_graph(workspace, gcond):
    """What a search is for needs no training on the whole graph; who asks for it later finds all else done."""
    found = gcond("tune", workspace.small, "--on", workspace.source, "--no-check", "--json", *QUICK)
    assert found.code == 0, found.err
    made = json.loads(found.out)
    trials = (workspace.folder / "small-tune" / "trials.jsonl").read_text().splitlines()
    assert all(json.loads(line)["condensed"] for line in trials)
    assert all((one["val"], one["test"], one["mean"]) == ([], [], None) for one in made["finalists"])
    assert all(len(one["confirmed"]) == len(one["confirmed_test"]) == 2 for one in made["finalists"])
    assert (made["favourite"], made["agreement_n"], made["finalists_cpu_seconds"]) == (None, 0, 0)
    shown = gcond("tune", workspace.small, "--on", workspace.source, "--no-check", *QUICK).out
    assert "none on the whole graph" in shown
    assert "test %, condensed" in shown
    assert "test %, whole" not in shown
    checked = json.loads(gcond("tune", workspace.small, "--on", workspace.source, "--json", *QUICK).out)
    assert [one["confirmed"] for one in checked["finalists"]] == [one["confirmed"] for one in made["finalists"]]
    after = (workspace.folder / "small-tune" / "trials.jsonl").read_text().splitlines()
    assert after[: len(trials)] == trials
    assert all(json.loads(line)["condensed"] is None for line in after[len(trials) :])


def test_another_metric(workspace, gcond):
    found = gcond("tune", workspace.small, "--on", workspace.source, "--metric", "macro-f1", *QUICK)
    assert found.code == 0, found.err
    assert "validation macro-f1 %, in the search" in found.out
    assert Tuning.load(workspace.folder / "small-tune").metric == "macro-f1"
    twice = gcond("tune", workspace.small, "--on", workspace.source, "--metric", "macro-f1", "--set", "metric=accuracy")
    assert twice.code == 2
    assert "the metric is given twice" in twice.err


def test_the_whole_graph(workspace, gcond):
    found = gcond("tune", "--whole", workspace.source, "--model", "gcn,sgc", "--json", *QUICK)
    assert found.code == 0, found.err
    made = json.loads(found.out)
    assert made["out"] == "tiny-tune"
    assert made["condensed"] is None
    assert made["next"].startswith(f"gcond train {workspace.source} --model ")
    assert [trial["model"] for trial in made["trials"][:2]] == ["gcn", "sgc"]
    shown = gcond("tune", "--whole", workspace.source, "--model", "gcn,sgc", *QUICK)
    assert "searched on the whole graph" in shown.out
    assert "Spearman" not in shown.out


def test_the_page_has_a_section(workspace, gcond):
    pytest.importorskip("jinja2")
    assert gcond("tune", workspace.small, "--on", workspace.source, *QUICK).code == 0
    assert gcond("report", "small-tune", workspace.small, "-o", "page.html").code == 0
    page = (workspace.folder / "page.html").read_text()
    assert "Searching for hyper-parameters" in page
    assert "9 configurations of GCN were tried on 6 condensed nodes" in page
    drawn = gcond("plot", "small-tune", "-o", "figures")
    assert drawn.code == 0, drawn.err
    assert (workspace.folder / "figures" / "small-tune-tuning.png").exists()


def test_the_same_command_goes_on(workspace, gcond, monkeypatch):
    argv = ("tune", workspace.small, "--on", workspace.source, "-o", "run", "--json", *QUICK)
    original, calls = training_job.train, []

    def stop(shared, batch, tell):
        if len(calls) == 11:
            raise KeyboardInterrupt
        calls.append(batch)
        return original(shared, batch, tell)

    with monkeypatch.context() as patch:
        patch.setattr("gcond.jobs.runner.train", stop)
        stopped = gcond(*argv)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.endswith("gcond: interrupted: the same command goes on from what 'run' has\n")
    rows = (workspace.folder / "run" / "trials.jsonl").read_text().splitlines()
    so_far = json.loads(gcond(*argv, "--so-far").out)
    assert 0 < len(so_far["trials"]) < 9
    assert not (workspace.folder / "run" / "tune.png").exists()
    shown = gcond(*(word for word in argv if word != "--json"), "--so-far").out
    assert "kept in" in shown
    assert "wrote" not in shown
    resumed = gcond(*argv)
    assert resumed.code == 0, resumed.err
    assert (workspace.folder / "run" / "trials.jsonl").read_text().splitlines()[: len(rows)] == rows
    fresh = gcond("tune", workspace.small, "--on", workspace.source, "-o", "other", "--json", *QUICK)
    assert numbers(json.loads(resumed.out)) == numbers(json.loads(fresh.out))


@pytest.mark.slow
def test_killed_in_the_middle_it_has_all_trials_when_started_again(workspace, gcond):
    """Kill -9 whenever a few more trainings are written, until it ends by itself."""
    words = ("tune", workspace.small, "--on", workspace.source, *QUICK, "--json", "-q")
    log = workspace.folder / "run" / "trials.jsonl"
    argv = [sys.executable, "-m", "gcond", *map(str, words), "-o", "run"]
    killed = 0
    for wanted in (3, 9, 15):
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
        while process.poll() is None and not (log.exists() and len(log.read_bytes().splitlines()) >= wanted):
            time.sleep(0.002)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait()
    assert killed
    finished = subprocess.run(argv, capture_output=True, text=True, check=True)
    made = json.loads(finished.stdout)
    assert len(made["trials"]) == 9
    rows = [json.loads(row) for row in log.read_text().splitlines() if row.endswith("}")]
    assert len({(row["key"], row["seed"]) for row in rows}) == len(rows), "nothing is done twice"
    assert numbers(made) == numbers(json.loads(gcond(*words, "-o", "other").out))


def test_without_matplotlib_there_is_no_picture(workspace, gcond, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = gcond("tune", workspace.small, "--on", workspace.source, "-o", "run", *QUICK)
    assert outcome.code == 0, outcome.err
    assert "note: the picture needs matplotlib, so there is none" in outcome.err
    assert not (workspace.folder / "run" / "tune.png").exists()


def test_a_file_that_changed_meanwhile_is_left_alone(workspace, gcond, monkeypatch):
    from gcond.evaluation.tuning import hyperparameter_search as module

    real = module.tune

    def slow(*arguments, **options):
        found = real(*arguments, **options)
        library.condense(SourceGraph.load(workspace.source), method="random", nodes=9).save(workspace.small)
        return found

    monkeypatch.setattr(module, "tune", slow)
    found = gcond("tune", workspace.small, "--on", workspace.source, "--save", "--json", *QUICK)
    assert found.code == 0
    assert "changed meanwhile" in found.err
    assert not json.loads(found.out)["saved"]
    assert CondensedGraph.load(workspace.small).provenance.recommendations == ()


ON = ("SMALL", "--on", "SOURCE")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "either a condensed file with --on SOURCE, or --whole SOURCE"),
        (("SMALL", "--whole", "SOURCE"), "either a condensed file"),
        (("SMALL",), "add --on SOURCE"),
        (("--whole", "SOURCE", "--on", "SOURCE"), "--on goes with a condensed file"),
        (("--whole", "SOURCE", "--save"), "--save writes into a condensed file"),
        ((*ON, "--trials", "0"), "0 trials are too few: use --trials 1 or more"),
        ((*ON, "--trials", "many"), "--trials cannot be 'many'"),
        ((*ON, "--runs", "0"), "0 runs are too few"),
        ((*ON, "--top", "0"), "0 top are too few"),
        ((*ON, "--final-runs", "0"), "use --final-runs 1 or more"),
        ((*ON, "--batch", "0"), "use --batch 1 or more"),
        ((*ON, "--model", "gnc"), "unknown model 'gnc'"),
        ((*ON, "--model", ","), "--model names no model"),
        ((*ON, "--model", "all", "--trials", "3"), "--trials 3 is too small for 7 models"),
        ((*ON, "--grid", "hidden"), "--grid takes setting=value,value"),
        ((*ON, "--grid", "hiden=3"), "did you mean 'hidden'"),
        ((*ON, "--grid", "lr=0.1..0.01"), "no range of 'lr'"),
        ((*ON, "--grid", "hidden=2..4,8"), "a range beside other values"),
        ((*ON, "--grid", "dropout=0..1"), "dropout must be at least 0 and below 1"),
        ((*ON, "--grid", "layers=1", "hidden=3"), "one layer has none"),
        ((*ON, "--set", "epoch=3"), "did you mean 'epochs'"),
        ((*ON, "--set", "seed=3"), "no setting 'seed'"),
        ((*ON, "--set", "lr=1", "--grid", "lr=1,2"), "'lr' is held at 1.0"),
        ((*ON, "-o", "small.safetensors"), "is a file: give a folder"),
        ((*ON, "-o", "no/where"), "does not exist"),
        ((*ON, "--engine", "rey"), "choose local or ray"),
        ((*ON, "--workers", "0"), "--workers 0"),
        ((*ON, "--address", "1.2.3.4:5"), "is for Ray"),
        ((*ON, "--so-far"), "nothing is done yet, so leave --so-far out"),
        (("nowhere.safetensors", "--on", "SOURCE"), "nowhere.safetensors"),
        (("SOURCE", "--on", "SOURCE"), "a condensed graph is needed here"),
        (("SMALL", "--on", "nowhere"), "nowhere"),
    ],
)
def test_refusals_leave_nothing_behind(workspace, gcond, words, message):
    places = {"SMALL": str(workspace.small), "SOURCE": str(workspace.source)}
    before = workspace.contents()
    outcome = gcond("tune", *[places.get(word, word) for word in words])
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert workspace.contents() == before


def test_storages_that_are_none_are_refused(workspace, gcond):
    argv = ("tune", workspace.small, "--on", workspace.source, "-o", "run", *QUICK)
    assert gcond(*argv).code == 0
    kept = workspace.contents()
    for more, message in (
        (("--seed", 1), "holds a search with --seed 0"),
        (("--no-prune",), "holds a search with configurations given up on the way"),
        (("--model", "sgc"), "holds a search with another space"),
        (("--set", "epochs=9", "patience=3"), "holds a search with other settings"),
    ):
        refused = gcond(*argv, *more)
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert message in refused.err
    build_tiny(name="another", extra_edges=((0, 1), (1, 0))).save("another.safetensors")
    refused = gcond("tune", "--whole", "another.safetensors", "-o", "run", *QUICK)
    assert refused.code == 2
    assert "on another graph, 'tiny'" in refused.err
    Path("another.safetensors").unlink()
    assert workspace.contents() == kept
    log = workspace.folder / "run" / "trials.jsonl"
    log.write_text(log.read_text().replace('"val": 0', '"val": 7', 1))
    damaged = gcond(*argv)
    assert (damaged.code, damaged.out) == (2, "")
    assert "delete the line to run that trial again" in damaged.err
    log.write_bytes(os.urandom(200))
    foreign = gcond(*argv)
    assert foreign.code == 2
    assert "is not a file of trials" in foreign.err


def test_saving_into_what_cannot_keep_it_is_refused_first(workspace, gcond):
    def forget(tensors, metadata):
        metadata["provenance"] = None

    bare = workspace.tampered(workspace.small, forget)
    before = workspace.contents()
    refused = gcond("tune", bare, "--on", workspace.source, "--save", *QUICK)
    assert refused.code == 2
    assert "does not say how it was made" in refused.err
    build_tiny(extra_edges=((0, 1), (1, 0))).save("another.safetensors")
    refused = gcond("tune", workspace.small, "--on", "another.safetensors", "--save", "-q", *QUICK)
    assert refused.code == 2
    assert "was made from another graph" in refused.err
    Path("another.safetensors").unlink()
    assert workspace.contents() == before


def test_optuna_is_asked_for_in_one_sentence(workspace, gcond, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    missing = gcond("tune", workspace.small, "--on", workspace.source)
    assert (missing.code, missing.out) == (2, "")
    assert missing.err == "gcond: tuning needs Optuna: pip install 'gcond[tune]'\n"
