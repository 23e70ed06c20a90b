"""Thresholds of A': every δ is trained on the graph that it leaves."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from gcond.errors import GcondError
from gcond.evaluation.evaluate import evaluate
from gcond.evaluation.threshold_sweep import threshold_sweep
from gcond.matching.sparsification import thresholded
from gcond.methods.condense import condense
from reference.learned import learned

QUICK = {"epochs": 5}


@pytest.fixture(scope="module")
def source(make_graph):
    return make_graph()


@pytest.fixture(scope="module")
def small(source):
    return learned(source, delta=0.08)


def test_without_phi_nothing_below_the_shipped_threshold_can_be_had(source, small):
    bare = dataclasses.replace(small, structure={})
    with pytest.raises(GcondError, match=r"threshold 0.01 is below 0.08.*use 0.08 or more"):
        thresholded(bare, 0.01)
    points = threshold_sweep(bare, source, runs=1, recipe=QUICK)
    assert [point.delta for point in points] == [0.08, 0.1, 0.2, 0.4, 0.6, 0.8]


def test_every_point_is_what_evaluation_says_of_that_graph(source, small):
    points = threshold_sweep(small, source, [0.05, 0.1], runs=2, recipe=QUICK)
    for point in points:
        graph = thresholded(small, point.delta)
        [score] = evaluate(graph, on=source, runs=2, recipe=QUICK)
        assert (point.mean, point.std, point.n) == (score.mean, score.std, 2)
        assert point.density == graph.statistics.density == graph.num_edges / 12**2


def test_equal_graphs_are_trained_on_once(source, small):
    trained = []
    points = threshold_sweep(
        small,
        source,
        [0.0, 0.95, 0.99],
        runs=1,
        recipe=QUICK,
        on_progress=lambda _, done, total: trained.append((done, total)),
    )
    assert [point.density > 0 for point in points] == [True, False, False]
    assert points[1].mean == points[2].mean
    assert trained[-1] == (2, 2)


def test_progress_counts_over_all_thresholds(source, small):
    told = []
    threshold_sweep(
        small, source, [0.0, 0.99], runs=1, recipe=QUICK, on_progress=lambda _, done, total: told.append((done, total))
    )
    assert told[-1] == (2, 2)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_the_papers_thresholds_and_the_shipped_one(source, small):
    points = threshold_sweep(small, source, runs=1, recipe=QUICK)
    assert [point.delta for point in points] == [0.01, 0.05, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8]


def test_no_edges_no_threshold(source):
    with pytest.raises(GcondError, match="no edges"):
        threshold_sweep(condense(source, method="gcond-x", nodes=12, epochs=1, init="sample"), source, runs=1)


def test_equal_weights_leave_nothing_to_choose(source):
    small = condense(source, method="random", nodes=30)
    assert small.num_edges
    with pytest.raises(GcondError, match="weigh the same"):
        threshold_sweep(small, source, runs=1)


def test_thresholds_that_all_leave_the_same_graph_are_refused(source, small):
    with pytest.raises(GcondError, match=r"leave the same graph, whose edges weigh 0\.\d+ to 0\.\d+: only between"):
        threshold_sweep(small, source, [0.9, 0.95, 0.99], runs=1, recipe=QUICK)
    assert len(threshold_sweep(small, source, [0.99], runs=1, recipe=QUICK)) == 1  # one was all that was asked for


def test_a_merged_graph_of_heavy_edges_has_no_threshold_below_1(source):
    merged = condense(source, method="random", nodes=30)
    ends = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    heavy = dataclasses.replace(merged, edge_index=ends, edge_weight=torch.tensor([3.0, 3.0, 7.0, 7.0]))
    with pytest.raises(GcondError, match="edges weigh 3 to 7"):
        threshold_sweep(heavy, source, runs=1, recipe=QUICK)


def test_no_thresholds(source, small):
    with pytest.raises(GcondError, match="no threshold is named"):
        threshold_sweep(small, source, [], runs=1)
