"""The paper's tables: what is measured is what they say, and it stands beside the right figure."""

from __future__ import annotations

import dataclasses
import json

import pytest

import gcond
from gcond.data.catalogue import DATASETS
from gcond.engines.local import LocalEngine
from gcond.evaluation import evaluate
from gcond.models.gcn import GCN
from gcond.models.sgc import SGC
from gcond.reproduction import accuracy
from gcond.reproduction.accuracy import Cell, measure
from gcond.reproduction.experiments import EXPERIMENTS
from gcond.reproduction.lab import Lab, Row, Scale
from gcond.reproduction.paper import Figure, figure, spelling, tables
from gcond.reproduction.running import Report, reproduce

TINY = Scale(seeds=2, runs=2, epochs=1, train={"epochs": 3})


@pytest.fixture(scope="module")
def source():
    return gcond.load("synthetic:tiny")


@pytest.fixture
def lab(source, tmp_path):
    return Lab("cora", source, tmp_path, LocalEngine(1), scale=TINY)


def test_figures_are_the_papers():
    """As a reader of the paper finds them, one of each shape that the JSON has."""
    assert figure("main", "cora", "rows", 1, "gcond") == (80.1, 0.6)
    assert figure("main", "citeseer", "whole") == (71.7, 0.1)
    assert figure("architectures", "cora", "gcond", "gat") == (66.2, None)
    assert figure("versatility", "cora", "cells", "sgc", "gcn") == (80.1, 0.6)
    assert figure("cross_depth", "cells", 2, 3) == (80.7, None)
    assert figure("depth_hidden", "citeseer", "cells", 16, 1) == (58.6, 12.1)
    assert figure("time", "cora", "0.05") == (43.9, None)
    assert figure("nas", "citeseer", "pearson", "gcond") == (0.79, None)
    assert figure("main", "cora", "rows", 7, "gcond") is None
    assert figure("main", "pubmed", "whole") is None
    assert spelling("k-center") == "kcenter"
    assert spelling("gcond-x") == "gcond_x"


def test_every_table_of_the_paper_has_its_experiment():
    asked = (
        "main architectures versatility statistics parametrization optimization nas time sparsification depth "
        "cross-depth propagation original pubmed"
    )
    assert list(EXPERIMENTS) == asked.split()
    for experiment in EXPERIMENTS.values():
        assert set(experiment.datasets) <= set(DATASETS)
    assert set(tables()["main"]) - {"caption"} == set(EXPERIMENTS["main"].datasets)


def test_a_cell_is_what_condense_and_evaluate_give(lab, source):
    method = lab.method("random")
    (row,) = measure(lab, [Cell(("x",), Figure(50.0), GCN(), method, nodes=8)])
    scores = []
    for seed in range(2):
        small = gcond.condense(source, method="random", nodes=8, seed=seed)
        (score,) = evaluate(small, on=source, models=[GCN()], runs=2, seed=10 * seed, recipe={"epochs": 3})
        scores += score.runs
    assert row.n == 4
    assert row.ours.mean == pytest.approx(100 * sum(scores) / 4)
    assert row.paper == (50.0, None)


def test_the_whole_graph_is_a_cell_too(lab, source):
    (row,) = measure(lab, [Cell(("whole",), None)])
    (score,) = evaluate(source, models=["gcn"], runs=2, recipe={"epochs": 3})
    assert row.ours.mean == pytest.approx(100 * score.mean)


def test_a_recipe_of_a_table_is_used(lab, source):
    model = SGC(layers=1, hops=3)
    how = {"weight_decay": 0.0, "dropout": 0.5}
    (row,) = measure(lab, [Cell(("x",), None, model, recipe=how)])
    (score,) = evaluate(source, models=[model], runs=2, recipe={**how, "epochs": 3})
    assert row.ours.mean == pytest.approx(100 * score.mean)


