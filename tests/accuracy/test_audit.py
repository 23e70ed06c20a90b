"""Audits of condensed graphs: noise, distances and membership; `make accuracy` runs this."""

from __future__ import annotations

import pytest

from accuracy.measuring import RUNS, audit, gcond

pytestmark = pytest.mark.accuracy

METHODS = ("clusters", "gcond")  # random nodes are in every audit
BUDGETS = [("cora", "35"), ("cora", "70"), ("citeseer", "60")]


@pytest.mark.parametrize(("dataset", "nodes"), BUDGETS)
def test_what_a_person_should_know(dataset: str, nodes: str) -> None:
    """Under every noise condensed graphs are above random nodes; they hold no copy of a source node, as those do."""
    files = []
    for method in METHODS:
        file = RUNS / "audit" / f"{dataset}-{method}-{nodes}.safetensors"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            gcond("condense", dataset, "--nodes", nodes, "--method", method, "-o", str(file), "--threads", "1")
        files.append(str(file))
    found = audit(f"{dataset}-{nodes}", *files, "--on", dataset, "--seeds", "3", "--runs", "3", "--workers", "1")
    assert not found["failures"]
    subjects = {one["name"]: one["kind"] for one in found["subjects"]}
    for one in found["accuracies"]:
        if subjects[one["subject"]] == "condensed":
            assert one["mean"] > _random(found, one), one
    copies = {one["subject"]: one["copies"] for one in found["closeness"] if one["space"] == "features"}
    assert all(count == (int(nodes) if subjects[name] == "random" else 0) for name, count in copies.items())


def _random(found: dict, like: dict) -> float:
    """Accuracy on random nodes under the same noise."""
    names = [one["name"] for one in found["subjects"] if one["kind"] == "random"]
    (mean,) = [
        one["mean"]
        for one in found["accuracies"]
        if one["subject"] in names and all(one[key] == like[key] for key in ("model", "stage", "noise"))
    ]
    return mean
