"""Tables: the same cells in the terminal and in Markdown."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gcond.reports.tables import Table, accuracy, assignments, facts, score_table, seconds, size, statistics_table


def drawn(table, width=200):
    stream = io.StringIO()
    Console(file=stream, width=width).print(table.rich())
    return stream.getvalue()


def test_markdown():
    table = Table(("model", "runs"), (("a|b", "10"), ("c", "2")), "scores")
    assert table.markdown() == "**scores**\n\n| model | runs |\n| --- | ---: |\n| a\\|b | 10 |\n| c | 2 |"


def test_words_that_look_like_markup_are_drawn_as_they_are():
    assert "[bold]x[/bold]" in drawn(Table(("name",), (("[bold]x[/bold]",),)))


def test_a_row_of_the_wrong_length_is_a_bug():
    with pytest.raises(ValueError, match="2 cells for 1 columns"):
        Table(("name",), (("a", "b"),))


def test_scores_in_per_cent():
    score = {"model": "gcn", "mean": 0.7123, "std": 0.0041, "runs": [0.7, 0.72], "val_mean": 0.69}
    assert score_table([score]).rows == (("gcn", "71.2 ± 0.4", "2", "69.0"),)


def test_one_run_has_no_deviation():
    score = {"model": "gcn", "mean": 0.7123, "std": 0.0, "runs": [0.7123], "val_mean": 0.69}
    assert score_table([score]).rows == (("gcn", "71.2", "1", "69.0"),)


def test_scores_say_their_settings_where_there_are_any():
    score = {"model": "gcn", "mean": 0.7123, "std": 0.0041, "runs": [0.7, 0.72], "val_mean": 0.69}
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


def test_a_tight_table_has_single_spaces():
    table = Table(("name", "nodes"), (("cora", "2,708"),), tight=True)
    assert "cora 2,708" in drawn(table)


def test_what_is_not_known_is_left_open():
    table = statistics_table({"small": {"nodes": 7, "homophily": None}, "large": {"nodes": 2708, "density": 0.0015}})
    assert table.columns == ("", "small", "large")
    assert {row[0]: row[1:] for row in table.rows} == {
        "nodes": ("7", "2,708"),
        "density": ("–", "0.15 %"),
        "homophily": ("–", "–"),
    }


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
