"""A packed store: what is written comes back, and every way of being damaged has its sentence."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import gcond
from data.test_pack_tables import assert_same_graph
from gcond.data import store_format, store_reading, store_writing
from gcond.data.packed_store import as_source_graph
from gcond.data.store_reading import open_store
from gcond.data.store_writing import ArrayFile, new_store, write_store
from gcond.errors import GcondError
from gcond.runtime import folders
from reference.damage import sentence as refusal

SHAPES = [
    {},
    {"weighted": True},
    {"weighted": True, "directed": True},
    {"features": 60, "density": 0.05},
    {"setting": "inductive"},
]


@pytest.fixture(scope="module")
def original(make_graph, tmp_path_factory):
    """A store with every kind of array but dense features."""
    graph = make_graph(weighted=True, features=60, density=0.05)
    names = gcond.SourceGraph.build(
        name="named",
        x=graph.x,
        edge_index=graph.adjacency.edge_index,
        edge_weight=graph.adjacency.values,
        y=graph.y,
        train=graph.train_mask,
        val=graph.val_mask,
        test=graph.test_mask,
        ids=[f"node {row}" for row in range(graph.num_nodes)],
    )
    place = tmp_path_factory.mktemp("store") / "g.gcond"
    write_store(place, names)
    return place


@pytest.fixture
def store(original, tmp_path):
    shutil.copytree(original, tmp_path / "g.gcond")
    return tmp_path / "g.gcond"


def arrays(store):
    return sorted(path.stem for path in store.glob("*.npy"))


def sentence(path):
    """What is said, by opening and by loading alike, and in one line."""
    said = []
    for read in (open_store, gcond.load, lambda place: gcond.load(place, memory_limit="1MB")):
        with pytest.raises(GcondError) as error:
            read(path)
        said.append(str(error.value))
    assert len(set(said)) == 1
    assert "\n" not in said[0]
    return said[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_written_comes_back(shape, make_graph, tmp_path):
    graph = make_graph(**shape)
    write_store(tmp_path / "g.gcond", graph)
    assert_same_graph(as_source_graph(open_store(tmp_path / "g.gcond"))[0], graph)
    for name in arrays(tmp_path / "g.gcond"):  # anybody can read them
        assert np.load(tmp_path / "g.gcond" / f"{name}.npy", mmap_mode="r").dtype.str in store_format.DTYPES[name]


def test_the_store_has_every_array_that_damage_is_done_to(original):
    assert set(arrays(original)) == set(store_format.DTYPES) - {"x"}


@pytest.mark.parametrize("name", sorted(set(store_format.DTYPES) - {"x"}))
def test_an_array_that_is_cut_short_too_long_missing_or_changed(name, store):
    path = store / f"{name}.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert re.search(rf"the array '{name}' .* was cut short .*: pack the graph again", sentence(store))
    path.write_bytes(whole[:100])
    assert re.search(rf"the array '{name}' .* was cut short", sentence(store))
    path.write_bytes(whole + b"\0")
    assert re.search(rf"the array '{name}' .* is too long", sentence(store))
    for at in (0, 9, 127, 128, (128 + len(whole)) // 2, len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert re.search(rf"the array '{name}' .* is damaged .*: pack the graph again", sentence(store)), at
    path.unlink()
    assert f"lacks its array '{name}' ({name}.npy): pack the graph again" in sentence(store)
    path.mkdir()
    assert str(path) in sentence(store)
    path.rmdir()
    path.write_bytes(whole)
    assert open_store(store).num_nodes == 80


def test_every_byte_of_what_it_says_of_itself_counts(store):
    path = store / "store.json"
    whole = path.read_bytes()
    stream = np.random.default_rng(0)
    kinds = set()
    for at in range(0, len(whole), 7):
        changed = bytes([whole[at] ^ int(stream.integers(1, 128))])
        path.write_bytes(whole[:at] + changed + whole[at + 1 :])
        said = refusal(open_store, store)
        if said is None:  # blanks and the version of gcond that wrote it say nothing
            assert open_store(store).sha256 == json.loads(whole)["sha256"]
        else:
            assert "\n" not in said
            kinds.add(re.sub(r"'[^']*'|\(.*\)", "…", said))
    assert any("is damaged or was changed: pack the graph again" in kind for kind in kinds)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": 2}, r"was written by another version of gcond \(format 2\), and this one reads format 1: pack the"),
        ({"format": "old"}, r"another version of gcond \(format old\)"),
        ({"format": None}, r"another version of gcond \(format None\)"),
        ({"kind": "soup"}, "is not a packed store: its store.json says that it is 'soup'"),
        ({"facts": {}}, "is damaged or was changed: pack the graph again"),
        ({"arrays": {}}, "is damaged or was changed"),
        ({"arrays": {"../y": {}}}, "is damaged or was changed"),
        ({"sha256": ""}, "is damaged or was changed"),
    ],
)
def test_a_store_of_another_version_or_kind(content, message, store):
    about = json.loads((store / "store.json").read_text())
    (store / "store.json").write_text(json.dumps(about | content))
    assert re.search(message, sentence(store))


@pytest.mark.parametrize("facts", [{"nodes": 81}, {"edges": 3}, {"setting": "odd"}, {"more": 1}])
def test_facts_that_do_not_fit_the_arrays_though_their_sum_is_right(facts, store):
    about = json.loads((store / "store.json").read_text())
    about["facts"] |= facts
    about["sha256"] = store_format.fingerprint(about["facts"], about["arrays"])
    (store / "store.json").write_text(json.dumps(about))
    assert "is damaged or was changed" in sentence(store)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b"null", b'"packed"'])
def test_a_description_that_is_no_description(content, store):
    (store / "store.json").write_bytes(content)
    assert "store.json' is damaged or was changed: pack the graph again" in sentence(store)


def test_what_is_no_store(store, tmp_path):
    (store / "store.json").unlink()
    assert "is not a packed store: it has no store.json, which gcond pack writes" in sentence(store)
    with pytest.raises(GcondError, match="there is no folder"):
        open_store(tmp_path / "nothing.gcond")
    (tmp_path / "file.gcond").write_text("")
    with pytest.raises(GcondError, match="is a file, and a packed store is a folder"):
        open_store(tmp_path / "file.gcond")
    with pytest.raises(GcondError, match=r"file\.gcond' is no graph that gcond reads"):
        gcond.load(tmp_path / "file.gcond")
    (tmp_path / "other").mkdir()
    with pytest.raises(GcondError, match="holds no graph that gcond reads"):
        gcond.load(tmp_path / "other")


def test_it_is_hashed_once_and_again_when_a_file_has_changed(original, tmp_path, monkeypatch):
    store = tmp_path / "g.gcond"
    shutil.copytree(original, store)
    hashed = []
    plain = store_reading._hash
    monkeypatch.setattr(store_reading, "_hash", lambda path, hear: hashed.append(path.stem) or plain(path, hear))
    open_store(store)
    assert sorted(hashed) == arrays(store)  # a copy has other inodes
    open_store(store)
    assert len(hashed) == len(arrays(store))
    os.utime(store / "y.npy", ns=(1, 1))
    open_store(store)
    assert hashed[len(arrays(store)) :] == ["y"]
    open_store(store, anew=True)
    assert len(hashed) == 2 * len(arrays(store)) + 1
    (store / "verified.json").write_text("{")
    open_store(store)
    assert len(hashed) == 3 * len(arrays(store)) + 1


# ----------------------------------------------------------------------------------------------------- while writing


def left_over(folder):
    """What is in a folder beside whole stores, hidden files included."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".gcond" or path.name.startswith("."))


