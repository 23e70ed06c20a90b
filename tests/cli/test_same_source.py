"""Whatever is done with a condensed graph and another graph than its source says so, in Python as in the terminal."""

from __future__ import annotations

import json
import warnings

import pytest

import gcond
from cli.workspace import build_tiny

QUICK = {"runs": 1, "epochs": 2, "device": "cpu"}
ACTS = {
    "evaluate": lambda small, on: gcond.evaluate(small, on=on, **QUICK),
    "train": lambda small, on: gcond.train(small, on=on, **QUICK),
    "tune": lambda small, on: gcond.tune(small, on=on, trials=1, final_runs=1, top=1, **QUICK),
    "search": lambda small, on: gcond.search(small, on=on, model="gcn", grid={"hidden": [4]}, **QUICK),
    "compact": lambda small, on: gcond.compact(small, on=on),
}


@pytest.fixture(scope="module")
def graphs():
    """A graph, one of the same shape with another edge, and a condensed one of the first."""
    graph, other = build_tiny(), build_tiny(name="other", extra_edges=[(0, 1), (1, 0)])
    return graph, other, gcond.condense(graph, method="random", nodes=6)


@pytest.mark.parametrize("act", ACTS)
def test_another_graph_is_warned_of_and_its_own_is_not(act, graphs):
    graph, other, small = graphs
    if act == "tune":
        pytest.importorskip("optuna")
    with pytest.warns(gcond.GcondWarning, match="'other' is not the graph this was made from \\('tiny'\\)") as heard:
        ACTS[act](small, other)
    assert {each.filename for each in heard if each.category is gcond.GcondWarning} == {__file__}  # the caller's line
    with warnings.catch_warnings():
        warnings.simplefilter("error", gcond.GcondWarning)
        ACTS[act](small, graph)


@pytest.mark.parametrize("command", ["train", "tune", "nas", "compact"])
def test_json_says_whether_it_is_the_same(command, workspace, gcond, tmp_path):
    build_tiny(name="other", extra_edges=[(0, 1), (1, 0)]).save(tmp_path / "other.safetensors")
    own = {
        "train": ("--set", "epochs=2"),
        "tune": ("--trials", 1, "--top", 1, "--final-runs", 1, "--set", "epochs=2"),
        "nas": ("--model", "gcn", "--grid", "hidden=4", "--runs", 1, "--set", "epochs=2"),
        "compact": (),
    }[command]
    for source, same in ((workspace.source, True), (tmp_path / "other.safetensors", False)):
        out = tmp_path / f"{command}-{same}.safetensors"
        told = gcond(command, workspace.small, "--on", source, "-o", out, *own, "--json", "-q")
        assert told.code == 0, told.err
        assert json.loads(told.out)["same_source"] is same
        assert ("is not the graph this was made from" in told.err) is not same
