"""Sparsification of A': what was dropped comes back from Φ, and a finished graph can be thresholded anew."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from gcond.condensed import Score
from gcond.errors import GcondError
from gcond.matching.pairs import EPSILON
from gcond.matching.sparsification import shipped_delta, thresholded, unthresholded
from gcond.methods.condense import condense
from reference.learned import learned


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
    assert shipped_delta(small) == 0.08
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


def test_scores_are_not_carried_over(small):
    scored = small.with_scores([Score("gcn", {}, {}, 0.8, 0.0, (0.8,), 0.8, 1.0)])
    assert thresholded(scored, 0.2).provenance.scores == ()


@pytest.mark.parametrize("delta", [-0.1, 1.0, float("nan")])
def test_thresholds_that_are_none(small, delta):
    with pytest.raises(GcondError, match="at least 0 and below 1"):
        thresholded(small, delta)


def test_a_foreign_phi_is_refused(small):
    broken = dataclasses.replace(small, structure=small.structure | {"source": torch.zeros(3, 8)})
    with pytest.raises(GcondError, match="the weights of the structure are missing or of another shape"):
        unthresholded(broken)


@pytest.mark.parametrize("weight", [torch.zeros(0), torch.zeros(()), torch.zeros(10**6)])
def test_a_phi_of_no_sense_is_refused_before_it_takes_memory(small, weight):
    broken = dataclasses.replace(small, structure=small.structure | {"weight2": weight})
    with pytest.raises(GcondError, match="the weights of the structure are missing or of another shape"):
        thresholded(broken, 0.1)


def test_no_edges_and_no_phi_leave_nothing_to_drop(source):
    bare = condense(source, method="gcond-x", nodes=12, epochs=1, init="sample")
    assert shipped_delta(bare) is None
    with pytest.raises(GcondError, match="no edges"):
        thresholded(bare, 0.1)
