from __future__ import annotations

import pytest
import torch

from gcond.graph.column_work import Hops, SumOfHops
from gcond.graph.inputs import Inputs
from gcond.graph.some_rows import some_rows
from gcond.methods.condense import condense
from gcond.teaching import teach
from gcond.teaching.refresher import teach_again
from gcond.teaching.ridge import ridge_scores
from gcond.teaching.sketched_ridge import sketched_ridge_scores


@pytest.fixture
def views(make_graph):
    graph = make_graph(features=300, directed=True, weighted=True, sizes=(50, 40, 30))
    return graph.view("train"), graph.view("val")


@pytest.mark.parametrize("work", [Hops(0), Hops(2), SumOfHops(3)])
def test_rows_from_the_side_of_their_nodes(make_graph, work):
    graph = make_graph(directed=True, weighted=True)
    inputs = Inputs(graph.x, graph.adjacency)
    nodes = torch.tensor([5, 0, 7])
    torch.testing.assert_close(some_rows(inputs, nodes, work), inputs.spread(graph.x, work)[nodes])


def test_sketched_scores_are_those_of_the_ridge_but_for_lengths(views):
    """On labelled nodes, whose lengths are exact, and before smoothing, all is the same; elsewhere up to a factor."""
    train, val = views
    plain, sketched = ridge_scores(train, val, 3, 0), sketched_ridge_scores(train, val, 3, 0)
    agree = plain.scores.argmax(1) == sketched.scores.argmax(1)
    assert float(agree.float().mean()) > 0.9
    if plain.own_share == sketched.own_share == 1 and plain.penalty == sketched.penalty:
        torch.testing.assert_close(plain.scores[train.nodes], sketched.scores[train.nodes], rtol=1e-3, atol=1e-4)


def test_where_there_is_nothing_to_gain_it_is_the_ridge(make_graph):
    graph = make_graph(features=12)
    train, val = graph.view("train"), graph.view("val")
    plain, sketched = ridge_scores(train, val, 3, 0), sketched_ridge_scores(train, val, 3, 0)
    assert torch.equal(plain.scores, sketched.scores)


@pytest.mark.parametrize("name", ["auto", "ridge", "network", "both"])
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
    assert taught.choices["teacher"] == name or name == "auto"
    usual = teach("ridge", train, val, 3, 0)
    right = float((taught.classes[val.nodes] == val.y).float().mean())
    assert right > float((usual.classes[val.nodes] == val.y).float().mean()) - 0.2


def test_the_ridge_speaks_alone_unless_a_network_was_much_better(make_graph):
    graph = make_graph(features=300)
    train, val = graph.view("train"), graph.view("val")
    small = condense(graph, method="clusters", nodes=9, teacher="ridge")
    for reached, teacher in ((None, "ridge"), (0.1, "ridge"), (0.9999, "both")):
        taught = teach_again("auto", train, val, 3, 0, memory=(small.x, small.y), reached=reached)
        alone = teach_again("ridge", train, val, 3, 0, memory=(small.x, small.y))
        expected = teacher if alone.choices["val_accuracy"] < 0.95 else "ridge"
        assert taught.choices["teacher"] == expected
        assert (expected == "ridge") == torch.equal(taught.labels, alone.labels)
