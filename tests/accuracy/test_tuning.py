"""Searches for hyper-parameters on condensed graphs beside the same ones on whole graphs; `make accuracy` runs this."""

from __future__ import annotations

import pytest

from accuracy.measuring import RUNS, gcond, tune

pytestmark = pytest.mark.accuracy

TRIALS = 100
# Nodes of the condensed graph, and what both searches keep: fewer epochs, and fewer runs, where a training is long.
SEARCHES = {
    "cora": ("70", ()),
    "amazon-computers": ("138", ("--set", "epochs=200", "--final-runs", "3")),
}


@pytest.mark.parametrize("dataset", SEARCHES)
def test_searching_on_the_condensed_graph(dataset: str) -> None:
    """It costs less than on the whole graph, condensing included, and ends near what is found there."""
    nodes, held = SEARCHES[dataset]
    file = RUNS / "tune" / f"{dataset}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        gcond("condense", dataset, "--nodes", nodes, "--method", "clusters", "-o", str(file), "--threads", "1")
    options = ("--trials", str(TRIALS), *held, "--workers", "1", "--threads", "1")
    small = tune(f"{dataset}-condensed", str(file), "--on", dataset, *options)
    whole = tune(f"{dataset}-whole", "--whole", dataset, *options)
    assert len(small["trials"]) == len(whole["trials"]) == TRIALS
    cost = small["condense_cpu_seconds"] + small["search_cpu_seconds"] + small["confirm_cpu_seconds"]
    assert cost < whole["search_cpu_seconds"]
    assert _favourite(small)["mean"] > _favourite(whole)["mean"] - 0.02


def _favourite(found: dict) -> dict:
    """The finalist that validation on the whole graph likes best."""
    return next(one for one in found["finalists"] if one["trial"] == found["favourite"])
