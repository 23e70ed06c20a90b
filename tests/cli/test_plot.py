"""``gcond plot``: which figures come from what, where they go, and what is refused."""

from __future__ import annotations

import json

import pytest

from cli.workspace import build_tiny
from gcond.methods.condense import condense
from reports.sample_runs import comparison, search, write_result

OPTIONS = {"epochs": 2, "outer": 2, "inner": 1, "structure_hidden": 8, "init": "sample", "delta": 0.08}


@pytest.fixture(scope="session")
def learned():
    return condense(build_tiny(), method="gcond", nodes=9, **OPTIONS)


@pytest.fixture
def file(workspace, learned):
    path = workspace.folder / "learned.safetensors"
    learned.save(path)
    return path


@pytest.fixture
def run(workspace):
    folder = workspace.folder / "run"
    folder.mkdir()
    write_result(folder, comparison())
    write_result(folder, search())
    return folder


def test_all_that_a_learned_file_has(workspace, gcond, file):
    told = gcond("plot", file, "-o", workspace.out, "--json")
    assert told.code == 0
    found = json.loads(told.out)
    assert [figure["kind"] for figure in found["figures"]] == ["graph", "embedding", "curves", "balance"]
    assert [one["kind"] for one in found["left_out"]] == ["threshold"]
    assert "threshold of learned.safetensors is left out" in told.err
    names = sorted(path.name for path in workspace.out.iterdir())
    assert names == [f"learned-{kind}.png" for kind in ("balance", "curves", "embedding", "graph")]


def test_threshold_with_its_source(workspace, gcond, file):
    told = gcond("plot", file, "--on", workspace.source, "--kind", "threshold", "--runs", 1, "-o", "out/t.svg", "-q")
    assert (told.code, told.out, told.err) == (0, "out/t.svg\n", "")
    assert "condensed to 9 nodes by gcond: accuracy and density against δ" in (workspace.out / "t.svg").read_text()


def test_of_a_selected_graph_what_there_is(workspace, gcond):
    told = gcond("plot", workspace.small, "-o", "new/folder", "--format", "svg", "--kind", "all", "--json")
    assert told.code == 0
    kinds = [figure["kind"] for figure in json.loads(told.out)["figures"]]
    assert kinds == ["graph", "embedding", "balance"]
    assert (workspace.folder / "new/folder/small-graph.svg").exists()


def test_a_run(workspace, gcond, run):
    told = gcond("plot", run, "--json")
    assert [figure["out"] for figure in json.loads(told.out)["figures"]] == ["run-budget.png", "run-architectures.png"]
    (run / "nas.json").unlink()
    told = gcond("plot", run, "--json")
    assert [figure["kind"] for figure in json.loads(told.out)["figures"]] == ["budget"]
    assert "architectures" not in told.err


def test_a_file_and_a_run(workspace, gcond, file, run):
    told = gcond("plot", file, run, "--kind", "graph,budget", "-o", workspace.out)
    assert told.code == 0
    assert told.out.split() == [f"{workspace.out}/learned-graph.png", f"{workspace.out}/run-budget.png"]


def test_delta(workspace, gcond, file, learned):
    assert gcond("plot", file, "--kind", "graph", "--delta", 0, "-o", "out/g.svg").code == 0
    assert "by gcond: 36 edges" in (workspace.out / "g.svg").read_text()
    assert learned.num_edges < 72


def test_files_are_left_as_they_were(workspace, gcond, file, run):
    before = workspace.contents()
    assert gcond("plot", file, run, "--kind", "graph,budget", "-o", "out").code == 0
    after = workspace.contents()
    assert {key: after[key] for key in before if key != "out"} == {k: v for k, v in before.items() if k != "out"}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "needs FILE or RUN"),
        (["nowhere.safetensors"], "no file or folder 'nowhere.safetensors'"),
        (["small.safetensors", "--kind", "grapf"], "unknown figure 'grapf'"),
        (["small.safetensors", "--kind", ","], "names no figure"),
        (["small.safetensors", "--kind", "curves"], "no loss curve"),
        (["small.safetensors", "--kind", "threshold"], "add --on SOURCE"),
        (["small.safetensors", "--kind", "threshold", "--on", "tiny.safetensors"], "threshold"),
        (["small.safetensors", "--kind", "budget"], "give a folder with comparison.json"),
        (["run", "--kind", "graph"], "'run' is a run folder"),
        (["out"], "neither comparison.json nor nas.json"),
        (["out", "--kind", "budget"], "has no comparison.json"),
        (["tiny.safetensors"], "a condensed graph is needed"),
        (["small.safetensors", "--runs", "0"], "0 runs are too few"),
        (["small.safetensors", "--kind", "balance", "--delta", "0.1"], "--delta says how to draw the graph"),
        (["small.safetensors", "--kind", "graph", "--delta", "1.5"], "at least 0 and below 1"),
        (["small.safetensors", "--kind", "graph", "-o", "x.pdf"], "ends in .png or .svg"),
        (["small.safetensors", "--kind", "graph", "-o", "x.png", "--format", "svg"], "contradict"),
        (["small.safetensors", "--kind", "graph,balance", "-o", "x.png"], "has room for one figure"),
        (["small.safetensors", "--kind", "graph", "--format", "pdf"], "choose png or svg"),
        (["small.safetensors", "--kind", "graph", "-o", "no/where/x.png"], "does not exist"),
    ],
)
def test_refusals(workspace, gcond, run, argv, said):
    before = workspace.contents()
    told = gcond("plot", *argv)
    assert told.code == 2
    assert said in told.err
    assert told.err.strip().splitlines()[-1].startswith("gcond: ")
    assert told.out == ""
    assert workspace.contents() == before


def test_two_files_of_one_name(workspace, gcond, file):
    other = workspace.out / file.name
    other.write_bytes(file.read_bytes())
    told = gcond("plot", file, other, "--kind", "graph")
    assert told.code == 2
    assert "would both be written to 'learned-graph.png'" in told.err


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"kind": "nas"}',
        '{"kind": "comparison"}',
        '{"kind": "comparison", "source": 1, "lines": [1]}',
        "\udcff",
    ],
)
def test_damaged_runs(workspace, gcond, run, content):
    (run / "comparison.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    told = gcond("plot", run, "--kind", "budget")
    assert told.code == 2
    assert "comparison.json" in told.err


def test_without_the_extra(workspace, gcond, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = gcond("plot", workspace.small)
    assert told.code == 2
    assert "pip install 'gcond[report]'" in told.err
