"""``gcond pack`` and ``gcond synthesize``, and a store as the source of every other command."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from cli.workspace import build_tiny
from gcond.condensed import CondensedGraph
from gcond.data.store_reading import open_store
from gcond.data.store_writing import write_store
from gcond.graph.stored_arrays import StoredArrays

STREAM = np.random.default_rng(0)
N = 90


@pytest.fixture
def tables(tmp_path):
    """Names, three classes, a split, weights; in two files each."""
    folder = tmp_path / "own"
    folder.mkdir()
    y = np.arange(N) % 3
    names = np.array([f"n{row:03}" for row in range(N)])
    nodes = {
        "id": names,
        "label": np.array(["red", "green", "blue"])[y],
        "split": np.array(["train", "val", "test"])[np.arange(N) // 30],
        **{f"f{at}": (y == at) + 0.1 * STREAM.random(N) for at in range(4)},
    }
    source = STREAM.integers(0, N, 400)
    target = (source + 3 * STREAM.integers(1, N // 3, 400)) % N
    edges = {"source": names[source], "target": names[target], "weight": STREAM.random(400).round(3) + 0.1}
    for part, columns in (("nodes", nodes), ("edges", edges)):
        table = pa.table(columns)
        half = table.num_rows // 2
        parquet.write_table(table.slice(0, half), folder / f"{part}-0.parquet")
        parquet.write_table(table.slice(half), folder / f"{part}-1.parquet")
    return folder


@pytest.fixture
def store(gcond, tables, tmp_path):
    assert gcond("pack", tables, "-o", tmp_path / "own.gcond", "--quiet").code == 0
    return tmp_path / "own.gcond"


def said(outcome):
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_what_is_packed_is_told(gcond, tables, tmp_path):
    found = said(gcond("pack", tables, "-o", tmp_path / "own.gcond", "--memory", "3GB", "--json"))
    assert (found["nodes"], found["features"], found["classes"], found["source"]) == (N, 4, 3, "own")
    assert found["sha256"] == open_store(tmp_path / "own.gcond").sha256
    assert found["bytes"] > 0
    again = gcond("pack", tables, "-o", tmp_path / "own.gcond")
    assert again.code == 2
    assert "exists already: give another name, or --force to replace it" in again.err
    shown = gcond("pack", tables, "-o", tmp_path / "own.gcond", "--force")
    assert shown.code == 0
    assert "90 nodes" in shown.out
    assert "note: own: the split is the table's own" in shown.err


def test_every_command_takes_a_store_and_does_what_it_does_with_the_tables(gcond, tables, store, tmp_path):
    for name, source in (("t", tables), ("s", store)):
        out = tmp_path / f"{name}.safetensors"
        said(gcond("condense", source, "--nodes", 6, "--method", "clusters", "-o", out, "--json"))
        said(gcond("propagate", source, "--hops", 2, "-o", tmp_path / f"{name}.npy", "--json"))
    assert (tmp_path / "t.npy").read_bytes() == (tmp_path / "s.npy").read_bytes()
    scores = [
        said(gcond("evaluate", tmp_path / f"{name}.safetensors", "--on", source, "--runs", 2, "--json"))["results"]
        for name, source in (("t", tables), ("s", store))
    ]
    assert [one["runs"] for one in scores[0]] == [one["runs"] for one in scores[1]]
    whole = said(gcond("evaluate", "--whole", store, "--runs", 1, "--json", "--set", "epochs=5"))
    assert whole["results"][0]["model"]


def test_a_store_is_inspected(gcond, store):
    found = said(gcond("inspect", store, "--json"))
    assert json.dumps(found)
    shown = gcond("inspect", store)
    assert shown.code == 0
    assert "own" in shown.out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["condense", "--nodes", 6, "--method", "coarsening"],
            r"or more, or the method clusters",
        ),
        (["condense", "--nodes", 6, "--method", "clusters", "--setting", "inductive"], "or the setting transductive"),
        (["condense", "--nodes", 6, "--method", "clusters", "--memory", "lots"], "'lots' is not a size"),
        (
            ["condense", "--nodes", 6, "--method", "clusters", "--send-store"],
            "--send-store is for Ray: add --engine ray, or",
        ),
        (["propagate", "-o", "h.npy", "--send-store"], "--send-store is for Ray: add --engine ray, or leave it out"),
        (["propagate", "-o", "h.npy"], r"one column at a time takes \d+ MB: use --memory"),
    ],
)
def test_refusals_are_one_sentence(gcond, store, command, message, monkeypatch):
    monkeypatch.chdir(store.parent)
    before = sorted(path.name for path in store.parent.iterdir())
    memory = [] if "--memory" in command else ["--memory", "1MB"]
    outcome = gcond(command[0], store, *command[1:], *memory, "--quiet")
    assert outcome.code == 2
    assert re.search(message, outcome.err), outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert sorted(path.name for path in store.parent.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("sent", [[], ["--send-store"]])
def test_ray_writes_the_same_files_from_a_store_that_is_sent(sent, gcond, store, tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr(StoredArrays, "memory_when_loaded", 10**15)  # so that it stays on disk
    for name, engine in (("here", []), ("ray", ["--engine", "ray", "--workers", 2, *sent])):
        for path in (store / "derived").glob("*.npy"):
            path.unlink()
        limit = ["--memory", "4GB", "--json"]
        said(gcond("propagate", store, "--hops", 2, "-o", tmp_path / f"{name}.npy", *limit, *engine))
        out = tmp_path / f"{name}.safetensors"
        said(gcond("condense", store, "--nodes", 6, "--method", "clusters", "-o", out, *limit, *engine))
    assert (tmp_path / "ray.npy").read_bytes() == (tmp_path / "here.npy").read_bytes()
    made = [CondensedGraph.load(tmp_path / f"{name}.safetensors") for name in ("ray", "here")]
    assert made[0].sha256 == made[1].sha256


def test_pack_refuses_before_it_works(gcond, tables, tmp_path):
    for arguments, message in (
        (["-o", tmp_path / "own.zip"], "end it with .gcond"),
        (["-o", tmp_path / "no" / "own.gcond"], "does not exist"),
        (["-o", tmp_path / "own.gcond", "--memory", "10MB"], "use --memory"),
        (["-o", tmp_path / "own.gcond", "--memory", "ten"], "'ten' is not a size"),
        (["-o", tmp_path / "own.gcond", "--setting", "odd"], "odd"),
    ):
        outcome = gcond("pack", tables, *arguments)
        assert outcome.code == 2
        assert message in outcome.err
        assert len(outcome.err.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


def test_a_damaged_store_is_one_sentence(gcond, store):
    path = store / "indices.npy"
    path.write_bytes(path.read_bytes()[:-1])
    for command in (
        ["inspect", store],
        ["condense", store, "--nodes", 6],
        ["propagate", store, "-o", store.parent / "h.npy"],
    ):
        outcome = gcond(*command)
        assert outcome.code == 2
        assert "the array 'indices' of the store" in outcome.err
        assert len(outcome.err.strip().splitlines()) == 1


def test_a_graph_in_memory_is_packed_as_it_is(gcond, workspace):
    found = said(gcond("pack", workspace.source, "-o", "tiny.gcond", "--json"))
    assert found["nodes"] == build_tiny().num_nodes
    write_store("other.gcond", build_tiny())
    small = [
        said(gcond("condense", name, "--nodes", 6, "--method", "random", "-o", f"{name}.safetensors", "--json"))
        for name in ("tiny.safetensors", "tiny.gcond")
    ]
    assert small[0]["edges"] == small[1]["edges"]


@pytest.mark.parametrize("shards", [1, 3])
def test_made_up_tables_are_the_same_whatever_the_shards_and_pack(gcond, shards, tmp_path):
    size = ["--nodes", 200, "--edges", 900, "--features", 5, "--classes", 4, "--seed", 7]
    found = said(gcond("synthesize", "-o", tmp_path / "made", *size, "--shards", shards, "--json"))
    assert found["shards"] == shards
    assert len(list((tmp_path / "made").glob("*.parquet"))) == 2 * shards
    packed = said(gcond("pack", tmp_path / "made", "-o", tmp_path / "made.gcond", "--json"))
    assert (packed["nodes"], packed["features"], packed["classes"]) == (200, 5, 4)
    said(gcond("synthesize", "-o", tmp_path / "one", *size, "--json"))
    one = said(gcond("pack", tmp_path / "one", "-o", tmp_path / "one.gcond", "--json"))
    arrays = [json.loads((tmp_path / f"{name}.gcond" / "store.json").read_text())["arrays"] for name in ("made", "one")]
    assert arrays[0] == arrays[1]
    assert one["nodes"] == packed["nodes"]


def test_text_tables_pack_too(gcond, tables, tmp_path):
    folder = tmp_path / "text"
    folder.mkdir()
    for part in ("nodes", "edges"):
        whole = pa.concat_tables([parquet.read_table(tables / f"{part}-{at}.parquet") for at in range(2)])
        csv.write_csv(whole, folder / f"{part}.csv")
    packed = said(gcond("pack", folder, "-o", tmp_path / "text.gcond", "--json"))
    other = said(gcond("pack", tables, "-o", tmp_path / "own.gcond", "--json"))
    for key in ("nodes", "edges", "features", "classes"):
        assert packed[key] == other[key]
