"""``gcond update`` on tables that a person keeps adding to."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch

from cli.workspace import build_tiny
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.data import load
from gcond.methods.update import update

CLASSES = ("rock", "folk", "jazz")
ENOUGH = 60
OUT = "small-updated.safetensors"


def write_tables(folder: Path, names, classes=CLASSES, nudge=0.0) -> Path:
    """A folder of two tables with ``names`` as ids, whose number says class, split and neighbours."""
    folder.mkdir(exist_ok=True)
    kinds = [classes[name % len(classes)] for name in names]
    with (folder / "nodes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "f0", "f1", "f2", "f3", "label", "split"])
        for name, kind in zip(names, kinds, strict=True):
            own = [float(kind == each) for each in (*CLASSES, "pop")]
            split = ("train", "train", "val", "test")[name // len(classes) % 4]
            table.writerow([f"song{name}", *(x + name % 7 / 10 + nudge for x in own), kind, split])
    with (folder / "edges.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["source", "target"])
        for name in names:
            table.writerows([f"song{name}", f"song{other}"] for other in (name + 3, name + 6) if other in names)
    return folder


@pytest.fixture
def songs(workspace, gcond):
    """Sixty songs and their condensed graph, in ``small.safetensors``."""
    source = write_tables(workspace.folder / "songs", range(ENOUGH))
    argv = ("condense", source, "--nodes", 6, "--method", "clusters", "-o", "small.safetensors", "--force")
    assert gcond(*argv, "--set", "teacher=ridge").code == 0
    return source


def test_songs_come_and_go(songs, gcond, workspace):
    small = CondensedGraph.load("small.safetensors")
    names = [name for name in range(90) if name % 10 != 4]
    write_tables(songs, names[::-1])
    told = gcond("update", "small.safetensors", "--on", songs, "--json")
    assert told.code == 0
    found = json.loads(told.out)
    changes = found["changes"]
    assert (found["out"], found["nodes"], found["changed"], found["method"]) == (OUT, 6, True, "clusters")
    assert found["updated_from"] == small.sha256
    assert (changes["matched_by"], changes["nodes_before"], changes["nodes"]) == ("ids", ENOUGH, len(names))
    assert (changes["nodes_added"], changes["nodes_removed"]) == (27, 6)
    assert changes["features_changed"] == changes["labels_changed"] == 0
    updated = CondensedGraph.load(OUT)
    assert updated.sha256 == update(small, on=load(songs, features=small_transform(small))).sha256
    assert updated.provenance.updates[0]["source"]["sha256"] == small.provenance.source["sha256"]
    shown = " ".join(gcond("update", "small.safetensors", "--on", songs, "-o", "b.safetensors").out.split())
    assert "81, before 60: 27 added, 6 removed, by their ids" in shown
    assert "0 of 54 old nodes with other features" in shown
    shown = " ".join(gcond("inspect", OUT).out.split())
    assert f"updated from songs, 60 nodes, sha256 {small.provenance.source['sha256'][:12]}…" in shown
    assert gcond("evaluate", OUT, "--on", songs, "--runs", 1, "--set", "epochs=2").code == 0
    again = json.loads(gcond("update", OUT, "--on", songs, "-o", "c.safetensors", "--json").out)
    assert (again["changed"], again["changes"]) == (False, {})
    assert CondensedGraph.load("c.safetensors").sha256 == updated.sha256


def small_transform(small):
    from gcond.graph.features import FeatureTransform

    return FeatureTransform.from_json(small.provenance.transform)


def test_a_class_that_comes_later(songs, gcond):
    write_tables(songs, range(ENOUGH + 40), classes=(*CLASSES, "blues"))
    told = gcond("update", "small.safetensors", "--on", songs, "--nodes", 8, "--json")
    found = json.loads(told.out)
    assert found["changes"]["classes_added"] == 1
    updated = CondensedGraph.load(OUT)
    assert updated.provenance.class_names == ("blues", "folk", "jazz", "rock")
    assert set(updated.hard_labels.tolist()) == {0, 1, 2, 3}
    assert bool(torch.isfinite(updated.x).all())


def test_a_split_that_is_drawn_is_another_one(songs, gcond):
    """Without a column for it the larger table is split anew, and that is said."""
    for names in (range(ENOUGH), range(ENOUGH + 30)):
        write_tables(songs, names)
        rows = [line.rpartition(",")[0] for line in (songs / "nodes.csv").read_text().splitlines()]
        (songs / "nodes.csv").write_text("\n".join(rows))
        if len(names) == ENOUGH:
            argv = ("condense", songs, "--nodes", 6, "--method", "clusters", "-o", "small.safetensors", "--force")
            assert gcond(*argv, "--set", "teacher=ridge").code == 0
    told = gcond("update", "small.safetensors", "--on", songs, "--json")
    removed = json.loads(told.out)["changes"]["labels_removed"]
    assert removed > 0
    assert f"{removed} nodes that were trained on are not any more" in told.err
    assert "a split of its own" in told.err


def test_nothing_to_do(songs, gcond):
    shown = gcond("update", "small.safetensors", "--on", songs)
    assert shown.code == 0
    assert "the source is the one that this was made from" in " ".join(shown.out.split())
    assert CondensedGraph.load(OUT).sha256 == CondensedGraph.load("small.safetensors").sha256


def test_refusals(songs, gcond, workspace):
    build_tiny(name="other").save(workspace.folder / "other.safetensors")
    strangers = write_tables(workspace.folder / "strangers", range(1000, 1060))
    moved = write_tables(workspace.folder / "moved", range(ENOUGH), nudge=0.5)
    before = workspace.contents()
    for argv, words in {
        ("small.safetensors",): "needs --on",
        ("nothing.safetensors", "--on", songs): "there is no file 'nothing.safetensors'",
        ("other.safetensors", "--on", songs): "holds a source graph",
        ("small.safetensors", "--on", "other.safetensors"): "has 8 features",
        ("small.safetensors", "--on", strangers): "no node of 'strangers' is one of 'songs'",
        ("small.safetensors", "--on", moved): "no node of 'moved' has the features that it had in 'songs'",
        ("small.safetensors", "--on", songs, "--nodes", 2): "2 nodes are too few for 3 classes",
        ("small.safetensors", "--on", songs, "--nodes", 99): "more than the",
        (
            "small.safetensors",
            "--on",
            songs,
            "--nodes",
            9,
            "--ratio",
            "10%",
        ): "either ratio or nodes, for example --nodes 70",
        ("small.safetensors", "--on", songs, "--ratio", "most"): "ratio 'most' is not a number",
        ("small.safetensors", "--on", songs, "-o", "small.safetensors"): "exists already",
        (
            "small.safetensors",
            "--on",
            "other.safetensors",
            "-o",
            "other.safetensors",
            "--force",
        ): "is the source itself",
    }.items():
        outcome = gcond("update", *argv, "--quiet")
        assert (outcome.code, outcome.out) == (2, ""), argv
        assert words in outcome.err, (argv, outcome.err)
        assert outcome.err.count("\n") == 1
    assert workspace.contents() == before
