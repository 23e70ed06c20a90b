"""The most accurate methods, all test models, and graphs that nobody tuned for; `make accuracy` runs this."""

from __future__ import annotations

import pytest

from accuracy.measuring import compare

pytestmark = pytest.mark.accuracy

# Budgets, and the least test accuracy of a GCN on what `clusters` makes, in %.
BEST = {
    "cora": {35: 82.0, 70: 82.0, 140: 82.0},
    "citeseer": {30: 74.0, 60: 74.0, 120: 74.0},
    "pubmed": {60: 79.5},
}
LEARNED = ("gcond-x", "gcond")
# Condensed graphs and runs on each; the Coauthor graphs take long to test on.
UNTUNED = {
    "amazon-photo": ("5", "5"),
    "amazon-computers": ("5", "5"),
    "coauthor-cs": ("5", "5"),
    "dblp": ("5", "5"),
    "tolokers": ("5", "5"),
}
# Where every model predicts the larger class, by accuracy there is nothing to gain.
LARGER_CLASS = {"tolokers"}


@pytest.mark.parametrize("dataset", BEST)
def test_the_most_accurate(dataset: str) -> None:
    """Clusters reach their floors, what starts from them is never far below, and coarsening is."""
    floors = BEST[dataset]
    options = ("--nodes", ",".join(map(str, floors)), "--methods", "clusters,gcond-x,gcond,coarsening")
    found = compare("best", dataset, *options, "--seeds", "5", "--runs", "10")
    means = {(line["method"], line["nodes"]): 100 * line["mean"] for line in found["lines"]}
    for nodes, floor in floors.items():
        clusters = means["clusters", nodes]
        assert clusters >= floor, nodes
        assert all(means[method, nodes] >= clusters - 0.3 for method in LEARNED), nodes
        assert max(clusters, *(means[method, nodes] for method in LEARNED)) > means["coarsening", nodes]


@pytest.mark.parametrize(("dataset", "nodes"), [("cora", "70"), ("citeseer", "60")])
def test_all_models(dataset: str, nodes: str) -> None:
    """No model that sees neighbours is more than a point below itself on the whole graph, and the mean is above."""
    options = ("--nodes", nodes, "--methods", "clusters", "--models", "all", "--seeds", "5", "--runs", "2")
    found = compare("models", dataset, *options)
    gains = {
        model: sum((1 if line["method"] == "clusters" else -1) * 100 * line["mean"] for line in lines)
        for model in found["models"]
        if (lines := [line for line in found["lines"] if line["model"] == model])
    }
    assert min(gain for model, gain in gains.items() if model != "mlp") > -1
    assert sum(gains.values()) > 0


@pytest.mark.parametrize("dataset", UNTUNED)
def test_graphs_that_nobody_tuned_for(dataset: str) -> None:
    """Default settings, 1 % of the nodes: better than every selection."""
    seeds, runs = UNTUNED[dataset]
    options = ("--ratio", "1%", "--methods", "clusters,random,herding,k-center", "--seeds", seeds, "--runs", runs)
    found = compare("untuned", dataset, *options)
    means = {line["method"]: line["mean"] for line in found["lines"]}
    best = max(means[method] for method in ("random", "herding", "k-center"))
    if dataset in LARGER_CLASS:
        assert means["clusters"] == pytest.approx(means["whole"], abs=0.005)
    else:
        assert means["clusters"] > best
