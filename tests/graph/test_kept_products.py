"""Products that stay in a store: each setting has its own, they are used again, and damaged ones are made anew."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch

import gcond
from gcond.data.store_writing import write_store
from gcond.errors import GcondError
from gcond.graph.column_work import Hops
from gcond.linalg.tall import RowFile, row_blocks


def forced(path, features="none"):
    """The graph on disk, however small it is, with memory to compute in."""
    graph = gcond.load(path, features=features, memory_limit="1MB")
    return graph.with_streaming(type(graph.streaming)(10**10))


@pytest.fixture
def store(make_graph, tmp_path):
    write_store(tmp_path / "g.gcond", make_graph())
    return tmp_path / "g.gcond"


@pytest.fixture
def made(monkeypatch):
    """How often columns went through the graph."""
    calls = []
    plain = Hops.__call__
    monkeypatch.setattr(Hops, "__call__", lambda self, *given: calls.append(self.hops) or plain(self, *given))
    return calls


def whole(file):
    return torch.cat([rows for _, rows in row_blocks(file)])


def products(store):
    return sorted(store.glob("derived/*.npy"))


def test_every_setting_has_its_own_and_finds_it_again(store, made):
    found = {}
    for features in ("none", "unit-rows", "standardise"):
        for form in ("gcn", "mean"):
            for hops in (1, 2):
                found[features, form, hops] = whole(forced(store, features).inputs.kept(form, hops))
    assert len(products(store)) == len(made) == len(found) == 12
    for (features, form, hops), expected in found.items():
        assert torch.equal(whole(forced(store, features).inputs.kept(form, hops)), expected)
    assert len(made) == 12
    assert not list(store.glob("derived/*.part"))


def test_another_store_of_the_same_name_does_not_find_it(store, made, make_graph):
    one = whole(forced(store).inputs.kept("gcn", 1))
    kept = store / "derived"
    shutil.move(kept, store.parent / "aside")
    write_store(store, make_graph(seed=1), force=True)
    shutil.move(store.parent / "aside", kept)
    assert not torch.equal(whole(forced(store).inputs.kept("gcn", 1)), one)
    assert made == [1, 1]


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: flip(path, -1),
        lambda path: flip(path, 130),
        lambda path: flip(path, 3),
        cut,
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        lambda path: path.with_suffix(".json").unlink(),
        lambda path: path.with_suffix(".json").write_text("{"),
        lambda path: path.with_suffix(".json").write_text(json.dumps({"state": [], "pieces": []})),
        lambda path: RowFile.create(path, (3, 3)),
    ],
    ids=["last byte", "first byte", "magic", "cut", "emptied", "gone", "no sums", "half the sums", "no piece", "other"],
)
def test_what_is_damaged_is_made_again(damage, store, made):
    expected = whole(forced(store).inputs.kept("gcn", 2))
    (path,) = products(store)
    damage(path)
    assert torch.equal(whole(forced(store).inputs.kept("gcn", 2)), expected)
    assert made == [2, 2]
    assert torch.equal(whole(forced(store).inputs.kept("gcn", 2)), expected)
    assert made == [2, 2]


def test_a_copy_of_a_store_is_checked_once_and_used(store, made, monkeypatch):
    forced(store).inputs.kept("gcn", 2)
    copy = store.with_name("copy.gcond")
    shutil.copytree(store, copy)
    read = []
    plain = RowFile.columns
    monkeypatch.setattr(RowFile, "columns", lambda self, *at: read.append(at) or plain(self, *at))
    for _ in range(2):
        forced(copy).inputs.kept("gcn", 2)
    assert made == [2]
    assert len(read) == 12  # each column once, by whoever came first


def test_what_a_killed_process_left_is_removed_by_the_next(store):
    forced(store).inputs.kept("gcn", 1)
    left = store / "derived" / "gcn-9-0000.part"
    left.write_bytes(b"half")
    forced(store).inputs.kept("gcn", 2)
    assert not left.exists()


def test_a_store_that_may_not_be_written_to_is_used_all_the_same(store, made, monkeypatch):
    expected = whole(forced(store).inputs.kept("gcn", 1))
    plain = os.open

    def refusing(path, flags, *rest, **options):
        if str(path).startswith(str(store)) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "Permission denied")
        return plain(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr("pathlib.Path.touch", lambda self, *_, **__: refusing(self, os.O_CREAT))
    assert torch.equal(whole(forced(store).inputs.kept("gcn", 1)), expected)
    assert made == [1]
    graph = forced(store)
    assert torch.equal(whole(graph.inputs.kept("gcn", 2)), whole(forced(store).inputs.kept("gcn", 2)))
    assert [path.name.split("-")[1] for path in products(store)] == ["1"]


def test_a_full_disk_is_said_in_a_sentence_and_leaves_nothing(store, monkeypatch):
    def full(self, start, columns, hear=None):
        raise OSError(28, "No space left on device")

    graph = forced(store)
    monkeypatch.setattr(RowFile, "write_columns", full)
    with pytest.raises(GcondError, match=r"cannot write '.*': the disk is full"):
        graph.inputs.kept("gcn", 1)
    assert [path.suffix for path in (store / "derived").iterdir() if path.is_file() and path.name != "lock"] == [
        ".lock"
    ]
    monkeypatch.setattr("shutil.disk_usage", lambda place: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(GcondError, match=r"has 0 MB free: free some, or move the store"):
        graph.inputs.kept("gcn", 1)


KEEP = """
import sys, gcond
graph = gcond.load(sys.argv[1], features="none", memory_limit="1MB")
graph.with_streaming(type(graph.streaming)(10**10)).inputs.kept("gcn", 2)
"""


@pytest.mark.slow
def test_two_processes_that_want_the_same_make_it_once_and_agree(store):
    both = [subprocess.Popen([sys.executable, "-c", KEEP, str(store)]) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert len(products(store)) == 1
    fresh = store.with_name("fresh.gcond")
    shutil.copytree(store, fresh, ignore=shutil.ignore_patterns("derived"))
    assert torch.equal(whole(forced(store).inputs.kept("gcn", 2)), whole(forced(fresh).inputs.kept("gcn", 2)))
