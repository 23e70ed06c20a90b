"""The page as text: what it says, what it counts, and that nothing in it can be taken for markup."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import shlex
import sys
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcond.cli.app import app
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.errors import GcondError
from gcond.graph.force_layout import positions
from gcond.reports.page import PageRun, interactive_view, page_tables, read_runs, render_page, sentences
from gcond.reports.page.remake_commands import commands_of
from gcond.results import Comparison, Failure, SourceSummary, Winner
from reports.sample_runs import (
    HOSTILE,
    audit,
    comparison,
    finalist,
    line,
    score,
    search,
    small,
    tried,
    tuning,
    values_of,
    write_result,
    write_run,
)


class Elements(HTMLParser):
    """The tags, the attributes and the text of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def no_figures(monkeypatch):
    """A page without figures is made in no time."""
    monkeypatch.setitem(sys.modules, "gcond.reports.figures", None)


@pytest.fixture
def folder(tmp_path, no_figures):
    return write_run(tmp_path / "run")


def test_the_headline_is_the_smallest_graph_that_keeps_enough(folder):
    page = Elements(render_page(read_runs([folder])))
    assert "gcond condensed the 1,000 nodes of toy into 8." in page.text
    assert "99.5 % of the accuracy 79.6 ± 1.0 against 80.0 ± 1.0" in page.text
    assert "99.2 % fewer nodes 8 instead of 1,000" in page.text
    assert "99.2 % fewer bytes 800 B instead of 100.0 kB" in page.text
    assert "30.0 s of CPU time to condense paid back after 6 trainings" in page.text
    assert "toy in 8 nodes" in page.text
    assert "Take the smaller one." in page.text
    assert "gcond compare toy --nodes 8,30" in page.text


def run_of(*lines, nodes=1000, stored=100_000) -> PageRun:
    return PageRun("r", Comparison(SourceSummary("toy", nodes=nodes, bytes=stored), tuple(lines)))


def test_without_enough_accuracy_the_most_accurate_makes_the_headline():
    run = run_of(line("a", 8, 0.5), line("b", 30, 0.7), line("c", 8, 0.99, model="sgc"))
    assert run.best_line.method == "b"
    assert "most accurate" in sentences.headline(run).chosen


def test_a_graph_that_grew_is_not_called_smaller():
    tiles = sentences.headline(run_of(line("a", 8, 0.79, bytes=150_000.0))).tiles
    assert ("1.5 ×", "the bytes") in [(tile.figure, tile.what) for tile in tiles]
    assert "fewer bytes" not in [tile.what for tile in tiles]


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_nothing_is_ever_a_hundred_per_cent_smaller(now, before):
    tile = sentences._smaller(now, before, "nodes", "")
    assert not tile.figure.startswith("100") or tile.figure.endswith("×")


def test_no_run_that_pays_back_is_not_passed_over_in_silence():
    run = run_of(line("whole", 1000, 0.8, kind="whole"), line("a", 8, 0.79, break_even=None))
    assert "does not pay back" in sentences.headline(run).tiles[-1].detail


def test_the_comparison_counts_bytes_and_all_the_seconds(folder):
    (table,) = page_tables.model_tables(read_runs([folder])[0])
    assert [row.method for row in table.rows] == ["whole graph", "random", "gcond", "gcond"]
    best = dict(zip(table.columns, table.rows[2].cells, strict=True))
    assert best == {
        "nodes": "8",
        "edges": "7",
        "size": "800 B",
        "of source": "0.8 %",
        "test accuracy %": "79.6 ± 1.0",
        "trainings": "20",
        "kept %": "99.5",
        "CPU to condense": "30.0 s",
        "CPU to train once": "1.00 s",
        "peak memory": "600.0 MB",
        "paid back after": "6",
        "p against best": "–",
    }
    assert [row.new_budget for row in table.rows] == [False, True, False, True]


def test_a_table_per_model_and_no_empty_columns(tmp_path, no_figures):
    graph = small()
    scored = dataclasses.replace(graph.provenance, scores=(score(), score(0.7, "sgc")))
    dataclasses.replace(graph, provenance=scored).save(tmp_path / "toy.safetensors")
    (run,) = read_runs([tmp_path / "toy.safetensors"])
    tables = page_tables.model_tables(run)
    assert [table.model for table in tables] == ["gcn", "sgc"]
    assert "kept %" not in tables[0].columns  # a file does not know the whole graph's accuracy
    assert dict(zip(tables[0].columns, tables[0].rows[0].cells, strict=True))["CPU to train once"] == "1.50 s"
    assert dict(zip(tables[0].columns, tables[0].rows[0].cells, strict=True))["CPU to condense"] == "11.0 s"
    assert "80.0 % test accuracy" in Elements(render_page([run])).text


