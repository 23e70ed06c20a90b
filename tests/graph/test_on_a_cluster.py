"""A Ray cluster of three nodes on this machine, one of which is killed in the middle: the same bytes."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import gcond
from gcond.graph import sent_store
from gcond.graph.column_work import Hops
from gcond.graph.stored_graph import on_engine
from gcond.linalg.tall import row_blocks
from gcond.runtime.engines import open_engine
from graph.watched_work import WatchedHops
from streamed import packed, small_pieces, streamed

pytestmark = pytest.mark.slow
PATHS = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
WAYS = pytest.mark.parametrize("send_store", [False, True], ids=["shared", "sent"])
DENIED = "not-here"
"""What no process of the cluster may open: whatever lies in a folder of this name."""
DENY = f"""
import sys

def deny(event, arguments):
    if event == "open" and "/{DENIED}/" in str(arguments[0]) + "/":
        raise FileNotFoundError(2, "this machine has no such folder", str(arguments[0]))

sys.addaudithook(deny)
"""
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


@pytest.fixture
def cluster(tmp_path_factory):
    at_start = tmp_path_factory.mktemp("at-start")
    (at_start / "sitecustomize.py").write_text(DENY)  # Python runs it before anything else
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{at_start}{os.pathsep}{PATHS}")  # the nodes' workers import from here
        cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
        try:
            for _ in range(2):
                cluster.add_node(**NODE)
            cluster.wait_for_nodes()
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def whole(matrix):
    return torch.cat([rows for _, rows in row_blocks(matrix)])


def until(condition):
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def alive():
    import ray

    return sum(node["Alive"] for node in ray.nodes())


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(sent_store, "PIECE_BYTES", 600)


@WAYS
def test_columns_whose_node_was_killed_are_done_elsewhere(send_store, cluster, make_graph, tmp_path, small_parts):
    """The killed node is at work: its columns have begun and have not ended."""
    graph = packed(make_graph(), tmp_path)
    signs = tmp_path / "signs"
    signs.mkdir()
    with small_pieces(columns=2), open_engine("ray", address=cluster.address) as engine:
        alone = whole(graph.inputs.spread(graph.stored, Hops(2), "mean"))
        inputs = on_engine(graph, engine, send_store=send_store).inputs
        found = []
        work = threading.Thread(
            target=lambda: found.append(inputs.spread(inputs.stored, WatchedHops(str(signs)), "mean"))
        )
        work.start()
        victim = cluster.list_all_nodes()[-1]
        until(lambda: list(signs.glob(f"{victim.node_id}.*")))
        begun = len(list(signs.iterdir()))
        cluster.remove_node(victim, allow_graceful=False)
        until(lambda: alive() == 2)
        (signs / "go").touch()
        work.join()
        assert torch.equal(whole(found[0]), alone)
        tries = len(list(signs.iterdir())) - 1
    assert begun >= 1
    assert tries > graph.num_features // 2  # one group at least was begun again


@WAYS
def test_propagating_and_condensing_go_on_when_a_node_is_killed(send_store, cluster, make_graph, tmp_path):
    graph = make_graph(sizes=(300, 200, 100), features=16)
    packed(graph, tmp_path)
    place = tmp_path / f"{graph.name}.gcond"
    with small_pieces(columns=2):
        here = streamed(place)
        expected = gcond.propagate(here, hops=2).clone()
        small = gcond.condense(here, nodes=9, method="clusters", teacher="ridge")
        for path in (place / "derived").glob("*.npy"):
            path.unlink()
        killed = []

        def tick(what, done, total, detail=""):
            if what == "2 hops of the graph" and done >= 2 and not killed:
                killed.append(what)
                cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)

        there = streamed(place)
        there = there.with_streaming(dataclasses.replace(there.streaming, tick=tick))
        with open_engine("ray", address=cluster.address) as engine:
            found = gcond.propagate(on_engine(there, engine, send_store=send_store), hops=2)
            assert killed
            again = gcond.condense(
                there, nodes=9, method="clusters", teacher="ridge", engine=engine, send_store=send_store
            )
            until(lambda: alive() == 2)
    assert torch.equal(found, expected)
    assert again.sha256 == small.sha256


def test_a_store_that_workers_cannot_see_is_refused_in_a_sentence(cluster, make_graph, tmp_path, monkeypatch):
    graph = packed(make_graph(), tmp_path)
    with small_pieces(columns=2), open_engine("ray", address=cluster.address) as engine:
        there = on_engine(graph, engine)
        plain = type(there.arrays).__reduce__

        def elsewhere(self):
            make, (kind, values) = plain(self)
            return make, (kind, values | {"folder": Path("/nowhere/g.gcond")})

        monkeypatch.setattr(type(there.arrays), "__reduce__", elsewhere)
        with pytest.raises(gcond.GcondError, match=r"a worker cannot read .*: the store must be at"):
            there.inputs.kept("gcn", 1)
    assert not list(graph.arrays.folder.glob("derived/*.part"))


def test_machines_without_the_folder_of_the_store_are_sent_what_they_need(cluster, make_graph, tmp_path, small_parts):
    """No process of the cluster can open anything in that folder, of which the first refusal is the proof."""
    graph = make_graph(sizes=(300, 200, 100), features=16)
    (tmp_path / DENIED).mkdir()
    here = packed(graph, tmp_path / DENIED)
    with small_pieces(columns=2):
        expected = gcond.propagate(here, hops=2).clone()
        small = gcond.condense(here, nodes=9, method="clusters", teacher="ridge")
        for path in (here.arrays.folder / "derived").glob("*.npy"):
            path.unlink()
        with open_engine("ray", address=cluster.address) as engine:
            with pytest.raises(gcond.GcondError, match=r"a worker cannot read .*, or be sent there with send_store="):
                gcond.propagate(on_engine(here, engine), hops=2)
            found = gcond.propagate(on_engine(here, engine, send_store=True), hops=2)
            again = gcond.condense(here, nodes=9, method="clusters", teacher="ridge", engine=engine, send_store=True)
    assert torch.equal(found, expected)
    assert again.sha256 == small.sha256


def test_columns_are_let_go_of_when_they_are_done(cluster, make_graph, tmp_path, monkeypatch):
    """What the command holds in the object store: the adjacency, and columns of the tasks that are at work."""
    from ray._private.worker import global_worker

    graph = packed(make_graph(features=16), tmp_path)
    with small_pieces(columns=2), open_engine("ray", workers=2, address=cluster.address) as engine:
        plain, known = engine.put, []

        def held():
            counts = global_worker.core_worker.get_all_reference_counts()
            return sum(each in counts for each in known)

        def put(value):
            reference = plain(value)
            known.append(reference.hex().encode())
            until(lambda: held() <= 3 + engine.workers)  # Ray lets go of a task's input right after its end
            return reference

        monkeypatch.setattr(engine, "put", put)
        inputs = on_engine(graph, engine, send_store=True).inputs
        inputs.kept("gcn", 2)
        assert len(known) == 3 + 16 // 2
        until(lambda: held() == 3)


def test_an_object_store_that_is_too_small_is_refused_in_a_sentence(cluster, make_graph, tmp_path):
    graph = packed(make_graph(), tmp_path)
    large = dataclasses.replace(graph.arrays, indices=np.zeros(25_000_000, np.int32))
    with open_engine("ray", address=cluster.address) as engine:
        assert sorted(store.jobs for store in engine.object_stores()) == [1, 1, 6]  # results of all come to one
        with pytest.raises(gcond.GcondError, match=r"takes 1\d\d MB .*, and one has 84 MB: start Ray there"):
            sent_store.SentStore(engine, large).width(graph.num_features)
