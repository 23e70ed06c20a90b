"""Validation nodes of a graph past memory in parts: every model's scores are those on the whole graph."""

from __future__ import annotations

import pytest
import torch

from gcond import models
from gcond.graph.stored_neighbourhood import StoredNeighbourhood
from gcond.linalg import tall
from gcond.runtime.seeds import generator
from gcond.training import Recipe, fit
from gcond.training.class_scores import logits
from gcond.training.view_parts import in_parts
from streamed import packed, small_pieces

SHAPES = {
    "dense": {},
    "directed": {"weighted": True, "directed": True},
    "sparse features": {"features": 60, "density": 0.05},
}


@pytest.fixture(autouse=True)
def pieces():
    with small_pieces(columns=3):
        yield


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", sorted(models.available()))
def test_scores_of_parts_are_those_on_the_whole_graph(name, shape, make_graph, tmp_path, monkeypatch):
    monkeypatch.setattr(tall, "BLOCK_BYTES", 400)
    graph = make_graph(**SHAPES[shape])
    model = models.find(name)()
    weights = model.init(graph.num_features, graph.num_classes, generator(0, "test"))
    there = packed(graph, tmp_path).view("val").focus(model.reach, model.precomputed)
    parts = in_parts(there, model, graph.num_classes)
    assert len(parts) > 1
    val = graph.view("val")
    assert torch.equal(torch.cat([part.y for part in parts]), val.y)
    assert torch.equal(torch.cat([part.source_index[part.nodes] for part in parts]), val.nodes)
    found = torch.cat([logits(model, [weights], part.inputs)[0][part.nodes] for part in parts])
    (whole,) = logits(model, [weights], val.inputs)
    assert torch.allclose(found, whole[val.nodes], atol=1e-5, rtol=1e-4)


def test_what_is_in_memory_stays_one_view(make_graph):
    view = make_graph().view("val")
    assert in_parts(view, models.find("gcn")(), 3) == [view]


def test_outermost_rows_bring_no_edges(make_graph, tmp_path):
    """A node's neighbours may be hubs: their own rows would be most of the graph, for nothing."""
    graph = make_graph()
    (node,) = graph.view("val").nodes[:1]
    around, rows = packed(graph, tmp_path).inputs.around(node[None], 2, 1)
    assert isinstance(around, StoredNeighbourhood)
    assert len(rows) < graph.num_nodes
    own = int((rows == node).nonzero())
    entries = around.adjacency.indptr.diff()
    assert int(entries[own]) == int(graph.adjacency.indptr.diff()[node]) == int(entries.sum()) > 0


@pytest.mark.parametrize("select", ["best-validation", "last"])
def test_a_training_chooses_by_parts_what_it_chooses_by_all(select, make_graph, tmp_path):
    graph, model = make_graph(), models.find("gcn")(hidden=16)
    there = packed(graph, tmp_path)
    recipe = Recipe(epochs=40, validate_every=5, select=select, patience=0)
    found = [
        fit(model, graph.view("train"), each.view("val"), classes=graph.num_classes, seeds=[0, 1], recipe=recipe)
        for each in (there, graph)
    ]
    assert torch.equal(found[0].epoch, found[1].epoch)
    assert torch.allclose(found[0].val_accuracy, found[1].val_accuracy, atol=0.051)  # one of twenty nodes