def test_files_of_one_source_share_a_section_and_others_do_not(tmp_path, no_figures):
    small().save(tmp_path / "a.safetensors")
    small(nodes=9).save(tmp_path / "b.safetensors")
    other = small()
    origin = {**other.provenance.source, "sha256": "cd", "name": "else"}
    other = dataclasses.replace(other, provenance=dataclasses.replace(other.provenance, source=origin))
    other.save(tmp_path / "c.safetensors")
    runs = read_runs([tmp_path / f"{name}.safetensors" for name in "acb"])
    assert [[each.file for each in run.graphs] for run in runs] == [
        ["a.safetensors", "b.safetensors"],
        ["c.safetensors"],
    ]
    page = render_page(runs)
    assert page.count("<article") == 2
    assert 'href="#run-2"' in page
    assert "Condensed graphs: toy, else" in page


def test_a_file_without_provenance_has_a_page(tmp_path, no_figures):
    CondensedGraph(*dataclasses.astuple(small())[:4]).save(tmp_path / "bare.safetensors")
    page = Elements(render_page(read_runs([tmp_path / "bare.safetensors"])))
    assert "bare in 8 nodes" in page.text
    assert "does not say how it was made" in page.text


def test_a_search_has_its_section(folder):
    write_result(folder, search())
    page = Elements(render_page(read_runs([folder])))
    assert "3 APPNP architectures were tried" in page.text
    assert "searched on CPU time best validation % its test accuracy % architecture" in page.text
    assert "whole graph 9.00 s 77.0 78.0 ± 0.4 hops=6" in page.text


def test_a_search_alone_is_a_run(tmp_path, no_figures):
    write_result(tmp_path, search())
    assert "toy: architecture search" in Elements(render_page(read_runs([tmp_path]))).text


def test_a_search_for_hyper_parameters_has_its_section(folder):
    write_result(folder, tuning())
    text = Elements(render_page(read_runs([folder]))).text
    assert (
        "4 configurations of GCN were tried on 8 condensed nodes. Trained on the whole graph, the winner gets" in text
    )
    assert "80.0 ± 1.4 % of the test nodes right (n = 2), the usual configuration 77.0 ± 0.0 %" in text
    assert "hidden=64, lr=0.02 winner 83.0 81.0 79.5 82.0 ± 1.4 80.0 ± 1.4 2 10.0 s" in text
    assert "orders agree Spearman 0.50, Kendall 0.33, condensed and whole, over the 3 above" in text
    assert "108.3 s (an estimate: the search's epochs times" in text
    assert "gcond tune toy-clusters-8.safetensors --on toy --trials 4" in text


def test_a_search_for_hyper_parameters_alone_is_a_run(tmp_path, no_figures):
    write_result(tmp_path, tuning())
    assert "toy: hyper-parameter search" in Elements(render_page(read_runs([tmp_path]))).text
    write_result(tmp_path, tuning(finalists=(), trials=tuning().trials[:1]))
    text = Elements(render_page(read_runs([tmp_path]))).text
    assert "1 configuration of GCN was tried on 8 condensed nodes; none of them has been tested on the whole" in text
    assert "1 of 4: 1 trained fully" in text


def test_an_audit_has_its_section(folder):
    write_result(folder, audit())
    text = Elements(render_page(read_runs([folder]))).text
    assert "What noise does, and what it gives away" in text
    assert "without noise, and at worst where the source was changed before condensing: whole graph 80.0 % and" in text
    assert "clusters, 8 nodes 82.0 % and 69.5 %" in text
    assert "whole graph 80.0 ± 1.0 80.0 ± 1.0 70.0 ± 2.0 67.5 ± 2.0 12.5 3" in text
    assert "clusters, 8 nodes 0.550 (0.500 to 0.600) -0.250 (-0.300 to -0.200)" in text
    assert "clusters, 8 nodes features 0.2 (0.12 to 0.3) 0.5 (0.2 to 0.7) 87.5" in text
    assert "does not say that nothing can be found" in text
    assert "it rained." in text
    assert "gcond audit toy-clusters-8.safetensors --on toy" in text


