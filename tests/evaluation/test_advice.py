"""The sentences that a comparison ends with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gcond.evaluation.advice import advise
from gcond.evaluation.compare import break_even, not_distinguishable, paired_p_value
from gcond.results.comparison import Comparison, Line
from gcond.results.source_summary import SourceSummary

SOURCE = SourceSummary("city", "0" * 64, "transductive", 1000, 5000, 10, 2, (), (50, 50), 100_000)
WHOLE = Line(
    method="whole",
    kind="whole",
    model="gcn",
    nodes=1000,
    ratio=1.0,
    edges=5000,
    bytes=100_000,
    mean=0.80,
    std=0.01,
    n=10,
    kept=1.0,
    condense_cpu_seconds=0.0,
    train_cpu_seconds=10.0,
    peak_rss_mb=None,
    break_even=None,
    mark="",
    p_value=None,
    graphs=(),
)
GOOD = replace(
    WHOLE,
    method="gcond",
    kind="learned",
    nodes=20,
    ratio=0.02,
    bytes=1000,
    mean=0.79,
    kept=0.79 / 0.80,
    condense_cpu_seconds=30.0,
    train_cpu_seconds=4.0,
    break_even=6,
    mark="best",
)
CORESET = replace(
    GOOD,
    method="herding",
    kind="selected",
    mean=0.70,
    kept=0.70 / 0.80,
    condense_cpu_seconds=1.0,
    break_even=1,
    mark="",
)


def sentences(*lines: Line) -> str:
    return "\n".join(advise(Comparison(SOURCE, (WHOLE, *lines), ("gcn",), seeds=5, runs=10)))


def test_it_says_what_is_kept_and_when_it_pays():
    said = sentences(GOOD, CORESET)
    assert "gcond with 20 nodes keeps 98.8 % of the whole graph's accuracy (gcn: 79.0 of 80.0 %)." in said
    assert "from training number 6 on: it takes 30.0 s once, and saves 6 s per training" in said
    assert "herding" not in said


def test_a_coreset_that_does_as_well_is_named():
    said = sentences(GOOD, replace(CORESET, mean=0.785, kept=0.98, mark="tied", p_value=0.4))
    assert "herding (a coreset) does as well here: 78.5 % against 79.0 %" in said
    assert "p = 0.40" in said
    assert "Condensing by herding pays in time from the first training on." in said


def test_a_tie_for_want_of_seeds_is_no_advice():
    assert "herding" not in sentences(GOOD, replace(CORESET, mark="tied", p_value=0.3))


def test_the_smallest_budget_that_is_as_good_is_named():
    larger = replace(GOOD, nodes=40, mean=0.793, kept=0.793 / 0.80)
    assert "gcond with 20 nodes" in sentences(GOOD, larger)
    assert "gcond with 40 nodes" in sentences(GOOD, replace(larger, mean=0.81))


def test_what_never_pays_in_time_is_said():
    slow = replace(GOOD, break_even=None)
    assert "it pays in storage, not in time" in sentences(slow)
    assert "it does not pay." in sentences(replace(slow, bytes=200_000))
    assert "it pays in storage, not in time" in sentences(replace(slow, kind="selected"))
    assert "it does not pay." in sentences(replace(slow, kind="selected", bytes=200_000))


def test_of_what_was_not_timed_nothing_is_said():
    assert "time" not in sentences(replace(GOOD, break_even=None, train_cpu_seconds=None))


def test_poor_accuracy_is_not_sold():
    assert "at best: try a larger budget" in sentences(replace(GOOD, mean=0.6, kept=0.75))


def test_more_bytes_than_the_source_are_said():
    said = sentences(replace(GOOD, bytes=150_000))
    assert "With gcond, 2.0 % of the nodes are 150 % of the bytes: most of them are its 5,000 edges." in said
    wide = replace(SOURCE, features=5000)
    lines = (WHOLE, replace(GOOD, nodes=20, bytes=500_000))
    said = "\n".join(advise(Comparison(wide, lines, ("gcn",), seeds=5, runs=10)))
    assert "500 % of the bytes: the condensed features are dense, and the source keeps its own sparse." in said
    assert "bytes" not in sentences(GOOD)


def test_nothing_is_said_of_nothing():
    assert sentences() == ""


@pytest.mark.parametrize(
    ("condense", "small", "whole", "expected"),
    [(30, 4, 10, 6), (30, 5, 10, 7), (0, 5, 10, 1), (1, 5, 5, None), (1, 6, 5, None), (29, 4, 10, 5)],
)
def test_break_even_is_the_first_training_that_pays(condense, small, whole, expected):
    found = break_even(condense, small, whole)
    assert found == expected
    if found is not None:
        assert condense + found * small < found * whole
        assert condense + (found - 1) * small >= (found - 1) * whole


def test_significance_is_scipys_paired_test():
    from scipy.stats import ttest_1samp

    first, second = [0.8, 0.82, 0.79, 0.81], [0.78, 0.79, 0.79, 0.77]
    differences = [a - b for a, b in zip(first, second, strict=True)]
    assert paired_p_value(first, second) == pytest.approx(ttest_1samp(differences, 0).pvalue)
    assert paired_p_value(first, first) == 1.0
    assert paired_p_value([0.8], [0.7]) is None
    assert paired_p_value([0.5, 0.75], [0.25, 0.5]) == 0.0


def test_too_few_seeds_tell_nothing_apart_and_so_mark_nothing():
    far, best = [0.61, 0.66], [0.80, 0.82]
    assert paired_p_value(best, far) > 0.05  # 17 points behind, and the test cannot see it
    assert not not_distinguishable(best, far)
    assert not not_distinguishable(best * 2, far * 2)
    assert not_distinguishable([0.7, 0.8], [0.7, 0.8])  # the very same
    near = [0.80, 0.81, 0.80, 0.82, 0.81]
    assert not_distinguishable(near, [0.81, 0.80, 0.81, 0.81, 0.80])
    assert not not_distinguishable(near, [each - 0.19 + place / 100 for place, each in enumerate(near)])
