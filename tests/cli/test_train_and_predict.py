"""``gcond train`` and ``gcond predict``: what they write, and what they refuse without leaving anything behind."""

from __future__ import annotations

import csv
import dataclasses
import errno
import json
import os
import pickle
import shlex

import pytest
import safetensors.torch
import torch
from pyarrow import parquet

from cli.workspace import build_tiny
from gcond.evaluation.train import train
from gcond.training.trained_model import load_model

BRIEF = ("--set", "epochs=15")


@pytest.fixture(scope="session")
def model_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    train(build_tiny(class_names=("ant", "bee", "cat")), epochs=5).save(path)
    return path.read_bytes()


@pytest.fixture
def model(workspace, model_bytes):
    return workspace.file("model.safetensors", model_bytes)


# --- what they do
def test_train_equals_a_run_of_evaluate(workspace, gcond):
    out = workspace.out / "model.safetensors"
    on = ("--on", workspace.source)
    found = gcond("train", workspace.small, *on, "--seed", 3, "-o", out, "--json", *BRIEF)
    assert (found.code, found.err) == (0, "")
    said = json.loads(found.out)
    scored = json.loads(gcond("evaluate", workspace.small, *on, "--seed", 3, "--runs", 1, "--json", *BRIEF).out)
    assert [said["test_accuracy"]] == scored["results"][0]["runs"]
    assert said["val_accuracy"] == pytest.approx(scored["results"][0]["val_mean"])
    assert said["out"] == str(out)
    assert (said["model"], said["seed"], said["runs"]) == ("gcn", 3, 1)
    assert said["trained_on"]["method"] == "random"
    assert load_model(out).sha256 == said["sha256"]


def test_people_are_told_what_to_do_next(workspace, gcond):
    out = workspace.out / "model.safetensors"
    found = gcond("train", workspace.source, "-o", out, "--model", "sgc", *BRIEF)
    assert found.code == 0
    assert "the whole graph tiny" in found.out
    assert f"gcond predict {out} --on {workspace.source} -o predictions.csv" in found.out
    assert gcond("train", workspace.source, "--on", workspace.source, "-o", out, "--force", *BRIEF).code == 0


def test_settings_of_training_and_model(workspace, gcond):
    out = workspace.out / "model.safetensors"
    options = ("--set", "epochs=9", "hidden=5", "dropout=0.5", "--runs", 2)
    assert gcond("train", workspace.small, "--on", workspace.source, "-o", out, *options).code == 0
    found = load_model(out)
    assert found.model.hidden == 5
    assert (found.record.recipe["epochs"], found.record.recipe["dropout"], found.record.runs) == (9, 0.5, 2)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predictions_are_a_table(suffix, workspace, gcond, model):
    out = workspace.out / f"p{suffix}"
    found = gcond("predict", model, "--on", workspace.source, "-o", out, "--labels", "--json")
    assert (found.code, found.err) == (0, "")
    said = json.loads(found.out)
    assert (said["nodes"], said["source"], said["same_source"]) == (60, "tiny", True)
    assert said["computed_on"] == "the whole graph 'tiny'"
    assert set(said["classes"]) == {"ant", "bee", "cat"}
    assert sum(said["classes"].values()) == 60
    rows = list(csv.DictReader(out.open(newline=""))) if suffix == ".csv" else parquet.read_table(out).to_pylist()
    assert list(rows[0]) == ["id", "class", "label", "probability_ant", "probability_bee", "probability_cat"]
    assert [int(row["id"]) for row in rows] == list(range(60))
    for row in rows:
        shares = {name: float(row[f"probability_{name}"]) for name in ("ant", "bee", "cat")}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
        assert row["class"] == max(shares, key=shares.get)
    graph = build_tiny()
    right = sum(row["class"] == ("ant", "bee", "cat")[label] for row, label in zip(rows, graph.y.tolist(), strict=True))
    assert right > 40
    # This file's own classes have no names, so that there is nothing to compare with.
    assert said["accuracy"] == {}


def test_nodes_of_classes_that_the_model_does_not_know_are_wrong_and_it_is_said(workspace, gcond, model):
    graph = build_tiny(class_names=("ant", "bee", "new"), extra_edges=((0, 1), (1, 0)))
    graph.save("other.safetensors")
    found = gcond("predict", model, "--on", "other.safetensors", "-o", "p.csv", "--labels", "--json")
    said = json.loads(found.out)
    strangers = int((graph.y == 2).sum())
    assert said["unknown_classes"] == {"new": strangers}
    assert not said["same_source"]
    told = f"note: {strangers} labelled nodes are of a class that the model does not know (new): they count as wrong\n"
    assert told in found.err
    rows = list(csv.DictReader((workspace.folder / "p.csv").open(newline="")))
    test = [row for row, among in zip(rows, graph.test_mask.tolist(), strict=True) if among]
    assert said["accuracy"]["test"] == pytest.approx(sum(row["class"] == row["label"] for row in test) / len(test))
    shown = gcond("predict", model, "--on", "other.safetensors", "-o", "p.csv", "--force").out
    assert "'tiny' is not the graph the model was made from" in " ".join(shown.split())
    assert "is not the graph" not in gcond("predict", model, "--on", workspace.source, "-o", "q.csv").out