def test_an_audit_alone_is_a_run(tmp_path, no_figures):
    write_result(tmp_path, audit(failures=(Failure("gcn on x", "it broke"),)))
    text = Elements(render_page(read_runs([tmp_path]))).text
    assert "toy: audit" in text
    assert "An audit on toy" in text
    assert "it broke" in text


def test_hostile_names_in_an_audit_stay_text(tmp_path, no_figures):
    name = HOSTILE[1]
    found = audit(name, source=SourceSummary(name, class_names=(name,) * 3), notes=(name,), command=name)
    write_result(tmp_path, found)
    assert Elements(render_page(read_runs([tmp_path]))).tags.count("script") == 1


def test_hostile_names_in_a_search_stay_text(tmp_path, no_figures):
    name = HOSTILE[1]
    trials = (tried(0, model=name, usual=True, settings={name: name}),)
    found = tuning(ranges={name: {}}, trials=trials, finalists=(finalist(0, model=name),), command=name)
    write_result(tmp_path, dataclasses.replace(found, source=SourceSummary(name)))
    assert Elements(render_page(read_runs([tmp_path]))).tags.count("script") == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_markup(name, tmp_path, no_figures):
    usual = Elements(render_page(read_runs([write_run(tmp_path / "usual")]), title="t"))
    found = comparison((name,) * 3, source=name, method=name, advice=(name,))
    run = write_run(tmp_path / "hostile", found, name=name, method=name)
    page = Elements(render_page(read_runs([run]), title=name))
    assert page.tags == usual.tags
    assert {(tag, attribute) for tag, attribute, _ in page.attributes} == {
        (tag, attribute) for tag, attribute, _ in usual.attributes
    }
    shown = " ".join(name.replace("\u2028", r"\u2028").split())
    assert page.text.count(shown) >= 5


def test_the_data_survives_its_escaping(tmp_path, no_figures):
    run = write_run(tmp_path / "run", comparison(HOSTILE[:3]))
    page = render_page(read_runs([run]))
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert not set("<>&'\u2028") & set(data)
    assert json.loads(data)[0]["names"] == list(HOSTILE[:3])


def test_the_policy_admits_this_script_and_this_style_and_nothing_else(folder):
    page = render_page(read_runs([folder]))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        code = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{code}'" in policy
    assert not re.search(r'\s(style|on\w+)="', page)  # they would be refused by the policy


def test_nothing_is_fetched(folder):
    page = Elements(render_page(read_runs([folder])))
    addresses = [value for _, name, value in page.attributes if name in ("src", "href", "action", "srcset")]
    assert addresses
    assert all(address.startswith(("#", "data:")) for address in addresses)


def test_the_same_runs_give_the_same_page(tmp_path):
    pytest.importorskip("matplotlib")
    folder = write_run(tmp_path / "run")
    write_result(folder, search())
    first = render_page(read_runs([folder]))
    assert render_page(read_runs([folder])) == first
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", first)
    assert [caption.split(" (")[0] for caption in captions] == [
        "Test accuracy against the number of nodes",
        "How it was learned",
        "Features in two dimensions",
        "Nodes per class",
        "Architectures: accuracy on the condensed and on the whole graph",
    ]
    assert first.count('src="data:image/svg+xml;base64,') == len(captions)


def test_without_matplotlib_the_page_says_so(folder):
    assert "pip install 'gcond[report]'" in Elements(render_page(read_runs([folder]))).text