def test_what_fails_leaves_its_cell_empty(lab):
    broken = lab.method("gcond-x", lr_features=1e38)
    failed, fine = measure(
        lab, [Cell(("a",), None, method=broken, nodes=8), Cell(("b",), None, method=lab.method("random"), nodes=8)]
    )
    assert (failed.ours, failed.n) == (None, 0)
    assert fine.n == 4
    assert len(lab.failures) == 2


def test_papers_settings_are_those_of_the_recipe(source, tmp_path):
    lab = Lab("cora", source, tmp_path, LocalEngine(1), settings="paper")
    assert lab.method("gcond").epochs == 600
    assert lab.method("gcond", structure="free").structure == "free"
    assert lab.method("random").name == "random"
    quick = Lab("cora", source, tmp_path, LocalEngine(1), scale=TINY, settings="paper")
    assert quick.method("gcond").epochs == 1
    assert quick.method("gcond").outer == lab.method("gcond").outer
    assert lab.budgets == (35, 70, 140)
    assert lab.middle == 70


def test_averages_are_over_the_five_models_of_the_paper():
    models = ("mlp", "gat", "appnp", "cheby", "gcn", "sage", "sgc")
    rows = [Row(("gcond", model), Figure(float(place)), 1, None) for place, model in enumerate(models)]
    *same, average = accuracy._with_averages(rows, lambda name: Figure(78.4))
    assert same == rows
    assert average == Row(("gcond", "average"), Figure((2 + 3 + 4 + 5 + 6) / 5), 5, Figure(78.4))


def small_lab(lab, monkeypatch):
    """The experiments at budgets that the tiny graph has."""
    monkeypatch.setattr(Lab, "budgets", (8, 9, 10))
    return lab


@pytest.mark.parametrize("name", ["parametrization", "optimization", "sparsification", "statistics", "time"])
def test_experiments_run_on_a_tiny_graph(name, lab, monkeypatch):
    small_lab(lab, monkeypatch)
    monkeypatch.setattr("gcond.reproduction.others.EPOCHS", 1)
    rows = EXPERIMENTS[name].measure(lab)
    assert rows
    assert not lab.failures
    for row in rows:
        assert len(row.labels) == len(EXPERIMENTS[name].columns)
        assert row.ours is not None or row.labels[-1] == "homophily"
    assert len({row.labels for row in rows}) == len(rows)


def test_reports_are_written_in_three_forms(source, tmp_path, monkeypatch):
    monkeypatch.setattr(Lab, "budgets", (8, 9, 10))
    reports = list(
        reproduce(
            ["original", "pubmed"],
            lambda name: source,
            ["cora"],
            tmp_path,
            LocalEngine(1),
            scale=dataclasses.replace(TINY, runs=1),
            command="gcond reproduce original",
        )
    )
    (report,) = reports  # PubMed's table is not for Cora
    saved = json.loads((tmp_path / "original.json").read_text())
    assert saved == json.loads(json.dumps(report.to_json()))
    assert [row["labels"] for row in saved["rows"]] == [[m] for m in ("gat", "cheby", "sage", "sgc", "appnp", "gcn")]
    assert saved["rows"][-1]["paper"] == {"mean": 81.2, "std": None}
    text = (tmp_path / "original.md").read_text()
    assert "| cora | gcn | " in text
    assert " | 81.2 | " in text
    assert r"\begin{tabular}" in (tmp_path / "original.tex").read_text()


def test_counts_are_shown_whole_and_differences_signed():
    rows = {
        "cora": [
            Row(("gcond", "nodes"), Figure(70), 1, Figure(70)),
            Row(("gcond", "accuracy"), Figure(80.94, 1.06), 50, Figure(80.1, 0.6)),
            Row(("gcond", "homophily"), None, 1, Figure(0.79)),
        ]
    }
    table = Report(EXPERIMENTS["statistics"], rows, (), TINY, "gcond", "").table()
    assert table.rows == (
        ("cora", "gcond", "nodes", "70", "1", "70", "+0"),
        ("cora", "gcond", "accuracy", "80.94 ± 1.06", "50", "80.10 ± 0.60", "+0.84"),
        ("cora", "gcond", "homophily", "–", "1", "0.79", "–"),
    )