def test_a_store_is_not_replaced_unless_that_is_asked_for(make_graph, tmp_path):
    place = tmp_path / "g.gcond"
    write_store(place, make_graph())
    before = open_store(place).sha256
    with pytest.raises(GcondError, match=r"exists already: give another name, or force=True to replace it"):
        write_store(place, make_graph(seed=1))
    assert open_store(place).sha256 == before
    write_store(place, make_graph(seed=1), force=True)
    assert open_store(place).sha256 != before
    (tmp_path / "own.gcond").mkdir()
    (tmp_path / "own.gcond" / "letters.txt").write_text("mine")
    with pytest.raises(GcondError, match="is no packed store, so it is not replaced"):
        write_store(tmp_path / "own.gcond", make_graph(), force=True)
    assert (tmp_path / "own.gcond" / "letters.txt").read_text() == "mine"
    with pytest.raises(GcondError, match=r"end it with \.gcond"):
        write_store(tmp_path / "g.store", make_graph())
    with pytest.raises(GcondError, match=r"folder '.*' does not exist"):
        write_store(tmp_path / "deep" / "g.gcond", make_graph())
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(
    "broken", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError()]
)
def test_a_write_that_fails_at_any_place_leaves_what_was(exists, broken, make_graph, tmp_path, monkeypatch):
    place = tmp_path / "g.gcond"
    if exists:
        write_store(place, make_graph())
    before = open_store(place).sha256 if exists else None
    plain = ArrayFile.append
    for fails_at in (0, 2, 5):  # of six arrays
        calls = []

        def append(self, rows, calls=calls, fails_at=fails_at):
            calls.append(self)
            if len(calls) > fails_at:
                raise broken
            plain(self, rows)

        monkeypatch.setattr(ArrayFile, "append", append)
        full = isinstance(broken, OSError)
        with pytest.raises(GcondError if full else type(broken), match="the disk is full" if full else None):
            write_store(place, make_graph(seed=1), force=True)
        assert left_over(tmp_path) == []
        assert place.exists() == exists
        assert not exists or open_store(place).sha256 == before


