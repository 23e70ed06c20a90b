from __future__ import annotations

import dataclasses

import pytest
import torch

import gcond
from gcond.config import settings
from gcond.errors import GcondError
from gcond.graph.labelled_view import LabelledView
from gcond.methods.clusters import Clusters
from gcond.teaching import teach, teacher

CLASSES = 3
NAMES = ("ridge", "network", "both", "ensemble")


@pytest.fixture(autouse=True)
def brief_networks(monkeypatch):
    """Networks that are trained for a few epochs."""
    monkeypatch.setattr(teacher, "RandomPropagation", Brief)


class Brief(teacher.RandomPropagation):
    def __init__(self, **options):
        super().__init__(**{"epochs": 12, "hidden": 8, "look_every": 4} | options)


def taught(graph, name="ridge", seed=0, val=None):
    return teach(name, graph.view("train"), val or graph.view("val"), CLASSES, seed)


@pytest.mark.parametrize("name", NAMES)
def test_labelled_nodes_keep_their_labels_and_all_others_get_some(name, make_graph):
    graph = make_graph(features=3)
    found = taught(graph, name)
    train = graph.view("train")
    assert found.labels.shape == (graph.num_nodes, CLASSES)
    assert found.labels.dtype == torch.float32
    assert torch.equal(found.labels[train.nodes], torch.eye(CLASSES)[train.y])
    assert torch.equal(found.classes[train.nodes], train.y)
    assert torch.allclose(found.labels.sum(1), torch.ones(graph.num_nodes), atol=1e-5)
    assert bool((found.labels >= 0).all())
    assert found.choices["teacher"] == name
    assert torch.equal(found.labels, taught(graph, name).labels)
    assert not found.labels.requires_grad


@pytest.mark.parametrize("name", ["ridge", "both"])
def test_labels_of_validation_nodes_are_not_copied(name, make_graph):
    graph = make_graph()
    plain, val = taught(graph, name), graph.view("val")
    sure = val.nodes[plain.classes[val.nodes] == val.y][:3]
    assert len(sure) == 3
    y = graph.y.clone()
    y[sure] = (y[sure] + 1) % CLASSES
    flipped = taught(dataclasses.replace(graph, y=y), name)
    # They choose settings, so answers may change, but no label stands there as it was given.
    assert not bool((flipped.classes[sure] == y[sure]).all())
    assert bool((flipped.labels[sure].gather(1, y[sure, None]) < 0.99).all())


def test_validation_accuracy_is_what_it_says(make_graph):
    graph = make_graph(features=2)
    found, val = taught(graph), graph.view("val")
    assert found.choices["val_accuracy"] == float((found.classes[val.nodes] == val.y).double().mean()) < 1


@pytest.mark.parametrize("name", NAMES)
def test_where_all_are_labelled_these_are_the_labels(name, make_graph):
    graph = make_graph("inductive")
    found, train = taught(graph, name), graph.view("train")
    assert torch.equal(found.classes, train.y)
    assert torch.equal(found.labels, torch.eye(CLASSES)[train.y])
    order = torch.randperm(len(train.nodes), generator=torch.Generator().manual_seed(0))
    turned = LabelledView(train.inputs, train.nodes[order], train.y[order], train.source_index)
    assert torch.equal(teach(name, turned, graph.view("val"), CLASSES, 0).labels, found.labels)


@pytest.mark.parametrize("name", NAMES)
def test_poisoned_test_labels_change_nothing(name, make_graph):
    graph = make_graph()
    y = graph.y.clone()
    y[graph.test_mask] = (y[graph.test_mask] + 1) % CLASSES
    poisoned = dataclasses.replace(graph, y=y)
    assert torch.equal(taught(graph, name).labels, taught(poisoned, name).labels)


@pytest.mark.parametrize("name", NAMES)
def test_it_works_without_validation_nodes(name, make_graph):
    graph = make_graph()
    val = graph.view("val")
    found = taught(graph, name, val=LabelledView(val.inputs, val.nodes[:0], val.y[:0], val.source_index))
    assert bool(torch.isfinite(found.labels).all())
    assert "val_accuracy" not in found.choices


def test_an_ensemble_has_its_members(make_graph, monkeypatch):
    reaches = []

    class Counted(Brief):
        def log_probabilities(self, train, val, classes, seed, metric):
            reaches.append((self.hops, seed))
            return super().log_probabilities(train, val, classes, seed, metric)

    monkeypatch.setattr(teacher, "RandomPropagation", Counted)
    taught(make_graph(), "ensemble", seed=5)
    assert len(reaches) == len(teacher.REACHES["ensemble"])
    assert len(set(reaches)) == len(reaches)
    assert {hops for hops, _ in reaches} == {4, 8}


def test_files_from_when_there_was_a_choice_mean_the_ridge():
    assert settings.build(Clusters, {"teacher": "auto"}, "method 'clusters'") == Clusters()
    with pytest.raises(GcondError, match="teacher='oracle'"):
        settings.build(Clusters, {"teacher": "oracle"}, "method 'clusters'")


def test_a_teacher_that_there_is_not_is_refused(make_graph):
    with pytest.raises(GcondError, match="there is no teacher 'oracle': use ridge, network, both, ensemble"):
        gcond.condense(make_graph(), nodes=6, method=Clusters(teacher="oracle"))
