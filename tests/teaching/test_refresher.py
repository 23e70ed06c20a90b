from __future__ import annotations

import pytest
import torch

from gcond.graph.column_work import Hops, SumOfHops
from gcond.graph.inputs import Inputs
from gcond.graph.some_rows import some_rows
from gcond.methods.condense import condense
from gcond.teaching import teach
from gcond.teaching.refresher import teach_again


@pytest.mark.parametrize("work", [Hops(0), Hops(2), SumOfHops(3)])
def test_rows_from_the_side_of_their_nodes(make_graph, work):
    graph = make_graph(directed=True, weighted=True)
    inputs = Inputs(graph.x, graph.adjacency)
    nodes = torch.tensor([5, 0, 7])
    torch.testing.assert_close(some_rows(inputs, nodes, work), inputs.spread(graph.x, work)[nodes])


@pytest.mark.parametrize("name", ["ridge", "network", "both", "ensemble"])
def test_labels_for_all_nodes(make_graph, name):
    graph = make_graph(features=300)
    train, val = graph.view("train"), graph.view("val")
    small = condense(graph, method="clusters", nodes=9, teacher="ridge")
    memory = small.x, small.y
    before = [each.clone() for each in memory]
    taught = teach_again(name, train, val, 3, 0, memory=memory)
    again = teach_again(name, train, val, 3, 0, memory=memory)
    assert torch.equal(taught.labels, again.labels)
    assert all(torch.equal(*pair) for pair in zip(memory, before, strict=True))
    torch.testing.assert_close(taught.labels.sum(1), torch.ones(graph.num_nodes))
    assert torch.equal(taught.classes[train.nodes], train.y)
    assert taught.choices["teacher"] == ("both" if name == "ensemble" else name)
    usual = teach("ridge", train, val, 3, 0)
    right = float((taught.classes[val.nodes] == val.y).float().mean())
    assert right > float((usual.classes[val.nodes] == val.y).float().mean()) - 0.2


def test_the_ridge_is_fitted_anew(make_graph):
    graph = make_graph(features=300)
    train, val = graph.view("train"), graph.view("val")
    memory = torch.zeros(9, 300), torch.full((9, 3), 1 / 3)
    assert torch.equal(
        teach_again("ridge", train, val, 3, 0, memory=memory).labels, teach("ridge", train, val, 3, 0).labels
    )
