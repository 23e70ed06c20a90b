"""The paper's tables: what is measured is what they say, and it stands beside the right figure."""

from __future__ import annotations

import dataclasses
import json

import pytest

import gcond
from gcond.data.catalogue import DATASETS
from gcond.errors import GcondError
from gcond.evaluation.evaluate import evaluate
from gcond.evaluation.threshold_sweep import DELTAS
from gcond.methods import find
from gcond.methods import recipe_file as recipes
from gcond.models.gcn import GCN
from gcond.models.sgc import SGC
from gcond.reports.reproduction_table import reproduction_table
from gcond.reproduction import accuracy_tables as accuracy
from gcond.reproduction.accuracy_tables import Cell, measure
from gcond.reproduction.drawings import draw, threshold_points
from gcond.reproduction.experiment_setup import ExperimentSetup, Plan, Scale
from gcond.reproduction.experiments import EXPERIMENTS
from gcond.reproduction.paper import figure, spelling, tables
from gcond.reproduction.reproduce import reproduce
from gcond.results.reproduction import Figure, ReproducedRow, Reproduction
from gcond.results.threshold import ThresholdPoint
from gcond.runtime.engines.idle import IdleEngine
from gcond.runtime.engines.local import LocalEngine

TINY = Scale(
    seeds=2, runs=2, epochs=1, train={"epochs": 3}, architectures={"hops": (1, 2), "activation": ("relu", "sigmoid")}
)


@pytest.fixture(scope="module")
def source():
    return gcond.load("synthetic:tiny")


@pytest.fixture
def setup(source, tmp_path):
    return ExperimentSetup("cora", source, tmp_path, Plan(LocalEngine(1), scale=TINY))


def test_figures_are_the_papers():
    """As a reader of the paper finds them, one of each shape that the JSON has."""
    assert figure("main", "cora", "rows", 1, "gcond") == Figure(80.1, 0.6)
    assert figure("main", "citeseer", "whole") == Figure(71.7, 0.1)
    assert figure("architectures", "cora", "gcond", "gat") == Figure(66.2, None)
    assert figure("versatility", "cora", "cells", "sgc", "gcn") == Figure(80.1, 0.6)
    assert figure("cross_depth", "cells", 2, 3) == Figure(80.7, None)
    assert figure("depth_hidden", "citeseer", "cells", 16, 1) == Figure(58.6, 12.1)
    assert figure("time", "cora", "0.05") == Figure(43.9, None)
    assert figure("nas", "citeseer", "pearson", "gcond") == Figure(0.79, None)
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


def test_a_cell_is_what_condense_and_evaluate_give(setup, source):
    method = setup.method("random")
    (row,) = measure(setup, [Cell(("x",), Figure(50.0), GCN(), method, nodes=8)])
    scores = []
    for seed in range(2):
        small = gcond.condense(source, method="random", nodes=8, seed=seed)
        (score,) = evaluate(small, on=source, models=[GCN()], runs=2, seed=10 * seed, recipe={"epochs": 3})
        scores += score.runs
    assert row.n == 4
    assert row.ours.mean == pytest.approx(100 * sum(scores) / 4)
    assert row.paper == Figure(50.0)


def test_the_whole_graph_is_a_cell_too(setup, source):
    (row,) = measure(setup, [Cell(("whole",), None)])
    (score,) = evaluate(source, models=["gcn"], runs=2, recipe={"epochs": 3})
    assert row.ours.mean == pytest.approx(100 * score.mean)


def test_a_recipe_of_a_table_is_used(setup, source):
    model = SGC(layers=1, hops=3)
    how = {"weight_decay": 0.0, "dropout": 0.5}
    (row,) = measure(setup, [Cell(("x",), None, model, recipe=how)])
    (score,) = evaluate(source, models=[model], runs=2, recipe={**how, "epochs": 3})
    assert row.ours.mean == pytest.approx(100 * score.mean)


def test_what_fails_leaves_its_cell_empty(setup):
    broken = setup.method("gcond-x", lr_features=1e38)
    failed, fine = measure(
        setup, [Cell(("a",), None, method=broken, nodes=8), Cell(("b",), None, method=setup.method("random"), nodes=8)]
    )
    assert (failed.ours, failed.n) == (None, 0)
    assert fine.n == 4
    assert len(setup.failures) == 2


