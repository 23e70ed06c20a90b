"""Membership: AUCs and their intervals against scikit-learn and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from gcond.evaluation.audit.membership import NORMAL_95, Placements, within_classes

scores = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=30)


@given(scores, scores)
def test_the_area_is_scikit_learns(members, others):
    expected = roc_auc_score([1] * len(members) + [0] * len(others), members + others)
    found = Placements.of(members, others)
    assert found.auc == pytest.approx(expected)
    assert found.others.mean() == pytest.approx(expected)
    estimate = found.estimate()
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def delong_by_pairs(members, others) -> float:
    """DeLong's variance from the matrix of all pairs, as the paper writes it."""
    a, b = np.asarray(members)[:, None], np.asarray(others)[None, :]
    wins = (a > b) + 0.5 * (a == b)
    return wins.mean(1).var(ddof=1) / len(members) + wins.mean(0).var(ddof=1) / len(others)


@given(st.lists(st.integers(0, 6), min_size=2, max_size=20), st.lists(st.integers(0, 6), min_size=2, max_size=20))
def test_the_variance_is_that_of_all_pairs(members, others):
    assert Placements.of(members, others).variance == pytest.approx(delong_by_pairs(members, others))


@pytest.mark.parametrize("shift", [0.0, 0.8])
def test_intervals_hold_the_true_area_as_often_as_they_say(shift):
    stream = np.random.default_rng(0)
    true = norm.cdf(shift / np.sqrt(2))
    held = 0
    for _ in range(1000):
        found = Placements.of(stream.normal(shift, 1, 60), stream.normal(0, 1, 90)).estimate()
        held += found.low <= true <= found.high
    assert 0.93 <= held / 1000 <= 0.97


def test_nothing_is_found_where_members_are_drawn_at_random():
    """The attack must not succeed: the members' scores come from the same place as the others'."""
    stream = np.random.default_rng(1)
    confidences = stream.beta(5, 1, 2000)
    false_alarms = 0
    for _ in range(200):
        drawn = stream.permutation(confidences)
        found = Placements.of(drawn[:500], drawn[500:]).estimate()
        false_alarms += not found.low <= 0.5 <= found.high
    assert false_alarms <= 20


def test_means_and_differences_of_models_on_the_same_nodes():
    stream = np.random.default_rng(2)
    truth = stream.normal(0.5, 1, 80), stream.normal(0, 1, 120)
    runs = [Placements.of(*(part + stream.normal(0, 0.1, len(part)) for part in truth)) for _ in range(4)]
    mean = Placements.mean(runs)
    assert mean.auc == pytest.approx(np.mean([one.auc for one in runs]))
    # The same nodes: four runs do not make four times as many.
    assert mean.variance == pytest.approx(runs[0].variance, rel=0.1)
    difference = runs[0].less(runs[1])
    assert difference.auc == pytest.approx(runs[0].auc - runs[1].auc)
    assert difference.variance < 0.1 * runs[0].variance
    assert runs[0].less(runs[0]).estimate(-1.0).value == 0


def test_within_classes_frequencies_do_not_count():
    """Class 1 is scored higher and is most of the members, but within a class nothing differs."""
    stream = np.random.default_rng(3)
    inside, outside = np.r_[np.zeros(50), np.ones(450)], np.r_[np.zeros(450), np.ones(50)]
    members, others = (labels + stream.normal(0, 0.1, 500) for labels in (inside, outside))
    plain = Placements.of(members, others)
    assert plain.auc > 0.8
    found = within_classes([members], [others], inside, outside)
    assert found is not None
    assert found.low < 0.5 < found.high
    by_pairs = [
        (
            len(members[inside == c]) * len(others[outside == c]),
            Placements.of(members[inside == c], others[outside == c]),
        )
        for c in (0, 1)
    ]
    total = sum(pairs for pairs, _ in by_pairs)
    assert found.value == pytest.approx(sum(pairs * one.auc for pairs, one in by_pairs) / total)
    error = sum((pairs / total) ** 2 * one.variance for pairs, one in by_pairs) ** 0.5
    assert found.high - found.low == pytest.approx(2 * NORMAL_95 * error)
    assert within_classes([[1.0]], [[2.0]], np.zeros(1), np.ones(1)) is None


def test_both_kinds_are_needed():
    with pytest.raises(ValueError, match="both kinds"):
        Placements.of([], [1.0])