def test_a_note_names_the_option(workspace, gcond):
    """A note of Python's, in the words of the command line."""
    graph = build_tiny()
    dataclasses.replace(graph, x=torch.ones_like(graph.x)).save("flat.safetensors")
    told = gcond("condense", "flat.safetensors", "--nodes", 6, "--method", "random").err
    assert "all nodes have the same features, which tell nothing: --features structural makes others" in told


def test_what_comes_next_can_be_pasted(workspace, gcond):
    """Names with spaces are quoted as a shell wants them."""
    source = workspace.source.rename(workspace.folder / "my graph.safetensors")
    made = gcond("condense", source, "--nodes", 6, "--method", "random", "-o", "my small.safetensors")
    assert shlex.join(["gcond", "evaluate", "my small.safetensors", "--on", str(source)]) in made.out
    made = gcond("train", source, "-o", "my model.safetensors", "--set", "epochs=5")
    assert shlex.join(["gcond", "predict", "my model.safetensors", "--on", str(source)]) in made.out


def test_chosen_nodes_and_parts(workspace, gcond, model):
    ids = workspace.file("ids.txt", "\ufeff7\r\n\n  3 \n")  # as an editor on Windows may write it
    out = workspace.out / "p.csv"
    assert gcond("predict", model, "--on", workspace.source, "--nodes", ids, "-o", out).code == 0
    assert [row["id"] for row in csv.DictReader(out.open(newline=""))] == ["7", "3"]
    found = gcond("predict", model, "--on", workspace.source, "--part", "test", "-o", out, "--force", "--json")
    assert json.loads(found.out)["nodes"] == 15


def test_accuracies_are_those_of_evaluate(workspace, gcond):
    model, out = workspace.out / "model.safetensors", workspace.out / "p.csv"
    said = json.loads(gcond("train", workspace.source, "-o", model, "--json", *BRIEF).out)
    found = json.loads(gcond("predict", model, "--on", workspace.source, "-o", out, "--json").out)
    assert found["accuracy"]["test"] == pytest.approx(said["test_accuracy"])
    assert found["accuracy"]["val"] == pytest.approx(said["val_accuracy"])


def test_the_inductive_setting_says_what_it_is_computed_on(workspace, gcond):
    model, out = workspace.out / "model.safetensors", workspace.out / "p.csv"
    assert gcond("train", workspace.source, "--setting", "inductive", "-o", model, *BRIEF).code == 0
    found = json.loads(gcond("predict", model, "--on", workspace.source, "-o", out, "--json").out)
    assert "the graphs induced by each part" in found["computed_on"]
    whole = ("--setting", "transductive", "--force", "--json")
    found = json.loads(gcond("predict", model, "--on", workspace.source, "-o", out, *whole).out)
    assert found["computed_on"] == "the whole graph 'tiny'"


def test_inspect_knows_models(workspace, gcond, model):
    found = gcond("inspect", model)
    assert found.code == 0
    assert "a trained model" in found.out
    assert "ant, bee, cat" in found.out
    said = json.loads(gcond("inspect", model, "--json").out)
    assert (said["kind"], said["model"], said["num_features"]) == ("model", "gcn", 8)


def test_a_graph_of_another_tool_is_inspected_evaluated_and_trained_on(workspace, gcond):
    other = workspace.folder / "other.safetensors"
    x, y = build_tiny().x[:9].clone(), torch.arange(9) % 3
    safetensors.torch.save_file({"x": x, "y": y}, other)
    before = other.read_bytes()
    said = json.loads(gcond("inspect", other, "--json").out)
    assert said["method"] is None
    assert "does not say what it was made from" in said["notes"][0]
    assert "does not say what it was made from" in gcond("inspect", other).out
    on = ("--on", workspace.source)
    found = gcond("evaluate", other, *on, "--runs", 1, "--json", *BRIEF)
    assert "does not say what it was made from" in found.err
    assert json.loads(found.out)["notes"] == said["notes"]
    found = gcond("train", other, *on, "-o", workspace.out / "model.safetensors", "--json", *BRIEF)
    assert found.code == 0
    assert json.loads(found.out)["notes"] == said["notes"]
    assert other.read_bytes() == before


# --- what they refuse
def cut(path):
    path.write_bytes(path.read_bytes()[:-40])
    return path


