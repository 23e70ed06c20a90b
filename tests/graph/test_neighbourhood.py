"""A focused view gives the same outputs for the nodes it is about, whatever the model."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from gcond import models
from gcond.graph.labelled_view import LabelledView
from gcond.graph.neighbourhood import within
from gcond.graph.source_graph import SourceGraph
from gcond.runtime.seeds import generator


def ring(n: int, features: int, *, sparse: bool) -> SourceGraph:
    """A weighted ring with a few chords: long enough that two hops do not reach everywhere."""
    stream = generator(1, "ring")
    nodes = torch.arange(n)
    chords = torch.tensor([[0, 5, 11], [7, 20, 30]])
    edges = torch.cat([torch.stack([nodes, (nodes + 1) % n]), chords], dim=1)
    x = torch.rand(n, features, generator=stream)
    x = x * (torch.rand(n, features, generator=stream) < 0.05) if sparse else x
    weight = torch.rand(edges.shape[1], generator=stream) + 0.1
    y = nodes % 3
    return SourceGraph.build(
        name="ring", x=x, edge_index=edges, edge_weight=weight, y=y, train=nodes[:6], val=nodes[6:9], test=nodes[9:12]
    )


@pytest.mark.parametrize("hops", [0, 1, 2, 5])
def test_within_is_breadth_first_search(hops: int) -> None:
    graph = ring(60, 4, sparse=False)
    reference = nx.from_scipy_sparse_array(graph.adjacency.to_scipy())
    reached = {n for start in (6, 7, 8) for n in nx.single_source_shortest_path_length(reference, start, cutoff=hops)}
    assert within(graph.adjacency, torch.tensor([6, 7, 8]), hops).tolist() == sorted(reached)


def test_within_follows_edges_into_the_nodes() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])  # 0 -> 1 -> 2
    y = torch.tensor([0, 1, 0])
    graph = SourceGraph.build(
        name="path",
        x=torch.ones(3, 1),
        edge_index=edges,
        y=y,
        train=torch.tensor([0, 1]),
        val=torch.tensor([2]),
        test=torch.tensor([], dtype=torch.long),
        directed=True,
    )
    assert within(graph.adjacency, torch.tensor([2]), 1).tolist() == [1, 2]
    assert within(graph.adjacency, torch.tensor([0]), 2).tolist() == [0]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", sorted(models.available()))
def test_outputs_do_not_change(name: str, sparse: bool) -> None:
    model = models.find(name)(**({"hops": 3} if name == "appnp" else {}))
    view = ring(60, 40, sparse=sparse).view("val")
    focused = view.focus(model.reach, model.precomputed)
    assert focused.inputs.num_nodes < view.inputs.num_nodes
    parameters = model.init(40, 3, generator(0, "weights"))
    expected = model.logits(parameters, view.inputs)[view.nodes]
    torch.testing.assert_close(model.logits(parameters, focused.inputs)[focused.nodes], expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(focused.source_index[focused.nodes], view.nodes)


@pytest.mark.parametrize("name", sorted(models.available()))
def test_reach_is_no_larger_than_it_must_be(name: str) -> None:
    """One hop fewer changes the outputs, so the reach is not padded."""
    model = models.find(name)(**({"hops": 3} if name == "appnp" else {}))
    if model.reach == model.precomputed:
        return
    view: LabelledView = ring(60, 40, sparse=False).view("val")
    short = view.focus(model.reach - 1, model.precomputed)
    parameters = model.init(40, 3, generator(0, "weights"))
    expected = model.logits(parameters, view.inputs)[view.nodes]
    assert not torch.allclose(model.logits(parameters, short.inputs)[short.nodes], expected, rtol=1e-4, atol=1e-5)
