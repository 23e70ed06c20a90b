"""Tables: the same cells in the terminal and in Markdown."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from gcond.condensed.score import ClassMetrics, Score
from gcond.graph.statistics import Statistics
from gcond.reports.audit_table import audit_lines, audit_tables
from gcond.reports.class_table import class_table
from gcond.reports.comparison_table import comparison_table, failure_lines, legend
from gcond.reports.reproduction_table import reproduction_table
from gcond.reports.search_table import search_tables
from gcond.reports.tables import Table, accuracy, assignments, facts, score_table, seconds, size, statistics_table
from gcond.reports.tuning_table import sides_table, tuning_tables
from gcond.results import Failure, Figure, ReproducedRow, Reproduction, SourceSummary
from reports.sample_runs import audit, comparison, line, search, tuning


def drawn(table, width=200):
    stream = io.StringIO()
    Console(file=stream, width=width).print(table.rich())
    return stream.getvalue()


def scored(std, runs):
    return Score("gcn", {}, {}, 0.7123, std, runs, val_mean=0.69, cpu_seconds=1.0)


def test_markdown():
    table = Table(("model", "runs"), (("a|b", "10"), ("c", "2")), "scores")
    assert table.markdown() == "**scores**\n\n| model | runs |\n| --- | ---: |\n| a\\|b | 10 |\n| c | 2 |"


def test_words_that_look_like_markup_are_drawn_as_they_are():
    assert "[bold]x[/bold]" in drawn(Table(("name",), (("[bold]x[/bold]",),)))


def test_a_row_of_the_wrong_length_is_a_bug():
    with pytest.raises(ValueError, match="2 cells for 1 columns"):
        Table(("name",), (("a", "b"),))


def test_scores_in_per_cent():
    score = scored(0.0041, (0.7, 0.72))
    assert score_table([score]).rows == (("gcn", "71.2 ± 0.4", "2", "69.0"),)


def test_one_run_has_no_deviation():
    score = scored(0.0, (0.7123,))
    assert score_table([score]).rows == (("gcn", "71.2", "1", "69.0"),)


def test_scores_say_their_settings_where_there_are_any():
    score = scored(0.0041, (0.7, 0.72))
    assert score_table([score, score], settings=[{}, {}]) == score_table([score, score])
    table = score_table([score, score], settings=[{"hidden": 16, "layers": 3}, {}])
    assert table.columns[-1] == "settings"
    assert [row[-1] for row in table.rows] == ["hidden=16, layers=3", ""]
    with pytest.raises(ValueError, match="shorter"):
        score_table([score, score], settings=[{"hidden": 16}])


def test_what_a_row_is_about_stays_whole_when_it_is_narrow():
    table = Table(("name", "what it is"), (("a-name-of-20-letters", "words " * 20),), words=(0, 1))
    shown = drawn(table, width=40)
    assert "a-name-of-20-letters" in shown
    assert shown.split().count("words") == 20
    assert max(map(len, shown.splitlines())) <= 40


SETTINGS = "layers=4, hidden=256, dropout=0.5, lr=0.00109, weight_decay=0.00023"
SEARCH = Table(
    ("configuration", "", "validation %, in the search", "trained on condensed", "test %, condensed", "n"),
    (
        (SETTINGS, "winner", "72.2", "66.7", "60.4 ± 4.8", "5"),
        ("layers=2, hidden=256", "usual", "60.0", "59.3", "–", "5"),
    ),
    words=(0, 1),
)


@pytest.mark.parametrize("width", [200, 120, 100, 80])
def test_nothing_is_cut_where_there_is_room_for_the_numbers(width):
    """Headings and lists of settings are broken into lines before a mark or a number is lost."""
    shown = drawn(SEARCH, width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    for word in [*SETTINGS.split(), "winner", "usual", "72.2", "66.7", "60.4 ± 4.8", "5", "search", "condensed"]:
        assert word in shown


def test_a_narrower_window_than_the_numbers_need_keeps_what_a_row_is_about():
    assert "layers=2, hidden=256" in drawn(SEARCH, 60)


def test_a_long_path_is_broken_and_not_cut():
    path = "/place/" + "folder/" * 30 + "file"
    table = Table(("", ""), (("wrote", path),), words=(0, 1))
    assert "".join(drawn(table, 60).replace("wrote", "").split()) == path
    assert path in drawn(table, Console(width=10_000).measure(table.rich()).minimum)


def test_a_tight_table_has_single_spaces():
    table = Table(("name", "nodes"), (("cora", "2,708"),), tight=True)
    assert "cora 2,708" in drawn(table)


def test_what_is_not_known_is_left_open():
    small = Statistics(7, 0, 0, 4, 3, density=0.0, homophily=None, class_nodes=(1, 2, 4), bytes=140)
    large = SourceSummary("large", nodes=2708, bytes=1000)
    table = statistics_table({"small": small, "large": large, "unknown": None})
    assert table.columns == ("", "small", "large", "unknown")
    assert {row[0]: row[1:] for row in table.rows} == {
        "nodes": ("7", "2,708", "–"),
        "edges": ("0", "–", "–"),
        "features": ("4", "–", "–"),
        "classes": ("3", "–", "–"),
        "density": ("0.00 %", "–", "–"),
        "homophily": ("–", "–", "–"),
        "labelled nodes per class": ("1 to 4", "–", "–"),
        "storage": ("140 B", "1.0 kB", "–"),
    }
    (edges,) = [row for row in statistics_table({"x": replace(small, listed_edges=9)}).rows if "listed" in row[0]]
    assert edges == ("edges as listed", "9")
    assert [row[0] for row in statistics_table({"large": large}).rows] == ["nodes", "storage"]


def test_classes_whose_names_differ_in_control_characters_only_look_different():
    table = class_table({"gcn": ClassMetrics(0.4, 0.0, 0.4, 0.0, (0.5, 0.25))}, ("a\x1bb", "a\x07b"))
    assert [row[0] for row in table.rows] == [r"a\x1bb", r"a\x07b"]


def test_facts_leave_empty_ones_out():
    assert facts({"a": "1", "b": ""}).rows == (("a", "1"),)


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (14_900_000, "14.9 MB"), (2.5e12, "2.5 TB")]
)
def test_sizes(count, shown):
    assert size(count) == shown


@pytest.mark.parametrize(("duration", "shown"), [(0.041, "0.04 s"), (12.34, "12.3 s"), (125, "2 min 5 s")])
def test_durations(duration, shown):
    assert seconds(duration) == shown


def test_accuracy():
    assert accuracy(1, 0) == "100.0 ± 0.0"
    assert accuracy(0.7123, None) == "71.2"


def test_assignments():
    assert assignments({"hidden": 16, "activation": "relu"}) == "hidden=16, activation=relu"
    assert assignments({}) == ""


def test_text_stays_text_in_markdown_and_latex():
    table = Table(("a_b", "●"), (("<b>|*x*_`\\", "50 % ± 1 & $5 ~^{}"),), "t_1")
    assert table.markdown().splitlines()[-1] == "| &lt;b>\\|\\*x\\*\\_\\`\\\\ | 50 % ± 1 &amp; $5 ~^{} |"
    assert table.latex().splitlines() == [
        "% t_1",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a\_b & $\bullet$ \\",
        r"\midrule",
        r"<b>|*x*\_`\textbackslash{} & 50 \% $\pm$ 1 \& \$5 \textasciitilde{}\textasciicircum{}\{\} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def cells(table, row=0):
    return dict(zip(table.columns, table.rows[row], strict=True))


def test_a_comparison_says_where_its_times_are_cpu_seconds():
    table = comparison_table(comparison())
    assert table.title == "toy: 1 graph × 20 runs each, gcn"
    assert cells(table, 0) | {"make CPU": "–", "train CPU": "6.00 s", "pays from": "–"} == cells(table, 0)
    assert cells(table, 2) == {
        "method": "gcond",
        "nodes": "8",
        "": "●",
        "accuracy %": "79.6 ± 1.0",
        "n": "20",
        "kept %": "99.5",
        "edges": "7",
        "storage": "800 B",
        "make CPU": "30.0 s",
        "train CPU": "1.00 s",
        "memory": "600.0 MB",
        "pays from": "training 6",
    }
    assert "CPU seconds" in legend(comparison())
    few, enough = (replace(comparison(), seeds=seeds, lines=()) for seeds in (2, 5))
    assert "from 2 graphs each: 5 or more would tell which of the others chance explains" in legend(few)
    assert "not distinguishable" not in legend(few)
    assert "○ not distinguishable from it (paired t-test" in legend(enough)


def test_a_comparison_of_several_models_leaves_open_what_it_does_not_know():
    unknown = {"kept": None, "condense_cpu_seconds": None, "train_cpu_seconds": None, "peak_rss_mb": None}
    lines = (line("a", 8, 0.5, break_even=None), line("a", 8, 0.5, model="sgc", n=1, **unknown))
    table = comparison_table(comparison(lines=lines, models=("gcn", "sgc")))
    assert (table.columns[0], table.title) == ("model", "toy: 1 graph × 20 runs each")
    assert cells(table)["pays from"] == "never"
    assert table.rows[1] == ("sgc", "a", "8", "", "50.0", "1", "–", "7", "800 B", "–", "–", "–", "–")


def test_failures_have_a_line_each():
    assert failure_lines([Failure("gcond, seed 0", "out of memory")]) == ["failed: gcond, seed 0: out of memory"]


def test_a_search_in_two_tables():
    winners, said = search_tables(search(failures=(Failure("a", "b"),)), "folder")
    assert winners.title == "3 architectures of appnp on toy"
    assert winners.rows == (
        ("condensed graph", "1.20 s", "76.0", "78.0 ± 0.4", "hops=6"),
        ("whole graph", "9.00 s", "77.0", "78.0 ± 0.4", "hops=6"),
    )
    assert winners.columns[1] == "CPU time"
    assert said.rows == (
        ("Pearson correlation", "1.00"),
        ("Spearman correlation", "1.00"),
        ("failures", "1"),
        ("wrote", "folder"),
    )
    assert [row[0] for row in search_tables(search(), "folder", new=False)[1].rows][-1] == "kept in"
    winners, said = search_tables(search(architectures=(), winners={}))
    assert winners.rows[0] == ("condensed graph", "0.00 s", "–", "–", "–")
    assert said.rows == (("Pearson correlation", "–"), ("Spearman correlation", "–"))


def test_a_search_for_hyper_parameters_in_two_tables():
    finalists, said = tuning_tables(tuning(failures=(Failure("a", "b"),)), "folder", "gcond evaluate x")
    assert finalists.title == "gcn on toy, searched on 8 condensed nodes"
    assert finalists.columns[2:5] == ("validation %, in the search", "trained on condensed", "trained on whole")
    assert finalists.columns[5:7] == ("test %, condensed", "test %, whole")
    assert finalists.rows == (
        ("hidden=64, lr=0.02", "winner", "83.0", "81.0", "79.5", "82.0 ± 1.4", "80.0 ± 1.4", "2", "10.0 s"),
        ("hidden=128, lr=0.05", "best on whole", "80.0", "80.0", "82.0", "82.0 ± 1.4", "80.0 ± 1.4", "2", "10.0 s"),
        ("hidden=256, lr=0.01", "usual", "80.0", "79.0", "78.0", "82.0 ± 1.4", "77.0 ± 0.0", "2", "10.0 s"),
    )
    facts = dict(said.rows)
    assert facts["configurations"] == "4: 3 trained fully, 1 given up on the way"
    assert facts["CPU time to condense"] == "2.00 s"
    assert facts["CPU time to search"] == "5.00 s"
    assert facts["CPU time of those above"] == "3.00 s anew on the condensed graph, 60.0 s on the whole graph"
    assert facts["the same search there"].startswith("108.3 s (an estimate: ")
    assert (facts["failures"], facts["wrote"], facts["next"]) == ("1", "folder", "gcond evaluate x")


def test_a_search_on_the_whole_graph_has_one_order_and_no_estimate():
    finalists, said = tuning_tables(tuning(condensed=None, ranges={"gcn": {}, "sgc": {}}))
    assert finalists.columns[2:5] == ("validation %, in the search", "trained on whole", "test %, whole")
    assert finalists.rows[0][0] == "gcn: hidden=64, lr=0.02"
    assert not {"orders agree", "CPU time to condense", "the same search there", "failures"} & set(dict(said.rows))
    both = sides_table([tuning(), tuning(condensed=None)])
    assert both.rows[0][:5] == ("8 condensed nodes", "4", "2.00 s", "5.00 s", "3.00 s")
    assert both.rows[1][:5] == ("the whole graph", "4", "–", "5.00 s", "–")
    assert both.rows[0][5:] == ("60.0 s", "82.0 ± 1.4", "80.0 ± 1.4", "80.0 ± 1.4", "77.0 ± 0.0", "2")


def test_ours_beside_the_papers_figure():
    rows = (
        ReproducedRow(("gcond",), Figure(80.12, 0.51), 50, Figure(79.8, 1.3), dataset="cora"),
        ReproducedRow(("gcond",), None, 0, Figure(0.15), digits=2, dataset="cora"),
        ReproducedRow(("mine",), Figure(1234.5), 1, None, dataset="cora"),
    )
    table = reproduction_table(Reproduction("main", "Accuracy", ("method",), 1, "gcond", 5, 10, rows))
    assert table.columns == ("data set", "method", "ours", "n", "paper", "difference")
    assert table.rows == (
        ("cora", "gcond", "80.1 ± 0.5", "50", "79.8 ± 1.3", "+0.3"),
        ("cora", "gcond", "–", "0", "0.15", "–"),
        ("cora", "mine", "1,234.5", "1", "–", "–"),
    )


def test_an_audit_in_tables():
    before, at_test, near, members, worst, classes = audit_tables(audit())
    assert before.title == "GCN, test accuracy %, changed before condensing and training, tested on the source as it is"
    assert before.columns == ("trained on", "no noise", "10 % features", "20 % labels", "both", "most lost", "n")
    assert before.rows[2] == ("clusters, 8 nodes", "82.0 ± 1.0", "82.0 ± 1.0", "72.0 ± 2.0", "69.5 ± 2.0", "12.5", "3")
    assert at_test.columns == ("trained on", "no noise", "10 % features", "most lost", "n")
    assert at_test.rows[1] == ("8 random nodes", "60.0 ± 1.0", "55.0 ± 0.0", "5.0", "4")
    assert near.rows[1][:5] == ("clusters, 8 nodes", "features", "0.2 (0.12 to 0.3)", "0.5 (0.2 to 0.7)", "87.5")
    assert near.rows[1][5:] == ("0.75", "0.95", "0")
    assert near.rows[2][1] == "after two hops"
    assert members.rows == (
        ("whole graph", "0.800 (0.760 to 0.840)", "–", "0.790 (0.750 to 0.830)", "40", "60", "4"),
        ("clusters, 8 nodes", "0.550 (0.500 to 0.600)", "-0.250 (-0.300 to -0.200)", "–", "40", "60", "4"),
    )
    assert worst.rows[2] == ("clusters, 8 nodes", "gcn", "82.0 ± 1.0", "71.0", "b", "50.0", "4")
    assert classes.rows == (("a", "90.0", "90.0", "90.0"), ("b", "50.0", "50.0", "50.0"), ("c", "–", "–", "–"))
    first, copies, note = audit_lines(audit())
    assert first.startswith("n trainings: 2 draws of every noise × 2 runs.")
    assert copies == "8 random nodes: 8 of its nodes equal a source node in every entry."
    assert note == "it rained."


def test_what_an_audit_did_not_measure_has_no_table_and_no_figure():
    clean = tuple(one for one in audit().accuracies if one.stage == "clean")
    worst, _ = audit_tables(audit(accuracies=clean, closeness=(), membership=()))
    assert worst.title == "The worst class, without noise"
    some = [one for one in audit().accuracies if (one.subject, one.stage) != ("clusters, 8 nodes", "before")]
    before = audit_tables(audit(accuracies=tuple(some)))[0]
    assert before.rows[2] == ("clusters, 8 nodes", "82.0 ± 1.0", "–", "–", "–", "–", "4")


def test_no_promise_is_made():
    """An audit never says more than it measured."""
    shown = " ".join([*(table.markdown() for table in audit_tables(audit())), *audit_lines(audit())]).lower()
    for word in ("private", "privacy", "anonym", "safe", "secure", "protect"):
        assert word not in shown


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_rows_line_up_in_every_encoding(encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    rows = [
        {"trained on": "whole", "accuracy ≥": "92.9 ± 0.1", "n": "10"},
        {"trained on": "…", "accuracy ≥": "9", "n": "3"},
    ]
    Console(file=stream, width=60).print(Table.of(rows).rich())
    lines = stream.buffer.getvalue().decode(encoding).splitlines()
    assert len({len(line.rstrip()) for line in lines if any(each in line for each in ("10", " 3", " n"))}) == 1, lines
    assert ("92.9 +- 0.1" if encoding == "ascii" else "92.9 ± 0.1") in lines[3]
