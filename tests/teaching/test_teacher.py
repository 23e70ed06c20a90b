"""Teachers: labels for all nodes, of which validation nodes choose the settings and are told nothing."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from gcond.teaching import calibration as calibrating
from gcond.teaching import candidates, ridge, teach
from gcond.teaching.random_propagation import RandomPropagation

BRIEF = {"epochs": 30, "look_every": 10}


def blind(graph):
    return dataclasses.replace(graph, val_mask=torch.zeros_like(graph.val_mask))


@pytest.mark.parametrize("name", ["ridge", "network", "both"])
@pytest.mark.parametrize("seeing", [True, False])
def test_rows_are_probabilities_and_labelled_nodes_keep_their_class(name, seeing, make_graph):
    graph = make_graph() if seeing else blind(make_graph())
    train, val = graph.view("train"), graph.view("val")
    taught = teach(name, train, val, 3, 0)
    assert taught.labels.shape == (graph.num_nodes, 3)
    assert bool(taught.labels.isfinite().all())
    torch.testing.assert_close(taught.labels.sum(1), torch.ones(graph.num_nodes))
    assert torch.equal(taught.labels[train.nodes], F.one_hot(train.y, 3).float())
    known = graph.test_mask
    assert float((taught.classes[known] == graph.y[known]).float().mean()) > 0.6
    assert ("val_accuracy" in taught.choices) == seeing


def test_labels_of_validation_nodes_are_not_taught(make_graph, monkeypatch):
    """With one setting of each kind left to choose from, they change nothing at all."""
    monkeypatch.setattr(ridge, "PENALTIES", (1.0,))
    monkeypatch.setattr(ridge, "OWN_SHARES", (0.1,))
    monkeypatch.setattr(calibrating, "SHARPNESS", (2.0,))
    graph = make_graph()
    train, val = graph.view("train"), graph.view("val")
    other = dataclasses.replace(val, y=val.y.roll(1))
    assert not torch.equal(other.y, val.y)
    first, second = (teach("ridge", train, each, 3, 0) for each in (val, other))
    assert first.choices["prior"] == second.choices["prior"]
    assert torch.equal(first.labels, second.labels)


def test_where_all_nodes_are_labelled_there_is_nothing_to_teach(make_graph):
    graph = make_graph("inductive")
    train, val = graph.view("train"), graph.view("val")
    taught = teach("ridge", train, val, 3, 0)
    assert torch.equal(taught.classes[train.nodes], train.y)
    assert candidates("auto", train) == ["ridge"]
    assert candidates("auto", make_graph().view("train")) == ["ridge", "network"]


def test_without_validation_nodes_the_network_is_taken_as_it_ends(make_graph):
    """And not as it was when it was first looked at."""
    graph = blind(make_graph())
    train, val = graph.view("train"), graph.view("val")
    ended = RandomPropagation(**BRIEF).log_probabilities(train, val, 3, 0)
    once = RandomPropagation(**BRIEF | {"look_every": 30}).log_probabilities(train, val, 3, 0)
    early = RandomPropagation(**BRIEF | {"epochs": 10}).log_probabilities(train, val, 3, 0)
    assert torch.equal(ended, once)
    assert not torch.equal(ended, early)