def test_without_jinja_there_is_a_sentence(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(GcondError, match=r"the page needs Jinja2: pip install 'gcond\[report\]'"):
        render_page(read_runs([folder]))


# ---- the interactive view


@st.composite
def weighted_graphs(draw):
    n = draw(st.integers(2, 12))
    pairs = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1])))
    weights = draw(st.lists(st.floats(0.015625, 2, width=32), min_size=len(pairs), max_size=len(pairs)))
    ends = torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2).T
    labels = torch.tensor(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    weight = torch.tensor(weights, dtype=torch.float32)
    return CondensedGraph(
        torch.rand(n, 2), labels, torch.cat([ends, ends.flip(0)], 1), torch.cat([weight, weight]), provenance=None
    )


@settings(max_examples=25)
@given(weighted_graphs())
def test_counts_at_every_stop_are_those_of_networkx(graph):
    drawn = interactive_view.view_data(graph)
    labels = graph.hard_labels.tolist()
    for delta, pairs, edges, density, isolated, same in drawn["stops"]:
        oracle = nx.Graph()
        oracle.add_nodes_from(range(graph.num_nodes))
        kept = graph.edge_weight > delta
        oracle.add_edges_from(graph.edge_index[:, kept].T.tolist())
        count = oracle.number_of_edges()
        assert (pairs, edges, isolated) == (count, count, nx.number_of_isolates(oracle))
        assert density == pytest.approx(2 * count / graph.num_nodes**2, rel=1e-3)
        within = [labels[i] == labels[j] for i, j in oracle.edges]
        assert same == (pytest.approx(np.mean(within), abs=1e-4) if within else None)
        first = [tuple(drawn["edges"][3 * k : 3 * k + 2]) for k in range(pairs)]
        assert {tuple(sorted(pair)) for pair in first} == {tuple(sorted(edge)) for edge in oracle.edges}


@settings(max_examples=25)
@given(weighted_graphs())
def test_the_slider_goes_from_everything_to_nothing(graph):
    stops = interactive_view.view_data(graph)["stops"]
    assert stops[0][0] == 0
    assert stops[0][2] == graph.num_edges // 2
    assert len(stops) <= 102
    assert [stop[0] for stop in stops] == sorted({stop[0] for stop in stops})
    if len(stops) > 1:
        assert stops[-1][2] == 0


def test_one_way_edges_count_one_by_one():
    graph = small(edge_index=torch.tensor([[0, 1, 2], [1, 0, 3]]), edge_weight=torch.tensor([0.5, 0.2, 0.1]))
    drawn = interactive_view.view_data(graph)
    assert drawn["stops"][0][:3] == [0, 2, 3]  # two joined pairs, three edges
    assert drawn["edges"] == [0, 1, 0.5, 2, 3, 0.1]
    assert drawn["stops"][0][3] == pytest.approx(3 / 64, rel=1e-3)


def test_equal_weights_leave_nothing_to_slide():
    ends = torch.tensor([[0, 1], [1, 0]])
    assert [
        stop[0] for stop in interactive_view.view_data(small(edge_index=ends, edge_weight=torch.ones(2)))["stops"]
    ] == [0.0]
    assert [stop[:3] for stop in interactive_view.view_data(small(edges=False))["stops"]] == [[0.0, 0, 0]]


def test_only_the_heaviest_pairs_of_many_are_drawn_and_all_are_counted(monkeypatch):
    monkeypatch.setattr(interactive_view, "MOST_PAIRS", 3)
    drawn = interactive_view.view_data(small())
    assert drawn["edges"][2::3] == [0.875, 0.75, 0.625]
    assert (drawn["pairs"], drawn["stops"][0][2]) == (7, 7)


def test_soft_labels_show_their_likeliest_class():
    soft = torch.tensor([[0.1, 0.2, 0.7]] * 8)
    drawn = interactive_view.view_data(small(y=soft), ("a", "b", "c"))
    assert drawn["labels"] == [2] * 8
    assert drawn["soft"]
    assert drawn["names"] == ["a", "b", "c"]


@pytest.mark.parametrize(("nodes", "classes"), [(1, 1), (2, 1), (30, 30), (200, 7), (1000, 40)])
def test_places_are_apart_inside_and_repeatable(nodes, classes):
    stream = np.random.default_rng(0)
    labels = np.arange(nodes) % classes
    pairs = np.array([(i, j) for i, j in stream.integers(0, nodes, (3 * nodes, 2)) if i < j], dtype=int).reshape(-1, 2)
    weights = stream.random(len(pairs)) + 0.01
    place = positions(labels, pairs, weights)
    assert np.isfinite(place).all()
    assert place.min() >= -1e-9
    assert place.max() <= 1 + 1e-9
    assert len(np.unique(place.round(6), axis=0)) == nodes
    np.testing.assert_array_equal(place, positions(labels, pairs, weights))


def test_joined_nodes_and_classmates_are_nearer_than_others():
    labels = np.repeat(np.arange(4), 10)
    pairs = np.array([(0, 15), (0, 16), (15, 16)])
    place = positions(labels, pairs, np.ones(3))
    apart = np.linalg.norm(place[:, None] - place[None], axis=2)
    assert apart[tuple(pairs.T)].mean() < np.median(apart) / 2
    same = labels[:, None] == labels[None]
    assert apart[same].mean() < 0.6 * apart[~same].mean()


# ---- commands


def test_the_command_of_a_file_reads_back_to_its_settings():
    made = small(name="my graph; rm -rf /").provenance
    made = dataclasses.replace(made, settings={"delta": 0.1, "epochs": 7, "fanout": [3, 2], "layers": None})
    (command,) = commands_of(made, "runs/out file.safetensors")
    argv = shlex.split(command)
    assert argv[:3] == ["gcond", "condense", "my graph; rm -rf /"]
    assert argv[-2:] == ["-o", "out file.safetensors"]
    _, bound, *_ = app.parse_args(argv[1:])
    assert bound.arguments["set_"] == ("delta=0.1", "epochs=7", "fanout=3,2")
    assert bound.arguments["nodes"] == 8


def test_usual_settings_are_not_spelt_out_and_scores_add_their_command():
    made = dataclasses.replace(small().provenance, scores=(score(), score(0.7, "sgc")))
    assert made.settings == {"delta": 0.05}
    assert "--set delta=0.05 " in commands_of(made, "f.safetensors")[0]
    made = dataclasses.replace(made, settings={"delta": "auto"}, choices={"delta": 0.05})
    condense, evaluate = commands_of(made, "f.safetensors")
    assert "--set " not in condense  # the method's own delta, which is chosen again
    assert evaluate == "gcond evaluate f.safetensors --on toy --models gcn,sgc --runs 2"


def test_a_command_a_recipe_a_seed_and_a_number_of_runs():
    unusual = score(recipe={"epochs": 10, "select": "last"}, settings={"hidden": 16})
    later, longer = score(model="sgc", seed=4), score(model="mlp", runs=(0.8,) * 5)
    alike = dataclasses.replace(unusual, model="sage")
    scores = (score(), unusual, later, longer, alike, score(model="appnp"))
    made = dataclasses.replace(small().provenance, scores=scores)
    start = "gcond evaluate f.safetensors --on toy --models"
    commands = commands_of(made, "f.safetensors")
    assert commands[1:] == [
        f"{start} gcn,appnp --runs 2",
        f"{start} gcn,sage --runs 2 --set hidden=16 epochs=10 select=last",
        f"{start} sgc --runs 2 --seed 4",
        f"{start} mlp --runs 5",
    ]
    _, bound, *_ = app.parse_args(shlex.split(commands[2])[1:])
    assert bound.arguments["set_"] == ("hidden=16", "epochs=10", "select=last")


# ---- refusals


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda v: v["lines"][0].update(mean=float("nan")), r"lines\.0\.mean: input should be less than or equal to 1"),
        (lambda v: v["lines"][0].update(std=float("inf")), r"lines\.0\.std: input should be a finite number"),
        (lambda v: v["lines"][1].update(mean=70.0), r"lines\.1\.mean: input should be less than or equal to 1"),
        (lambda v: v["lines"][1].update(condense_cpu_seconds=-1), r"lines\.1\.condense_cpu_seconds: input should be"),
        (lambda v: v["lines"][1].update(mark="good"), r"lines\.1\.mark: input should be 'best', 'tied' or ''"),
        (lambda v: v["lines"][1].pop("ratio"), r"lines\.1\.ratio: field required"),
        (lambda v: v["source"].pop("name"), r"source\.name: field required"),
        (lambda v: v.update(kind="nas"), r"kind: it is 'nas' and not 'comparison'"),
        (lambda v: v["lines"][0].pop("bytes"), r"lines\.0\.bytes: field required"),
        (lambda v: v.update(lines="none"), r"lines: input should be a valid tuple"),
        (lambda v: v["lines"][1].update(graphs=["../../x.safetensors"]), "which is outside the run"),
    ],
)
def test_a_damaged_comparison_is_refused(change, reason, tmp_path):
    folder = write_run(tmp_path / "run")
    values = values_of(comparison())
    change(values)
    (folder / "comparison.json").write_text(json.dumps(values))
    with pytest.raises(GcondError, match=reason):
        read_runs([folder])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda v: v["winners"]["whole"].pop("runs"), r"winners\.whole\.runs: field required"),
        (lambda v: v["winners"]["whole"].update(runs=[]), r"winners\.whole\.runs: tuple should have at least 1 item"),
        (lambda v: v["winners"]["whole"].update(settings={"a": [[1]]}), r"winners\.whole\.settings\.a"),
        (lambda v: v["architectures"][0].pop("whole"), r"architectures\.0\.whole: field required"),
        (lambda v: v.pop("source"), "source: field required"),
        (lambda v: v["condensed"].update(nodes="many"), r"condensed\.nodes: input should be a valid integer"),
    ],
)
def test_a_damaged_search_is_refused(change, reason, tmp_path):
    values = values_of(search())
    change(values)
    (tmp_path / "nas.json").write_text(json.dumps(values))
    with pytest.raises(GcondError, match=reason):
        read_runs([tmp_path])


