"""DC-Graph: condensed without the graph."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from gcond import methods
from gcond.config import settings
from gcond.errors import GcondError
from gcond.linalg.sparse import Identity, dense
from gcond.methods.condense import condense
from gcond.methods.dc_graph import DCGraph
from gcond.methods.method import Task

QUICK = {"epochs": 3, "outer": 3, "inner": 2, "hidden": 8, "probe_every": 0}


def run(graph, **changes):
    return condense(graph, method="dc-graph", nodes=9, **QUICK | changes)


@pytest.mark.parametrize("backbone", ["sgc", "gcn", "sage", "appnp", "cheby"])
@pytest.mark.parametrize("init", ["sample", "k-center", "means", "noise"])
def test_the_graph_is_never_looked_at(backbone, init, make_graph):
    """Other edges, the same result: nothing of them is in it."""
    graph = make_graph()
    other = dataclasses.replace(graph, adjacency=make_graph(seed=1).adjacency)
    first, second = (run(each, backbone=backbone, init=init) for each in (graph, other))
    assert torch.equal(first.x, second.x)
    assert first.num_edges == second.num_edges == 0


def test_the_probe_tests_on_the_graph(make_graph):
    graph = make_graph()
    other = dataclasses.replace(graph, adjacency=make_graph(seed=1).adjacency)
    histories = [run(each, probe_every=1, probe_share=0.99).provenance.history for each in (graph, other)]
    assert histories[0]["loss"] == histories[1]["loss"]
    assert histories[0]["probe"] != histories[1]["probe"]


def test_what_is_matched_are_the_labelled_nodes_alone(graph):
    train = graph.view("train")
    task = Task(train, graph.view("val"), 3, torch.tensor([3, 3, 3]), 0)
    view = DCGraph().source_view(task)
    assert view.inputs.adjacency == Identity()
    assert torch.equal(dense(view.inputs.x), dense(graph.x)[graph.train_mask])
    assert torch.equal(view.y, graph.y[graph.train_mask])
    assert torch.equal(view.source_index, graph.train_mask.nonzero().squeeze(1))


def test_a_propagated_start_is_refused():
    with pytest.raises(GcondError, match="method 'dc-graph': init must not be propagated-means here"):
        settings.build(methods.find("dc-graph"), {"init": "propagated-means"}, "method 'dc-graph'")


def test_batches_have_no_neighbours(make_graph):
    """All nodes of a class at once are the exact gradients; fewer are others, drawn anew for another seed."""
    graph, other = make_graph(), dataclasses.replace(make_graph(), adjacency=make_graph(seed=1).adjacency)
    for backbone in ("sgc", "gcn", "sage", "appnp", "cheby"):
        exact = run(graph, sampling="never", backbone=backbone)
        whole = run(graph, sampling="always", backbone=backbone)
        torch.testing.assert_close(whole.x, exact.x, rtol=1e-3, atol=1e-4)
        few = run(graph, sampling="always", batch=3, backbone=backbone)
        assert few.sha256 == run(graph, sampling="always", batch=3, backbone=backbone).sha256
        assert torch.equal(few.x, run(other, sampling="always", batch=3, backbone=backbone).x)
        assert not torch.allclose(few.x, exact.x, rtol=1e-3, atol=1e-4)


def test_auto_takes_batches_where_memory_is_short(make_graph):
    graph = make_graph()
    found = {
        (sampling, memory): run(graph, sampling=sampling, memory=memory, batch=3, backbone="gcn").sha256
        for sampling in ("auto", "always", "never")
        for memory in ("1KB", "1GB")
    }
    assert found["auto", "1KB"] == found["always", "1KB"]
    assert found["auto", "1GB"] == found["never", "1GB"]
    assert found["always", "1GB"] != found["never", "1GB"]


@pytest.mark.parametrize(("name", "value"), [("fanout", "3,2"), ("fanout_scaled", "false")])
def test_settings_of_neighbours_are_refused(name, value, make_graph):
    with pytest.raises(GcondError, match=f"{name} is of neighbours, and dc-graph condenses without any: leave it out"):
        run(make_graph(), **{name: value})