def flipped(path):
    whole = bytearray(path.read_bytes())
    whole[-10] ^= 64
    path.write_bytes(whole)
    return path


def other_source(w, name="other.safetensors", **options):
    build_tiny(**options).save(w.folder / name)
    return w.folder / name


TRAIN = "train SMALL --on SOURCE -o out/m.safetensors"
PREDICT = "predict MODEL --on SOURCE -o out/p.csv"
LINES = {
    "train nothing": ("train -o out/m.safetensors", "needs GRAPH"),
    "train to nowhere": ("train SMALL --on SOURCE", "needs --out"),
    "train on no source": ("train SMALL -o out/m.safetensors", "add --on SOURCE"),
    "train a missing file": ("train none.safetensors --on SOURCE -o out/m.safetensors", "no file 'none.safetensors'"),
    "train an unknown data set": ("train cra -o out/m.safetensors", "unknown data set 'cra'"),
    "train a whole graph on another": ("train SOURCE --on cora -o out/m.safetensors", "leave --on cora out"),
    "train on an unknown source": ("train SMALL --on cra -o out/m.safetensors", "unknown data set 'cra'"),
    "train an unknown model": (f"{TRAIN} --model gnc", "unknown model 'gnc'"),
    "train two models": (f"{TRAIN} --model gcn,sgc", "unknown model 'gcn,sgc'"),
    "train no runs": (f"{TRAIN} --runs 0", "0 runs are too few"),
    "train half a seed": (f"{TRAIN} --seed 0.5", "--seed cannot be '0.5'"),
    "train with an unknown setting": (f"{TRAIN} --set depth=3", "no setting 'depth'"),
    "train with no epochs": (f"{TRAIN} --set epochs=0", "epochs must be at least 1"),
    "train by no recommendation": (f"{TRAIN} --recipe recommended", "gcond recommend"),
    "train by a recipe that is none": (f"{TRAIN} --recipe nowhere", "no way to train"),
    "train a pt file": ("train SMALL --on SOURCE -o out/m.pt", "end it in .safetensors"),
    "train over the graph": ("train SMALL --on SOURCE -o SMALL --force", "is the source itself"),
    "train over the source": ("train SMALL --on SOURCE -o SOURCE --force", "is the source itself"),
    "train over another file": ("train SMALL --on SOURCE -o MODEL", "exists already"),
    "train into no folder": ("train SMALL --on SOURCE -o none/m.safetensors", "does not exist"),
    "train into a file": ("train SMALL --on SOURCE -o SMALL/m.safetensors", "is not a folder"),
    "train into what takes nothing": ("train SMALL --on SOURCE -o /proc/m.safetensors", "cannot write"),
    "train a model": ("train MODEL --on SOURCE -o out/m.safetensors", "holds a trained model"),
    "train on a model": ("train SMALL --on MODEL -o out/m.safetensors", "holds a trained model"),
    "predict nothing": ("predict --on SOURCE -o out/p.csv", "needs MODEL"),
    "predict on nothing": ("predict MODEL -o out/p.csv", "needs --on"),
    "predict to nowhere": ("predict MODEL --on SOURCE", "needs --out"),
    "predict by a missing file": ("predict none.safetensors --on SOURCE -o out/p.csv", "no file 'none.safetensors'"),
    "predict by a folder": ("predict out --on SOURCE -o out/p.csv", "is a folder"),
    "predict by a condensed graph": ("predict SMALL --on SOURCE -o out/p.csv", "holds a condensed graph"),
    "predict by a source graph": ("predict SOURCE --on SOURCE -o out/p.csv", "holds a source graph"),
    "predict on a condensed graph": ("predict MODEL --on SMALL -o out/p.csv", "holds a condensed graph"),
    "predict on a model": ("predict MODEL --on MODEL -o out/p.csv", "holds a trained model"),
    "predict on an unknown source": ("predict MODEL --on cra -o out/p.csv", "unknown data set 'cra'"),
    "predict a text file": ("predict MODEL --on SOURCE -o out/p.txt", "end it in .parquet or .csv"),
    "predict over another file": ("predict MODEL --on SOURCE -o precious.csv", "exists already"),
    "predict into no folder": ("predict MODEL --on SOURCE -o none/p.csv", "does not exist"),
    "predict into what takes nothing": ("predict MODEL --on SOURCE -o /proc/p.csv", "cannot write"),
    "predict over the list of nodes": ("predict MODEL --on SOURCE --nodes ids.csv -o ids.csv --force", "source itself"),
    "predict an unknown part": (f"{PREDICT} --part tset", "--part cannot be 'tset'", "did you mean 'test'?"),
    "predict a part that is empty": (f"{PREDICT} --part unlabelled", "no unlabelled nodes"),
    "predict nodes and a part": (f"{PREDICT} --part test --nodes ids.csv", "leave one out"),
    "predict nodes of a missing file": (f"{PREDICT} --nodes none.txt", "no file 'none.txt'"),
    "predict nodes of a folder": (f"{PREDICT} --nodes out", "cannot be read"),
    "predict nodes of an empty file": (f"{PREDICT} --nodes empty.txt", "names no node"),
    "predict nodes of a picture": (f"{PREDICT} --nodes picture.txt", "is no text"),
    "predict unknown nodes": (f"{PREDICT} --nodes unknown.txt", "no node with the id 'z'", "like '0'"),
    "predict in an unknown setting": (f"{PREDICT} --setting deductive", "deductive"),
}
PREPARED = {
    "a model cut short": (lambda w, m: ["predict", cut(m)], "cannot be read"),
    "a model with a flipped bit": (lambda w, m: ["predict", flipped(m)], "does not hold what gcond wrote"),
    "a pickle": (lambda w, m: ["predict", w.file("m.safetensors", pickle.dumps({}))], "never opens"),
    "an empty file": (lambda w, m: ["predict", w.file("m.safetensors", b"")], "it is empty"),
    "a model of another tool": (lambda w, m: ["predict", foreign(w)], "no model of gcond's"),
    "a condensed graph cut short": (lambda w, m: ["train", cut(w.small)], "cannot be read"),
    "a graph of another tool without labels": (lambda w, m: ["train", foreign(w)], "no tensor 'x'"),
}
SOURCES = {
    "other features to predict for": ("predict", {"features": 5}, "5 features, and the model takes 8"),
    "other features to train on": ("train", {"features": 5}, "8 features", "give the source it was made from"),
    "other classes to train on": ("train", {"classes": 4}, "3 classes"),
    "no validation nodes to train by": ("train", {"val": torch.zeros(60, dtype=torch.bool)}, "no val nodes"),
}


