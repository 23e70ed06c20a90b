"""A Ray cluster of three nodes on this machine, one of which is killed in the middle: the same bytes."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
import torch

import gcond
from gcond.graph.column_work import Hops
from gcond.graph.stored_graph import on_engine
from gcond.linalg.tall import row_blocks
from gcond.runtime.engines import open_engine
from graph.watched_work import WatchedHops
from streamed import packed, small_pieces, streamed

pytestmark = pytest.mark.slow
PATHS = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


@pytest.fixture
def cluster():
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PATHS)  # the nodes' workers import from here
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


def test_columns_whose_node_was_killed_are_done_elsewhere(cluster, make_graph, tmp_path):
    """The killed node is at work: its columns have begun and have not ended."""
    graph = packed(make_graph(), tmp_path)
    signs = tmp_path / "signs"
    signs.mkdir()
    with small_pieces(columns=2), open_engine("ray", address=cluster.address) as engine:
        alone = whole(graph.inputs.spread(graph.stored, Hops(2), "mean"))
        inputs = on_engine(graph, engine).inputs
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


def test_propagating_and_condensing_go_on_when_a_node_is_killed(cluster, make_graph, tmp_path):
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
        there = there.with_streaming(type(there.streaming)(there.streaming.memory, None, tick))
        with open_engine("ray", address=cluster.address) as engine:
            found = gcond.propagate(on_engine(there, engine), hops=2)
            assert killed
            again = gcond.condense(there, nodes=9, method="clusters", teacher="ridge", engine=engine)
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
