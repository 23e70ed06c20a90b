"""GCond-X: the graph goes into the features."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from gcond import methods
from gcond.config import settings
from gcond.errors import GcondError
from gcond.graph.budget import nodes_per_class
from gcond.matching.distance import DISTANCES
from gcond.matching.gradients import class_gradients
from gcond.matching.source_side import FullBatch
from gcond.methods.condense import condense
from gcond.models.sgc import SGC
from gcond.runtime.seeds import generator

QUICK = {"epochs": 3, "outer": 3, "inner": 2, "hidden": 8, "probe_every": 0}


def run(graph, **changes):
    return condense(graph, method="gcond-x", nodes=9, **QUICK | changes)


def test_there_is_no_structure(graph):
    result = run(graph)
    assert result.num_edges == 0
    assert result.structure == {}


def test_the_graph_matters(make_graph):
    graph = make_graph()
    other = dataclasses.replace(graph, adjacency=make_graph(seed=1).adjacency)
    assert run(graph, init="sample").sha256 != run(other, init="sample").sha256


@pytest.mark.parametrize("init", ["sample", "k-center", "means", "propagated-means", "noise"])
def test_gradients_come_closer_to_the_source_s_whatever_it_starts_from(init, make_graph):
    """Measured on backbones that were not learned with."""
    graph, model = make_graph(sizes=(60, 60, 60)), SGC()
    source = FullBatch(model, graph.view("train"), 3)

    def mismatch(result):
        total = 0.0
        for seed in range(5):
            theta = model.init(12, 3, generator(seed, "unseen"))
            ours = class_gradients(model, theta, result.view().by_class(), 3)
            total += float(DISTANCES["column-cosine"](source.gradients(theta, ""), ours).sum())
        return total

    started = run(graph, init=init, epochs=1, outer=1, lr_features=1e-12)
    learned = run(graph, init=init, epochs=20, outer=5, lr_features=0.02)
    assert mismatch(learned) < mismatch(started)


@pytest.mark.parametrize("key", ["structure", "delta", "schedule", "lr_structure"])
def test_settings_of_a_structure_are_refused(key):
    with pytest.raises(GcondError, match=f"has no setting '{key}'"):
        settings.build(methods.find("gcond-x"), {key: 1}, "method 'gcond-x'")


@pytest.mark.parametrize("backbone", ["sgc", "gcn", "sage", "appnp", "cheby"])
def test_every_backbone(backbone, make_graph):
    for graph in (make_graph(), make_graph(directed=True), make_graph("inductive", features=60, density=0.05)):
        assert bool(run(graph, backbone=backbone).x.isfinite().all())


def test_labels_are_in_order_of_class_by_quota(graph):
    result = run(graph, teacher="none", init="sample")
    assert result.y.tolist() == sorted(result.y.tolist())
    assert torch.bincount(result.y).sum() == 9


def test_labels_of_clusters_add_up_to_the_shares_of_the_labelled_nodes(graph):
    result = run(graph, teacher="ridge")
    counts = graph.class_counts()
    if graph.setting == "inductive":  # all nodes are labelled, so that nothing is left to be soft
        assert torch.equal(torch.bincount(result.y), nodes_per_class(9, counts))
        return
    assert result.y.shape == (9, 3)
    torch.testing.assert_close(result.y.sum(1), torch.ones(9))
    torch.testing.assert_close(result.y.sum(0), 9 * counts / counts.sum(), rtol=1e-3, atol=1e-3)