def foreign(w):
    safetensors.torch.save_file({"weight": torch.ones(2, 2)}, w.folder / "foreign.safetensors")
    return w.folder / "foreign.safetensors"


def assert_refused(outcome, words, before, workspace):
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("gcond: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err
    assert workspace.contents() == before


@pytest.mark.parametrize("name", LINES)
def test_refused(name, workspace, gcond, model):
    workspace.file("precious.csv", "precious")
    workspace.file("ids.csv", "1\n")
    workspace.file("empty.txt", "\n \n")
    workspace.file("picture.txt", b"\x89PNG\xff\xfe")
    workspace.file("unknown.txt", "1\nz\n")
    text, *words = LINES[name]
    known = {"SOURCE": workspace.source, "SMALL": workspace.small, "MODEL": model}
    argv = [known.get(word, word) for word in text.replace("SMALL/", f"{workspace.small}/").split()]
    before = workspace.contents()
    assert_refused(gcond(*argv), words, before, workspace)


@pytest.mark.parametrize("name", PREPARED)
def test_refused_files(name, workspace, gcond, model):
    argv, *words = PREPARED[name]
    command, file = argv(workspace, model)
    out = {"predict": "out/p.csv", "train": "out/m.safetensors"}[command]
    before = workspace.contents()
    assert_refused(gcond(command, file, "--on", workspace.source, "-o", out), words, before, workspace)


@pytest.mark.parametrize("name", SOURCES)
def test_refused_sources(name, workspace, gcond, model):
    command, options, *words = SOURCES[name]
    other = other_source(workspace, **options)
    given, out = {"predict": (model, "out/p.csv"), "train": (workspace.small, "out/m.safetensors")}[command]
    before = workspace.contents()
    assert_refused(gcond(command, given, "--on", other, "-o", out, "--quiet"), words, before, workspace)


@pytest.mark.parametrize("command", ["train", "predict"])
def test_a_full_disk(command, workspace, gcond, model, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("safetensors.torch.save_file", full)
    monkeypatch.setattr("pyarrow.csv.CSVWriter", full)
    argv = {
        "train": ["train", workspace.source, "-o", "out/m.safetensors", "--set", "epochs=1"],
        "predict": ["predict", model, "--on", workspace.source, "-o", "out/p.csv"],
    }[command]
    before = workspace.contents()
    assert_refused(gcond(*argv), ["the disk is full"], before, workspace)


def test_the_metric_is_an_option_of_its_own(workspace, gcond):
    words = ("train", workspace.small, "--on", workspace.source, "--set", "epochs=3", "--metric", "macro-f1")
    told = gcond(*words, "-o", "m.safetensors", "--json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["recipe"]["metric"] == "macro-f1"
    twice = gcond(
        "train",
        workspace.small,
        "--on",
        workspace.source,
        "--metric",
        "macro-f1",
        "--set",
        "metric=accuracy",
        "-o",
        "n.safetensors",
    )
    assert twice.code == 2
    assert "the metric is given twice" in twice.err
