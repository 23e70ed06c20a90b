"""Thresholds of A': what was dropped comes back from Φ, and every δ is trained on the graph that it leaves."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from gcond.errors import GcondError
from gcond.evaluation.evaluate import evaluate
from gcond.evaluation.thresholds import shipped_delta, threshold_sweep, thresholded, unthresholded
from gcond.matching.pairs import EPSILON
from gcond.methods.condense import condense

QUICK = {"epochs": 5}
OPTIONS = {"epochs": 2, "outer": 2, "inner": 1, "structure_hidden": 8, "init": "sample", "probe_every": 0}


def learned(source, **options):
    return condense(source, method="gcond", nodes=12, **(OPTIONS | options))


@pytest.fixture(scope="module")
def source(make_graph):
    return make_graph()


@pytest.fixture(scope="module")
def small(source):
    return learned(source, delta=0.08)


def literal(small):
    """g_Φ(X') of the paper's equation (7), pair by pair, with the statistics that the file keeps."""
    phi, x = {key: tensor.double() for key, tensor in small.structure.items()}, small.x.double()

    def norm(values, place):
        scaled = (values - phi[f"mean{place}"]) / (phi[f"variance{place}"] + EPSILON).sqrt()
        return torch.relu(scaled * phi[f"gamma{place}"] + phi[f"beta{place}"])

    n = len(x)
    score = torch.zeros(n, n, dtype=torch.double)
    for i in range(n):
        for j in range(n):
            hidden = norm(x[i] @ phi["target"] + x[j] @ phi["source"], 0)
            score[i, j] = norm(hidden @ phi["weight1"], 1) @ phi["weight2"] + phi["bias2"][0]
    return score


def test_a_is_made_again_as_the_paper_writes_it(small):
    score = literal(small)
    expected = torch.sigmoid((score + score.T) / 2).fill_diagonal_(0)
    torch.testing.assert_close(unthresholded(small).double(), expected, atol=1e-5, rtol=1e-5)


def test_at_its_own_threshold_a_graph_is_itself(small):
    again = thresholded(small, 0.08)
    assert 0 < small.num_edges < 12 * 11  # else nothing was chosen
    assert torch.equal(again.edge_index, small.edge_index)
    torch.testing.assert_close(again.edge_weight, small.edge_weight)


def test_lower_thresholds_bring_edges_back(small):
    assert thresholded(small, 0.0).num_edges == 12 * 11
    counts = [thresholded(small, delta).num_edges for delta in (0.0, 0.08, 0.1, 0.5, 0.99)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[1]


def test_directed_sources_keep_their_directions(make_graph):
    small = learned(make_graph(directed=True), delta=0.08)
    score = literal(small)
    torch.testing.assert_close(
        unthresholded(small).double(), torch.sigmoid(score).fill_diagonal_(0), atol=1e-5, rtol=1e-5
    )
    assert torch.equal(thresholded(small, 0.08).edge_index, small.edge_index)


def test_shrunk_weights_are_shrunk_by_the_new_threshold(source):
    small = learned(source, delta=0.08, sparsify="shrink")
    torch.testing.assert_close(thresholded(small, 0.08).edge_weight, small.edge_weight)
    dense = unthresholded(small)
    assert float(thresholded(small, 0.05).edge_weight.max()) == pytest.approx(float(dense.max()) - 0.05)


def test_without_phi_what_was_shrunk_is_added_again(source):
    small = learned(source, delta=0.08, sparsify="shrink")
    bare = dataclasses.replace(small, structure={})
    kept = unthresholded(small) > 0.08
    torch.testing.assert_close(unthresholded(bare)[kept], unthresholded(small)[kept])
    assert not bool(unthresholded(bare)[~kept].any())


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
    epochs = []
    points = threshold_sweep(
        small,
        source,
        [0.0, 0.95, 0.99],
        runs=1,
        recipe=QUICK,
        on_progress=lambda _, done, total: epochs.append((done, total)),
    )
    assert [point.density > 0 for point in points] == [True, False, False]
    assert points[1].mean == points[2].mean
    assert epochs[-1] == (10, 10)


def test_progress_counts_over_all_thresholds(source, small):
    told = []
    threshold_sweep(
        small, source, [0.0, 0.99], runs=1, recipe=QUICK, on_progress=lambda _, done, total: told.append((done, total))
    )
    assert told[-1] == (10, 10)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_the_papers_thresholds_and_the_shipped_one(source, small):
    points = threshold_sweep(small, source, runs=1, recipe=QUICK)
    assert [point.delta for point in points] == [0.01, 0.05, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8]
    assert shipped_delta(small) == 0.08


def test_scores_are_not_carried_over(source, small):
    [score] = evaluate(small, on=source, runs=1, recipe=QUICK)
    scored = small.with_scores([score.to_json()])
    assert thresholded(scored, 0.2).provenance.scores == ()


@pytest.mark.parametrize("delta", [-0.1, 1.0, float("nan")])
def test_thresholds_that_are_none(small, delta):
    with pytest.raises(GcondError, match="at least 0 and below 1"):
        thresholded(small, delta)


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


def test_a_foreign_phi_is_refused(small):
    broken = dataclasses.replace(small, structure=small.structure | {"source": torch.zeros(3, 8)})
    with pytest.raises(GcondError, match="do not fit"):
        unthresholded(broken)
