"""Graphs that nobody tuned for, and how much of it all is matching; `make accuracy` runs this."""

from __future__ import annotations

import pytest

from accuracy.measuring import compare

pytestmark = pytest.mark.accuracy

# Condensed graphs and runs on each; the Coauthor graphs take minutes a training.
UNTUNED = {
    "amazon-photo": (3, 2),
    "amazon-computers": (3, 2),
    "coauthor-cs": (3, 2),
    "coauthor-physics": (2, 1),
    "dblp": (3, 2),
}
STARTS = {"cora": "35,70,140", "citeseer": "30,60,120", "pubmed": "60"}


@pytest.mark.parametrize("dataset", UNTUNED)
def test_graphs_that_nobody_tuned_for(dataset: str) -> None:
    """Default settings, 1 % of the nodes: better than every selection."""
    seeds, runs = UNTUNED[dataset]
    options = ("--ratio", "1%", "--methods", "random,herding,k-center,gcond")
    found = compare("untuned", dataset, *options, "--seeds", str(seeds), "--runs", str(runs))
    means = {line["method"]: line["mean"] for line in found["lines"]}
    assert means["gcond"] > max(means[method] for method in ("random", "herding", "k-center"))


@pytest.mark.parametrize("dataset", STARTS)
def test_the_start_itself(dataset: str) -> None:
    """How far the centres that X' starts from go without any matching."""
    options = ("--nodes", STARTS[dataset], "--methods", "gcond-x", "--set", "epochs=0")
    found = compare("start", dataset, *options, "--seeds", "5", "--runs", "2")
    assert min(line["mean"] for line in found["lines"]) > 0.5
