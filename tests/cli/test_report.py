"""``gcond report`` from its command line to its file."""

from __future__ import annotations

import json
import sys

import pytest

from reports.sample_runs import write_run


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    monkeypatch.setitem(sys.modules, "gcond.reports.figures", None)  # they have tests of their own, and take seconds


def test_a_page_of_a_run_and_a_file(workspace, gcond):
    write_run(workspace.folder / "run")
    done = gcond("report", "run", workspace.small, "-o", "out/p.html", "--title", "Two <b>things</b>", "--json")
    assert done.code == 0
    told = json.loads(done.out)
    page = (workspace.out / "p.html").read_bytes()
    assert told == {"out": "out/p.html", "runs": 2, "graphs": 4, "bytes": len(page)}
    assert b"<title>Two &lt;b&gt;things&lt;/b&gt;</title>" in page
    assert [path.name for path in workspace.out.iterdir()] == ["p.html"]


def test_people_are_told_where_it_is(workspace, gcond):
    done = gcond("report", workspace.small)
    assert done.code == 0
    assert done.out.startswith("wrote page.html (")


def test_the_source_brings_its_names(workspace, gcond):
    assert gcond("report", workspace.small, "--on", workspace.source).code == 0
    other = gcond(
        "condense",
        workspace.source,
        "--nodes",
        6,
        "--method",
        "random",
        "--setting",
        "inductive",
        "-o",
        "i.safetensors",
    )
    assert other.code == 0
    write_run(workspace.folder / "run")
    done = gcond("report", "run", "--on", workspace.source, "--force")
    assert done.code == 0
    assert "warning: no run is of 'tiny'" in done.err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["nowhere.safetensors"], "there is no file 'nowhere.safetensors'"),
        (["out"], "'out' is not a run: it has neither comparison.json nor nas.json"),
        (["tiny.safetensors"], "is a source graph: a page is about condensed files or run folders"),
        (["small.safetensors", "-o", "page.pdf"], "'page.pdf' is not a page: give a name that ends in .html with -o"),
        (["small.safetensors", "-o", "small.safetensors"], "is what the page is about"),
        (["small.safetensors", "-o", "no/page.html"], "the folder 'no' does not exist"),
        (["small.safetensors", "--on", "nothing"], "nothing"),
        ([], "runs"),
    ],
)
def test_refusals(argv, sentence, workspace, gcond):
    before = workspace.contents()
    done = gcond("report", *argv)
    assert (done.code, done.out) == (2, "")
    assert sentence.lower() in done.err.lower()
    assert done.err.count("\n") == 1
    assert workspace.contents() == before