def test_papers_settings_are_those_of_the_recipe(source, tmp_path):
    setup = ExperimentSetup("cora", source, tmp_path, Plan(LocalEngine(1), settings="paper"))
    assert setup.method("gcond").epochs == 600
    assert setup.method("gcond", structure="free").structure == "free"
    assert setup.method("random").name == "random"
    quick = ExperimentSetup("cora", source, tmp_path, Plan(LocalEngine(1), scale=TINY, settings="paper"))
    assert quick.method("gcond").epochs == 1
    assert quick.method("gcond").outer == setup.method("gcond").outer
    assert setup.budgets == (35, 70, 140)
    assert setup.middle == 70


def test_averages_are_over_the_five_models_of_the_paper():
    models = ("mlp", "gat", "appnp", "cheby", "gcn", "sage", "sgc")
    rows = [ReproducedRow(("gcond", model), Figure(float(place)), 1, None) for place, model in enumerate(models)]
    *same, average = accuracy._with_averages(rows, lambda name: Figure(78.4))
    assert same == rows
    assert average == ReproducedRow(("gcond", "average"), Figure((2 + 3 + 4 + 5 + 6) / 5), 5, Figure(78.4))


CHEAP = {"epochs": 1, "outer": 1, "inner": 1, "init": "sample", "probe_every": 0}


def small_lab(setup, monkeypatch):
    """The experiments at budgets that the tiny graph has, with methods that do as little as they can."""
    original = ExperimentSetup.method

    def method(self, name, **options):
        known = {field.name for field in dataclasses.fields(find(name))}
        return original(self, name, **({key: value for key, value in CHEAP.items() if key in known} | options))

    monkeypatch.setattr(ExperimentSetup, "budgets", (8, 9, 10))
    monkeypatch.setattr(ExperimentSetup, "method", method)
    return setup


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_run_on_a_tiny_graph(name, setup, monkeypatch):
    small_lab(setup, monkeypatch)
    rows = EXPERIMENTS[name].measure(setup)
    assert rows
    assert not setup.failures
    for row in rows:
        assert len(row.labels) == len(EXPERIMENTS[name].columns)
        assert row.ours is not None or row.labels[-1] in ("homophily", "Pearson", "Spearman")
        assert type(row.n) is int
    assert len({row.labels for row in rows}) == len(rows)


def test_reports_are_written_in_three_forms(source, tmp_path, monkeypatch):
    monkeypatch.setattr(ExperimentSetup, "budgets", (8, 9, 10))
    reports = list(
        reproduce(
            ["original", "pubmed"],
            lambda name: source,
            ["cora"],
            tmp_path,
            Plan(LocalEngine(1), scale=dataclasses.replace(TINY, runs=1), command="gcond reproduce original"),
        )
    )
    (report,) = reports  # PubMed's table is not for Cora
    saved = json.loads((tmp_path / "original.json").read_text())
    assert Reproduction.load(tmp_path / "original.json") == report
    assert [row["labels"] for row in saved["rows"]] == [[m] for m in ("gat", "cheby", "sage", "sgc", "appnp", "gcn")]
    assert saved["rows"][-1]["paper"] == {"mean": 81.2, "std": None}
    text = (tmp_path / "original.md").read_text()
    assert "| cora | gcn | " in text
    assert " | 81.2 | " in text
    assert r"\begin{tabular}" in (tmp_path / "original.tex").read_text()


def test_counts_are_shown_whole_and_differences_signed():
    rows = (
        ReproducedRow(("gcond", "nodes"), Figure(70), 1, Figure(70), digits=0, dataset="cora"),
        ReproducedRow(("gcond", "accuracy"), Figure(80.94, 1.06), 50, Figure(80.1, 0.6), dataset="cora"),
        ReproducedRow(("gcond", "homophily"), None, 1, Figure(0.79), dataset="cora"),
        ReproducedRow(("gcond", "sparsity"), Figure(6.0), 1, Figure(86.0), dataset="cora"),
    )
    table = reproduction_table(Reproduction("statistics", "", ("graph", "property"), 2, "gcond", 2, 2, rows))
    assert table.rows == (
        ("cora", "gcond", "nodes", "70", "1", "70", "+0"),
        ("cora", "gcond", "accuracy", "80.94 ± 1.06", "50", "80.10 ± 0.60", "+0.84"),
        ("cora", "gcond", "homophily", "–", "1", "0.79", "–"),
        ("cora", "gcond", "sparsity", "6.00", "1", "86.00", "-80.00"),
    )


