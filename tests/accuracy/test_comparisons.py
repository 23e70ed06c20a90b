"""Graphs that nobody tuned for, and how much of it all is matching; `make accuracy` runs this."""

from __future__ import annotations

import pytest

from accuracy.measuring import compare

pytestmark = pytest.mark.accuracy

# Condensed graphs and runs on each; the Coauthor graphs take minutes a training.
UNTUNED = {
    "amazon-photo": ("3", "2"),
    "amazon-computers": ("3", "2"),
    "coauthor-cs": ("3", "2"),
    "coauthor-physics": ("2", "2", "--train", "validate_every=10"),
    "dblp": ("3", "2"),
}
# 1 % is more than the labelled nodes here, and all of those do as well as the whole graph: nothing is left to gain.
SATURATED = {"coauthor-physics"}
STARTS = {"cora": "35,70,140", "citeseer": "30,60,120", "pubmed": "60"}


@pytest.mark.parametrize("dataset", UNTUNED)
def test_graphs_that_nobody_tuned_for(dataset: str) -> None:
    """Default settings, 1 % of the nodes: better than every selection, where there is something to gain."""
    seeds, runs, *more = UNTUNED[dataset]
    options = ("--ratio", "1%", "--methods", "random,herding,k-center,gcond", "--seeds", seeds, "--runs", runs, *more)
    found = compare("untuned", dataset, *options)
    means = {line["method"]: line["mean"] for line in found["lines"]}
    best = max(means[method] for method in ("random", "herding", "k-center"))
    if dataset in SATURATED:
        assert best >= means["whole"] - 0.005
        assert means["gcond"] > best - 0.01
    else:
        assert means["gcond"] > best


@pytest.mark.parametrize("dataset", STARTS)
def test_the_start_itself(dataset: str) -> None:
    """How far the centres that X' starts from go without any matching."""
    options = ("--nodes", STARTS[dataset], "--methods", "gcond-x", "--set", "epochs=0")
    found = compare("start", dataset, *options, "--seeds", "5", "--runs", "2")
    assert min(line["mean"] for line in found["lines"]) > 0.5