def test_a_second_writer_is_refused_at_once_and_the_first_is_done(make_graph, tmp_path):
    place = tmp_path / "g.gcond"
    with new_store(place) as store:
        with pytest.raises(GcondError, match=r"another process is writing '.*g\.gcond': wait until it is done"):
            write_store(place, make_graph(seed=1))
        store_writing.put_graph(store, make_graph(), raw=None, usual="none")
    assert torch.equal(gcond.load(place).y, make_graph().y)
    assert left_over(tmp_path) == []


def test_many_threads_that_write_the_same_leave_one_whole_store(make_graph, tmp_path):
    place, said = tmp_path / "g.gcond", []

    def write(seed):
        try:
            write_store(place, make_graph(seed=seed))
        except GcondError as error:
            said.append(str(error))

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 5
    assert all("another process is writing" in one or "exists already" in one for one in said)
    open_store(place, anew=True)
    assert left_over(tmp_path) == []


def test_what_a_killed_writer_left_is_removed_by_the_next(make_graph, tmp_path):
    (tmp_path / ".g.gcond.part").mkdir()
    (tmp_path / ".g.gcond.part" / "x.npy").write_bytes(b"half")
    (tmp_path / ".g.gcond.lock").touch()
    write_store(tmp_path / "g.gcond", make_graph())
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("killed_after", ["nothing", "the old one is aside"])
def test_a_store_is_replaced_where_the_system_cannot_exchange_folders(make_graph, tmp_path, monkeypatch, killed_after):
    place = tmp_path / "g.gcond"
    write_store(place, make_graph())
    monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    if killed_after != "nothing":
        place.rename(tmp_path / ".g.gcond.old")
    write_store(place, make_graph(seed=1), force=True)
    assert torch.equal(gcond.load(place).y, make_graph(seed=1).y)
    assert left_over(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a megabyte, where one may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk may be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


TABLES = """
import sys, gcond, numpy as np, pyarrow as pa
from pyarrow import parquet
folder, edges = sys.argv[1], int(sys.argv[2])
stream = np.random.default_rng(0)
n = 1000
parquet.write_table(pa.table({"label": stream.integers(0, 3, n), "a": stream.random(n)}), folder + "/nodes.parquet")
ends = {end: stream.integers(0, n, edges) for end in ("source", "target")}
parquet.write_table(pa.table(ends), folder + "/edges.parquet")
"""


UNAWARE = """
import shutil
shutil.disk_usage = lambda place: shutil._ntuple_diskusage(9**20, 0, 9**20)
from gcond.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("edges", "how"), [(400_000, "beforehand"), (200_000, "on the way")])
def test_a_disk_that_is_full(edges, how, small_disk, tmp_path):
    (tmp_path / "own").mkdir()
    subprocess.run([sys.executable, "-c", TABLES, str(tmp_path / "own"), str(edges)], check=True)
    place = small_disk / "own.gcond"
    command = [sys.executable, "-m", "gcond", "pack", str(tmp_path / "own"), "-o", str(place), "--json"]
    if how == "on the way":  # as if the disk were filled by somebody else meanwhile
        command[1:3] = ["-c", UNAWARE]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    expected = (
        "GB free: free some, or write elsewhere" if how == "beforehand" else "cannot write '.*': the disk is full"
    )
    assert re.search(expected, ended.stderr), ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert left_over(small_disk) == []
    assert not place.exists()


@pytest.mark.slow
def test_two_processes_that_pack_the_same(tmp_path):
    (tmp_path / "own").mkdir()
    subprocess.run([sys.executable, "-c", TABLES, str(tmp_path / "own"), "300000"], check=True)
    command = [sys.executable, "-m", "gcond", "pack", str(tmp_path / "own"), "-o", str(tmp_path / "own.gcond")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [(process.communicate()[1], process.returncode) for process in both]
    assert sorted(code for _, code in ends) == [0, 2]
    (said,) = [text for text, code in ends if code]
    assert "another process is writing" in said or "exists already" in said
    open_store(tmp_path / "own.gcond", anew=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own", "own.gcond"]