def test_seconds_of_few_epochs_are_those_of_fifty(setup, monkeypatch):
    """A quick version does fewer epochs, and multiplies."""
    small_lab(setup, monkeypatch)
    rows = EXPERIMENTS["time"].measure(setup)
    made = [
        setup.condense(
            setup.method("gcond", epochs=1, probe_every=0, patience=0, init="sample"), int(rows[0].labels[1]), seed
        )
        for seed in range(2)
    ]
    assert rows[0].ours.mean == pytest.approx(50 * sum(small.provenance.cost["wall_seconds"] for small in made) / 2)
    assert rows[0].n == 2


def test_a_search_that_is_not_done_leaves_its_cells_empty(source, tmp_path, monkeypatch):
    setup = small_lab(ExperimentSetup("cora", source, tmp_path, Plan(IdleEngine(), scale=TINY)), monkeypatch)
    rows = EXPERIMENTS["nas"].measure(setup)
    assert {row.labels[0] for row in rows} == {"random", "herding", "gcond", "whole"}
    assert all(row.ours is None for row in rows)
    assert [row.paper for row in rows if row.labels == ("random", "Pearson")] == [
        figure("nas", "cora", "pearson", "random")
    ]
    assert not list(tmp_path.iterdir())


def test_a_threshold_below_what_was_saved_brings_edges_back(source):
    """Where no edge passed the method's own threshold, Φ still knows them."""
    small = gcond.condense(source, method="gcond", nodes=8, epochs=1, delta=0.9, init="sample")
    assert small.num_edges == 0
    assert accuracy._cut(small, 0.01).num_edges > 0
    bare = gcond.condense(source, method="gcond-x", nodes=8, epochs=1, init="sample")
    assert accuracy._cut(bare, 0.01) is bare


def test_gat_trains_on_heavy_edges_where_the_recipe_says_so(setup):
    assert setup.recipe.gat_threshold == 0.5
    assert recipes.load("flickr").gat_threshold is None


def test_the_whole_graph_of_an_inductive_source_is_what_training_sees(source, tmp_path, monkeypatch):
    apart = source.with_setting("inductive")
    setup = small_lab(ExperimentSetup("cora", apart, tmp_path, Plan(LocalEngine(1), scale=TINY)), monkeypatch)
    counted = {row.labels: row.ours.mean for row in EXPERIMENTS["statistics"].measure(setup) if row.ours}
    inside = apart.view("train").inputs
    assert counted["whole", "nodes"] == inside.num_nodes < source.num_nodes
    assert counted["whole", "edges"] == inside.adjacency.nnz / 2


def test_a_data_set_that_is_missing_is_told_before_any_work(source, tmp_path):
    def load(name):
        if name == "citeseer":
            raise GcondError("citeseer is not here: fetch it")
        return source

    with pytest.raises(GcondError, match="citeseer is not here"):
        list(reproduce(["main"], load, ["cora", "citeseer"], tmp_path / "out", Plan(LocalEngine(1), scale=TINY)))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["sparsification", "nas", "original"])
def test_what_is_rather_looked_at_is_drawn(name, source, tmp_path, monkeypatch):
    small_lab(None, monkeypatch)
    (report,) = reproduce([name], lambda _: source, ["cora"], tmp_path, Plan(LocalEngine(1), scale=TINY))
    written = draw(report, tmp_path)
    assert written == ([] if name == "original" else [tmp_path / f"{name}-cora.png"])
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    if name == "nas":
        assert json.loads((tmp_path / "cora" / "nas.json").read_text())["condensed"]["method"] == "gcond"


def test_points_of_the_curve_are_the_rows():
    rows = [
        ReproducedRow((f"δ = {delta:g}", "12.50 %"), Figure(80.0 + place, 0.5), 4, None)
        for place, delta in enumerate(DELTAS)
    ]
    points = threshold_points([*rows[:-1], ReproducedRow(("δ = 0.8", ""), None, 0, None)])
    assert [point.delta for point in points] == list(DELTAS[:-1])
    assert points[1] == ThresholdPoint(DELTAS[1], 0.125, 0.81, 0.005, 4)


def test_the_papers_figures_are_measured_by_its_protocol(setup):
    """Every epoch is done and looked at; what a scale or a cell asks for goes on top."""
    (order,) = accuracy._orders(setup, Cell((), None), [], {})
    assert (order.recipe.validate_every, order.recipe.patience, order.recipe.epochs) == (1, 0, 3)
    (order,) = accuracy._orders(setup, Cell((), None, recipe={"validate_every": 2}), [], {})
    assert order.recipe.validate_every == 2
