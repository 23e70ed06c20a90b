"""Objects in notebooks: tables that are well-formed, escaped, self-contained, and without a script."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch

import gcond
from gcond.condensed import CondensedGraph, Scores
from gcond.condensed.graph_picture import MOST_NODES
from gcond.graph.node_ids import NodeIds
from gcond.results import Comparison, Line, SourceSummary
from gcond.runtime import notebook
from reports.sample_runs import tuning

EVIL = "</td><script>alert('x')</script>&\"\x1b[31m\u202e"


class Reader(HTMLParser):
    """Collects tags, attributes and text, and refuses tags that are not closed in their order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.attributes, self.text = [], [], [], ""

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(shown):
    html = shown if isinstance(shown, str) else shown._repr_html_()
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    assert not {"script", "style", "link", "img", "iframe", "object"} & set(reader.seen)
    for name, value in reader.attributes:
        assert not name.startswith("on")
        assert name not in ("href", "src")
        assert "url(" not in (value or "")
    assert "\x1b" not in html
    assert "\u202e" not in html
    ElementTree.fromstring(f"<div>{html}</div>")  # well-formed
    return reader


@pytest.fixture
def graph(make_graph):
    return dataclasses.replace(make_graph(), name=EVIL, class_names=(EVIL, "b", "c"), notes=(EVIL,))


@pytest.fixture
def small(graph):
    return gcond.condense(graph, method="random", nodes=9)


def test_whatever_things_are_called(graph, small):
    model = gcond.train(small, on=graph, epochs=3)
    scores = gcond.evaluate(small, on=graph, runs=2, epochs=3)
    scored = small.with_scores([dataclasses.replace(scores[0], model=EVIL)])
    named = dataclasses.replace(graph, ids=NodeIds.of([f"{EVIL}{at}" for at in range(80)], 80))
    line = Line(EVIL, "selected", EVIL, 9, 0.1, 0, 1, 0.5, 0.1, 2, kept=0.9)
    comparison = Comparison(SourceSummary(EVIL), (line,), advice=(EVIL,))
    for shown in (graph, scored, model, model.predict(named), Scores(scored.provenance.scores), scores[0], comparison):
        assert "script" not in read(shown).seen
    for shown in (graph, scored, model, comparison):
        assert "alert('x')" in read(shown).text


def test_a_source_graph_in_numbers(graph):
    text = read(graph).text
    for words in ("80", "12", f"{graph.num_edges:,}", "39 train, 19 val, 16 test", "transductive", "unlabelled6"):
        assert words in text


def test_a_condensed_graph_has_a_picture_of_its_nodes_and_edges(make_graph):
    graph = make_graph()
    edges = torch.tensor([[0, 1, 2], [1, 0, 3]])
    small = CondensedGraph(graph.x[:5], graph.y[:5].clamp(min=0), edges, torch.tensor([0.5, 0.5, 2.0]))
    found = read(small)
    assert found.seen.count("circle") == 5
    assert found.seen.count("line") == 2
    bare = CondensedGraph(small.x, small.y, edges[:, :0], torch.empty(0))
    assert read(bare).seen.count("line") == 0
    assert "A' = I" in read(bare).text


def test_a_large_condensed_graph_has_none():
    n = MOST_NODES + 1
    large = CondensedGraph(torch.ones(n, 2), torch.arange(n) % 3, torch.empty(2, 0, dtype=torch.long), torch.empty(0))
    assert "svg" not in read(large).seen


def test_scores_are_still_a_list(graph, small):
    scores = gcond.evaluate(small, on=graph, models=["gcn", "mlp"], runs=2, epochs=3)
    assert isinstance(scores, list)
    assert scores == [*scores]
    first, _ = scores
    text = read(scores).text
    assert f"{100 * first.mean:.1f} ± {100 * first.std:.1f} % (2 runs)" in text
    assert "1 run)" in read(dataclasses.replace(first, runs=first.runs[:1])).text


def test_facts_leave_out_what_there_is_not():
    text = read(notebook.facts("t", {"a": "", "b": None, "c": 0})).text
    assert text == "tc0"


def test_python_shows_no_progress_of_its_own(tmp_path):
    """Who wants to see some gives on_progress; a notebook's cell has nothing but the result."""
    script = (
        "import gcond; g = gcond.load('synthetic:tiny'); s = gcond.condense(g, method='random', nodes=24); "
        "gcond.evaluate(s, on=g, runs=1, epochs=3); gcond.train(s, on=g, epochs=3).predict(g)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=300)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_search_shows_its_finalists():
    shown = read(tuning())
    assert f"{len(tuning().trials)} configurations" in shown.text
    assert all(one.model in shown.text for one in tuning().finalists)
