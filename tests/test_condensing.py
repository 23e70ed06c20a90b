from __future__ import annotations

import pytest
import torch

from gcond.condensing import condense
from gcond.errors import GcondError
from gcond.graph import SourceGraph


def test_budget_by_ratio_and_by_nodes(make_graph):
    graph = make_graph()
    assert condense(graph, method="random", ratio="20%").num_nodes == 16  # of 80 nodes
    assert condense(graph, method="random", ratio=0.2).sha256 == condense(graph, method="random", nodes=16).sha256
    inductive = make_graph("inductive")
    assert condense(inductive, method="random", ratio="20%").num_nodes == round(0.2 * int(graph.train_mask.sum()))


def test_ratio_is_never_more_than_the_labelled(make_graph):
    graph = make_graph()
    assert condense(graph, method="random", ratio=1).num_nodes == int(graph.train_mask.sum())


def test_quota_follows_the_classes(make_graph):
    result = condense(make_graph(sizes=(80, 40, 40)), method="random", nodes=20)
    assert torch.bincount(result.y).tolist() == [10, 5, 5]


def test_pyg_data_is_taken_and_left_alone(make_graph):
    graph = make_graph()
    data = graph.to_pyg()
    before = {key: value.clone() for key, value in data.to_dict().items()}
    result = condense(data, method="random", nodes=9, seed=4)
    assert result.sha256 == condense(graph, method="random", nodes=9, seed=4).sha256
    for key, value in data.to_dict().items():
        assert torch.equal(value, before[key])


def test_herding_is_the_default(make_graph):
    assert condense(make_graph(), nodes=5, epochs=2, hidden=4).provenance.method == "herding"


def test_settings_in_text_are_recorded_as_values(make_graph):
    result = condense(make_graph(), method="k-center", nodes=5, epochs="2", hidden="4", lr="1e-2")
    settings = result.provenance.settings
    assert (settings["epochs"], settings["hidden"], settings["lr"]) == (2, 4, 0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "k-centre", "nodes": 5},
            r"^unknown method 'k-centre' \(did you mean 'k-center'\?\): choose one of ",
        ),
        (
            {"method": "random", "nodes": 5, "epochs": 3},
            "^method 'random' has no setting 'epochs': it has no settings$",
        ),
        ({"method": "random"}, "either a ratio or a number of nodes"),
        ({"method": "random", "nodes": 2}, "2 nodes are too few for 3 classes: use --nodes 3 or more"),
        ({"method": "random", "nodes": 41}, "more than the 39 labelled ones"),
        ({"method": "random", "ratio": "0.1%"}, "ratio 0.1% of 80 nodes is 0 nodes, but there are 3 classes"),
    ],
)
def test_refusals(make_graph, options, message):
    with pytest.raises(GcondError, match=message):
        condense(make_graph(), **options)


def test_one_class_and_one_node():
    one = SourceGraph.build(
        name="one",
        x=torch.ones(1, 1),
        edge_index=torch.empty(2, 0, dtype=torch.long),
        y=torch.zeros(1, dtype=torch.long),
        train=torch.tensor([0]),
        val=torch.tensor([], dtype=torch.long),
        test=torch.tensor([], dtype=torch.long),
    )
    for method, options in {"random": {}, "herding": {"epochs": 2}, "k-center": {"epochs": 2}}.items():
        assert condense(one, method=method, nodes=1, **options).source_index.tolist() == [0]
        assert condense(one.with_setting("inductive"), method=method, ratio=1, **options).num_nodes == 1
