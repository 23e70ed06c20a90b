"""Names of nodes: kept in the graph and its file, out of its fingerprint, and found again."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.errors import GcondError
from gcond.graph.node_choice import choose_nodes
from gcond.graph.node_ids import NodeIds
from gcond.graph.source_graph import SourceGraph
from gcond.runtime.tensor_file import read_tensors, write_tensors

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=20, unique=True)
NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20, unique=True)


@given(TEXTS | NUMBERS, st.data())
def test_tensors_and_back_and_any_of_them(given_ids, data):
    ids = NodeIds.of(given_ids, len(given_ids))
    back = NodeIds.from_tensors(ids.tensors(), len(ids))
    assert back == ids
    assert back.to_list() == given_ids
    some = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=10))
    taken = ids.take(torch.tensor(some, dtype=torch.long))
    assert taken.to_list() == [given_ids[at] for at in some]
    if some:  # a slice of another array has tensors of its own as well
        part = NodeIds(ids.values[some[0] :])
        assert NodeIds.from_tensors(part.tensors(), len(part)).to_list() == given_ids[some[0] :]
    assert ids.find([str(given_ids[at]) for at in some], "it").tolist() == some


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["a", "b"], "2 ids for 3 nodes"),
        (["a", "b", "a"], "'a' appears more than once"),
        ([1.5, 2.5, 3.5], "text, or whole numbers"),
        (["a", None, "b"], "text, or whole numbers"),
        (["a", 1, "b"], "text, or whole numbers"),
        ([2**70, 1, 2], "text, or whole numbers"),
    ],
)
def test_ids_that_are_none(ids, words):
    with pytest.raises(GcondError, match=words):
        NodeIds.of(ids, 3)


def test_an_id_that_nobody_has():
    with pytest.raises(GcondError, match=r"'it' has no node with the id 'z'.*like 'a'"):
        NodeIds.of(["a", "b"], 2).find(["b", "z"], "'it'")


def named(make_graph, **options):
    graph = make_graph(**options)
    return dataclasses.replace(graph, ids=NodeIds.of([f"n{at}" for at in range(graph.num_nodes)], graph.num_nodes))


def test_a_graph_keeps_them_in_its_file_and_out_of_its_fingerprint(make_graph, tmp_path):
    graph = named(make_graph)
    graph.save(tmp_path / "g.safetensors")
    back = SourceGraph.load(tmp_path / "g.safetensors")
    assert back.ids == graph.ids
    assert back.sha256 == graph.sha256 == make_graph().sha256
    assert back.nbytes == make_graph().nbytes
    make_graph().save(tmp_path / "bare.safetensors")
    assert SourceGraph.load(tmp_path / "bare.safetensors").ids is None
    assert pickle.loads(pickle.dumps(graph)).ids == graph.ids


def test_the_training_graph_has_those_of_its_own_nodes(make_graph):
    graph = named(make_graph, setting="inductive")
    expected = [f"n{at}" for at in graph.train_mask.nonzero().squeeze(1).tolist()]
    assert graph.training_graph().ids.to_list() == expected


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.update({"ids.ends": t["ids.ends"].flip(0)}),
        lambda t: t.update({"ids.ends": t["ids.ends"] + 1}),
        lambda t: t.pop("ids.text"),
        lambda t: t.pop("ids.ends"),
        lambda t: t.update({"ids.text": t["ids.text"].fill_(0xFF)}),
        lambda t: t.update({"ids.text": t["ids.text"].fill_(0x61)}),
        lambda t: t.update({"ids": torch.zeros(80, dtype=torch.int64)}),
        lambda t: t.update({"ids": torch.zeros(80)}),
    ],
)
def test_damaged_ids_in_a_file(make_graph, tmp_path, change):
    path = tmp_path / "g.safetensors"
    named(make_graph).save(path)
    tensors, metadata = read_tensors(path)
    change(tensors)
    write_tensors(path, tensors, metadata)
    with pytest.raises(GcondError, match=r"g\.safetensors' is not a usable source graph"):
        SourceGraph.load(path)


def test_nodes_by_every_name(make_graph):
    graph = named(make_graph)
    assert choose_nodes(graph, None).tolist() == list(range(80))
    assert choose_nodes(graph, "test").tolist() == graph.test_mask.nonzero().squeeze(1).tolist()
    assert choose_nodes(graph, "unlabelled").tolist() == (graph.y < 0).nonzero().squeeze(1).tolist()
    assert choose_nodes(graph, graph.val_mask).tolist() == graph.val_mask.nonzero().squeeze(1).tolist()
    assert choose_nodes(graph, [3, 1, 3]).tolist() == [3, 1, 3]
    assert choose_nodes(graph, torch.tensor([5, 4])).tolist() == [5, 4]
    assert choose_nodes(graph, ["n7", "n2"]).tolist() == [7, 2]
    assert choose_nodes(make_graph(), ["7", "2"]).tolist() == [7, 2]
    assert choose_nodes(graph, np.array([5, 4])).tolist() == [5, 4]
    assert choose_nodes(graph, [np.int64(5), np.int32(4)]).tolist() == [5, 4]
    assert choose_nodes(graph, np.array(["n7", "n2"])).tolist() == [7, 2]
    assert choose_nodes(graph, graph.val_mask.numpy()).tolist() == graph.val_mask.nonzero().squeeze(1).tolist()


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("tset", "did you mean 'test'"),
        ([], "no node is named"),
        ([80], "node 80, but there are 80 nodes"),
        ([-1], "node -1"),
        ([1, "n2"], "one kind or the other"),
        ([1.5], "one kind or the other"),
        ([True], "one kind or the other"),
        (["nobody"], "no node with the id 'nobody'"),
        (3, r"nodes=3 is no list of nodes: write \[3\]"),
        (torch.tensor(3), r"write \[3\]"),
        (np.array([1.5]), "one kind or the other"),
        (np.ones(3, dtype=bool), "must be \\[80\\]"),
        (torch.ones(3, dtype=torch.bool), "must be \\[80\\]"),
        (torch.zeros(80, dtype=torch.bool), "no node is named"),
    ],
)
def test_nodes_that_are_none(make_graph, nodes, words):
    with pytest.raises(GcondError, match=words):
        choose_nodes(named(make_graph), nodes)


def test_a_part_without_nodes(make_graph):
    graph = dataclasses.replace(make_graph(), y=make_graph().y.clamp(min=0))
    with pytest.raises(GcondError, match="has no unlabelled nodes"):
        choose_nodes(graph, "unlabelled")


def test_a_packed_store_keeps_them(make_graph, tmp_path):
    from gcond.data.load_request import Request
    from gcond.data.packed_store import load
    from gcond.data.store_writing import write_store

    graph = named(make_graph)
    write_store(tmp_path / "g.gcond", graph)
    back = load(tmp_path / "g.gcond", Request("g"))
    assert back.ids == graph.ids
    assert back.sha256 == graph.sha256
    assert pickle.loads(pickle.dumps(back)).ids == graph.ids