def test_what_the_schema_admits_can_be_drawn(tmp_path):
    """Every field that may be left out is left out, and there are no notes of figures that failed."""
    pytest.importorskip("matplotlib")
    least = {"method", "kind", "model", "nodes", "edges", "bytes", "mean", "std", "n", "ratio"}
    lines = [{key: value for key, value in each.items() if key in least} for each in values_of(comparison())["lines"]]
    needed = {"condensed", "grid", "recipe", "condensed_epochs", "seed", "architectures"}
    nas = {key: value for key, value in values_of(search()).items() if key in needed}
    nas |= {"model": "m", "source": {"name": ""}, "condensed": {"nodes": 8, "edges": 7, "bytes": 800}}
    (tmp_path / "comparison.json").write_text(json.dumps({"source": {"name": ""}, "lines": lines}))
    (tmp_path / "nas.json").write_text(json.dumps(nas))
    page = render_page(read_runs([tmp_path]))
    assert page.count("<figcaption>") == 2
    assert "Without the figure" not in page


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(GcondError, match=r"has neither comparison\.json nor nas\.json"):
        read_runs([tmp_path])
    (tmp_path / "comparison.json").write_text("{")
    with pytest.raises(GcondError, match="it is not JSON"):
        read_runs([tmp_path])
    with pytest.raises(GcondError, match="give its folder"):
        read_runs([tmp_path / "comparison.json"])
    with pytest.raises(GcondError, match="there is no file"):
        read_runs([tmp_path / "nothing.safetensors"])
    with pytest.raises(GcondError, match="at least one"):
        render_page([])


