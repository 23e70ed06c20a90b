"""Closeness: distances against SciPy's, copies, and what each space sees."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from conftest import random_graph
from gcond.condensed import CondensedGraph
from gcond.evaluation.audit import closeness as module
from gcond.evaluation.audit.closeness import closeness, nearest_two
from gcond.graph.features import compact
from gcond.linalg.sparse import dense, gcn_normalise
from gcond.methods.condense import condense


def bare(x: torch.Tensor) -> CondensedGraph:
    return CondensedGraph(x, torch.arange(len(x)) % 3, torch.empty(2, 0, dtype=torch.long), torch.empty(0))


@pytest.mark.parametrize("density", [0.05, 1.0])
@pytest.mark.parametrize("block", [1, 64 * 2**20])
def test_the_two_nearest_are_scipys(monkeypatch, density, block):
    monkeypatch.setattr(module, "BLOCK_BYTES", block)
    graph = random_graph(density=density, features=40)
    queries = random_graph(seed=1, density=density, features=40).x
    index, found = nearest_two(queries, graph.x)
    expected = cdist(dense(queries).double(), dense(graph.x).double())
    assert found == pytest.approx(np.sort(expected, axis=1)[:, :2])
    assert np.take_along_axis(expected, index, 1) == pytest.approx(found)
    everyone = np.arange(graph.num_nodes)
    _, apart = nearest_two(graph.x, graph.x, everyone)
    between = cdist(dense(graph.x).double(), dense(graph.x).double())
    np.fill_diagonal(between, np.inf)
    assert apart == pytest.approx(np.sort(between, axis=1)[:, :2])


@pytest.mark.parametrize("density", [0.05, 1.0])
def test_mixed_forms_are_measured_alike(density):
    graph = random_graph(density=density, features=40)
    queries = dense(random_graph(seed=2, density=1 - density * 0.9, features=40).x)
    plain, other = (nearest_two(form, graph.x)[1] for form in (queries, compact(queries)))
    assert plain == pytest.approx(other)


def test_copies_are_counted_and_at_no_distance():
    graph = random_graph()
    x = torch.cat([dense(graph.x)[[3, 5]], dense(graph.x)[[7]] + 1e-4, dense(graph.x)[:3].mean(0, keepdim=True)])
    features, _ = closeness(bare(x), graph, "four")
    assert (features.subject, features.space, features.copies) == ("four", "features", 2)
    assert features.nearest.least == 0
    assert features.ratio.least == 0
    assert features.sampled == graph.num_nodes
    nearest = cdist(x.double(), dense(graph.x).double()).min(1)
    assert features.nearest.median == pytest.approx(float(np.median(nearest)))
    assert features.nearest.most == pytest.approx(float(nearest.max()))
    assert features.closer == (nearest < features.between.median).mean()


def test_random_nodes_are_copies_and_means_are_not(make_graph):
    graph = make_graph(sizes=(60, 60, 60))
    chosen, _ = closeness(condense(graph, method="random", nodes=9), graph, "random")
    made, _ = closeness(condense(graph, method="clusters", nodes=9), graph, "clusters")
    assert (chosen.copies, made.copies) == (9, 0)
    assert made.nearest.least > 0


def test_what_two_hops_make_is_compared(make_graph):
    graph = make_graph()
    small = condense(graph, method="random", nodes=9)
    _, after = closeness(small, graph, "random")
    operator = gcn_normalise(graph.adjacency)
    there = (operator @ (operator @ dense(graph.x))).double()
    own = gcn_normalise(small.adjacency())
    here = (own @ (own @ small.x)).double()
    distances = np.sort(cdist(here, there), axis=1)
    assert after.space == "propagated"
    assert after.nearest.median == pytest.approx(float(np.median(distances[:, 0])), rel=1e-4)
    assert after.ratio.median == pytest.approx(float(np.median(distances[:, 0] / distances[:, 1])), rel=1e-4)


def test_only_what_condensing_saw_counts(make_graph):
    graph = make_graph("inductive")
    outside = (~graph.train_mask).nonzero().squeeze(1)[:4]
    features, _ = closeness(bare(dense(graph.x)[outside]), graph, "test nodes")
    assert features.copies == 0
    assert features.sampled == int(graph.train_mask.sum())


def test_source_nodes_are_sampled_where_they_are_many(monkeypatch, make_graph):
    monkeypatch.setattr(module, "MOST_SAMPLED", 10)
    graph = make_graph()
    assert next(iter(closeness(bare(dense(graph.x)[:3]), graph, "three"))).sampled == 10


def test_what_does_not_fit_is_left_out_and_said(monkeypatch, make_graph):
    monkeypatch.setattr(module, "available_bytes", lambda: 10)
    graph = make_graph()
    features, said = closeness(bare(dense(graph.x)[:3]), graph, "three")
    assert features.space == "features"
    assert "three: distances after 2 hops need" in said


def test_twins_in_the_source_point_at_neither():
    graph = random_graph()
    x = dense(graph.x).clone()
    x[1] = x[0]
    twins = dataclasses.replace(graph, x=x)
    features, _ = closeness(bare(x[:1].repeat(3, 1)), twins, "thrice")
    assert features.ratio.median == 1
    assert features.copies == 3
