"""What a condensation will hold, counted before it does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from gcond import models
from gcond.errors import GcondError
from gcond.matching.memory_estimate import COPIES_OF_GRADIENTS, NUMBER, check_memory, gradient_bytes, propagated_bytes
from gcond.matching.structure import NoStructure
from gcond.methods.dc_graph import DCGraph
from gcond.methods.gcond import GCond
from gcond.methods.method import Task

SGC = models.find("sgc")()


def task_of(graph):
    return Task(graph.view("train"), graph.view("val"), graph.num_classes, torch.tensor([3, 3, 3]), 0)


def test_gradients_of_a_wide_backbone_are_counted():
    gcn = models.find("gcn")(hidden=256)
    weights = 100 * 256 + 256 + 256 * 7 + 7
    assert gradient_bytes(gcn, 100, 7) == NUMBER * COPIES_OF_GRADIENTS * 7 * weights
    assert gradient_bytes(SGC, 100, 7) == NUMBER * COPIES_OF_GRADIENTS * 7 * (100 * 7 + 7)


def test_propagated_dense_features_are_counted_until_they_are_there(make_graph):
    inputs = make_graph().view("train").inputs
    one = NUMBER * inputs.num_nodes * inputs.num_features
    assert propagated_bytes(inputs, {0}) == 0
    assert propagated_bytes(inputs, {1}) == one
    assert propagated_bytes(inputs, {2}) == 2 * one  # and what it is made from
    assert propagated_bytes(inputs, {1, 2}) == 3 * one
    inputs.features("gcn", 2)
    assert propagated_bytes(inputs, {1, 2}) == one
    sparse = make_graph(features=60, density=0.05).view("train").inputs
    assert propagated_bytes(sparse, {1, 2}) == 0


@pytest.mark.parametrize(
    ("method", "init", "hops"),
    [
        (GCond(), "sample", {1, 2}),
        (GCond(probe_every=0), "sample", {2}),
        (GCond(sampling="always"), "sample", {1}),
        (GCond(sampling="always", probe_every=0), "propagated-means", {2}),
        (GCond(backbone="appnp", probe_every=0), "sample", set()),
        (DCGraph(), "sample", {1}),
    ],
)
def test_a_method_says_what_it_will_propagate(method, init, hops, make_graph, monkeypatch):
    graph = make_graph()
    task = task_of(graph)
    asked = []
    monkeypatch.setattr(
        "gcond.matching.memory_estimate.propagated_bytes", lambda inputs, these: asked.append(set(these)) or 0
    )
    method.check_memory(task, NoStructure(), 9, init)
    assert [these - {0} for these in asked] == [hops]


def test_validation_nodes_of_an_inductive_graph_have_a_graph_of_their_own(make_graph, monkeypatch):
    task = task_of(make_graph("inductive"))
    asked = []
    monkeypatch.setattr(
        "gcond.matching.memory_estimate.propagated_bytes",
        lambda inputs, these: asked.append((inputs, set(these) - {0})) or 0,
    )
    GCond().check_memory(task, NoStructure(), 9, "sample")
    assert asked == [(task.train.inputs, {2}), (task.val.inputs, {1})]


def test_a_source_that_does_not_fit_propagated_is_refused(make_graph, monkeypatch):
    task = task_of(make_graph(sizes=(400, 250, 150)))
    needed = []
    for hops in ((), (2,)):
        low, high = 0, 10**9
        while high - low > 1:
            middle = (low + high) // 2
            monkeypatch.setattr("gcond.matching.memory_estimate.available_bytes", lambda middle=middle: middle)
            try:
                check_memory(task, NoStructure(), 9, SGC, hops=hops)
                high = middle
            except GcondError:
                low = middle
        needed.append(high)
    assert needed[1] - needed[0] == 2 * NUMBER * 800 * 12


def test_what_is_free_on_the_device_counts(make_graph, monkeypatch):
    task = task_of(make_graph())
    cuda = torch.device("cuda", 0)
    moved = SimpleNamespace(
        train=SimpleNamespace(inputs=task.train.inputs, nodes=task.train.nodes, y=SimpleNamespace(device=cuda)),
        val=task.val,
        num_classes=3,
    )
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (1000, 10**9))
    with pytest.raises(GcondError, match=r"and 0\.0 GB are free"):
        check_memory(moved, NoStructure(), 9, SGC)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (10**9, 10**9))
    check_memory(moved, NoStructure(), 9, SGC)