def test_graphs_that_are_gone_are_said(folder):
    (folder / "graphs/gcond-30.safetensors").unlink()
    (run,) = read_runs([folder])
    assert run.notes == ("1 graph of this run is no longer in its folder.",)
    assert len(run.graphs) == 2


def test_a_damaged_graph_gives_way_to_the_next_seed(tmp_path, no_figures):
    names = ("graphs/a\0b", "graphs/cut.safetensors", "graphs/gcond-30.safetensors")
    *others, last = comparison().lines
    found = comparison(lines=(*others, dataclasses.replace(last, graphs=names)))
    folder = write_run(tmp_path / "run", found)
    whole = (folder / "graphs/gcond-30.safetensors").read_bytes()
    (folder / "graphs/cut.safetensors").write_bytes(whole[: len(whole) // 2])
    (run,) = read_runs([folder])
    assert [each.file for each in run.graphs] == [
        "graphs/random-8.safetensors",
        "graphs/gcond-8.safetensors",
        "graphs/gcond-30.safetensors",
    ]
    assert run.notes == (
        "1 graph of this run is no longer in its folder.",
        "graphs/cut.safetensors is damaged and left out.",
    )
    assert "cut.safetensors is damaged" in render_page([run])


def test_a_comparison_of_which_nothing_worked_says_why(tmp_path, no_figures):
    failures = (Failure("gcond, 8 nodes, seed 0", "out of memory"),)
    write_result(tmp_path, comparison(lines=(), failures=failures))
    page = Elements(render_page(read_runs([tmp_path])))
    assert "No condensed graph came of toy ." in page.text
    assert "toy: comparison" in page.text
    assert "Not everything worked: gcond, 8 nodes, seed 0 : out of memory" in page.text


def test_a_search_says_what_it_could_not_train(tmp_path, no_figures):
    failures = (Failure("appnp (hops=8) on whole, seed 0", "out of memory"),)
    found = search(grid={"hops": [2, 4, 6, 8], "hidden": [16]}, failures=failures)
    write_result(tmp_path, found)
    text = Elements(render_page(read_runs([tmp_path]))).text
    assert "3 of 4 APPNP architectures were trained on both graphs" in text
    assert "appnp (hops=8) on whole, seed 0 : out of memory" in text
    write_result(tmp_path, dataclasses.replace(found, architectures=(), winners={}))
    text = Elements(render_page(read_runs([tmp_path]))).text
    assert "0 of 4 APPNP architectures were trained" in text
    assert "Not everything worked" in text


def test_a_winner_of_a_single_run_has_no_deviation(tmp_path, no_figures):
    winners = {**search().winners, "whole": Winner({"hops": 6}, (0.78,))}
    write_result(tmp_path, search(winners=winners))
    text = Elements(render_page(read_runs([tmp_path]))).text
    assert "condensed graph 1.20 s 76.0 78.0 ± 0.4 hops=6 whole graph 9.00 s 77.0 78.0 hops=6" in text


def test_an_unusual_training_is_said_in_the_headline_and_in_the_table(tmp_path, no_figures):
    graph = small()
    unusual = score(recipe={"epochs": 10})
    made = dataclasses.replace(graph.provenance, scores=(unusual, score(0.7)))
    dataclasses.replace(graph, provenance=made).save(tmp_path / "toy.safetensors")
    (run,) = read_runs([tmp_path / "toy.safetensors"])
    assert "trained on them with epochs=10 gets 80.0 %" in "".join(sentences.headline(run).sentence)
    (table,) = page_tables.model_tables(run)
    assert table.columns[-1] == "trained with"
    assert [row.cells[-1] for row in table.rows] == ["epochs=10", "–"]
    assert table.rows[0].kind == "learned"


def test_a_recipe_of_a_comparison_is_told_where_it_differs(tmp_path, no_figures):
    folder = write_run(tmp_path / "run", comparison(recipe={"epochs": 10, "lr": 0.01}))
    (run,) = read_runs([folder])
    assert {tuple(each.changes.items()) for each in run.comparison.lines} == {(("epochs", 10),)}  # 0.01 is usual
    assert "trained on them with epochs=10" in Elements(render_page([run])).text


def test_the_kind_of_a_file_is_its_methods(tmp_path):
    for method in ("random", "coarsening", "gcond", "from elsewhere"):
        graph = small(method=method)
        made = dataclasses.replace(graph.provenance, scores=(score(),))
        dataclasses.replace(graph, provenance=made).save(tmp_path / f"{method}.safetensors")
    (run,) = read_runs(sorted(tmp_path.iterdir()))
    kinds = {each.method: each.kind for each in run.comparison.lines}
    assert kinds == {"random": "selected", "coarsening": "merged", "gcond": "learned", "from elsewhere": ""}


def test_control_characters_and_halves_of_letters_are_spelled(tmp_path, no_figures):
    name = "a\x00b\x1b[31m\u202ec\ud800"
    failures = (Failure(name, name),)
    found = comparison((name,) * 3, source=name, method=name, advice=(name,), command=name, failures=failures)
    folder = write_run(tmp_path / "run", found)
    write_result(folder, search(model=name, failures=failures, command=name))
    (run,) = read_runs([folder])
    page = render_page([run], title=name)
    page.encode()
    assert not {"\x00", "\x1b", "\u202e", "\ud800"} & set(page)
    for data in re.findall(r"<script[^>]*json[^>]*>(.*?)</script>", page, re.DOTALL):
        assert not {"\x00", "\x1b", "\u202e", "\ud800"} & set(str(json.loads(data)))
    assert page.count(r"a\x00b\x1b[31m\u202ec\ud800") >= 6
    other = small(name="a\x07b", class_names=("x\x07", "", "z"))
    other.save(tmp_path / "f\x07.safetensors")
    (run,) = read_runs([tmp_path / "f\x07.safetensors"])
    assert (run.source.name, run.graphs[0].file, run.class_names[0]) == (r"a\x07b", r"f\x07.safetensors", r"x\x07")
    assert interactive_view.view_data(run.graphs[0].graph)["names"] == [r"x\x07", "class 1", "z"]


def test_names_stand_isolated_from_the_words_around_them(folder):
    page = render_page(read_runs([folder]))
    assert (
        '<p class="lead"><bdi>gcond</bdi> condensed the 1,000 nodes of <bdi>toy</bdi> into 8. A <bdi>GCN</bdi>' in page
    )
    assert page.count("<bdi>") >= 8
