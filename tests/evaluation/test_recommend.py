"""The recipe that fits: chosen by validation alone, taken only beyond noise, one for all graphs of a source."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import gcond
from gcond.condensed import CondensedGraph, Recommendation
from gcond.errors import DivergedError, GcondError
from gcond.evaluation import recommend as module
from gcond.evaluation.recommend import Training, noise, recommend, usual_grid, usual_training
from gcond.graph.source_graph import SourceGraph
from gcond.jobs import training_job
from gcond.models import GAT, GCN, SGC
from gcond.results import RecipeSearch
from gcond.runtime.engines.idle import IdleEngine
from gcond.training import Fit, Recipe, fit

QUICK = {"epochs": 6}
GRID = {"dropout": [0.0, 0.5], "hidden": [8, 256]}


@pytest.fixture(scope="module")
def source() -> SourceGraph:
    return gcond.load("synthetic:tiny")


@pytest.fixture(scope="module")
def smalls(source: SourceGraph) -> list[CondensedGraph]:
    return [gcond.condense(source, method="random", nodes=nodes) for nodes in (12, 24)]


@pytest.fixture(scope="module")
def found(source: SourceGraph, smalls: list[CondensedGraph]) -> RecipeSearch:
    return recommend(smalls, on=source, runs=2, grid=GRID, **QUICK)


@pytest.fixture
def score(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Training, int], float]], list[Training]]:
    """Let validation accuracy be what a function of training and seed says; what was trained is listed."""

    def pretend(accuracy: Callable[[Training, int], float]) -> list[Training]:
        trained: list[Training] = []

        def fake(models: list[GCN], *views: object, seeds: list[int], recipe: Recipe, **options: Any) -> Fit:
            quick = dataclasses.replace(recipe, epochs=1)
            fitted = fit(models, *views, seeds=seeds, recipe=quick, **options)  # type: ignore[arg-type]
            wanted = [Training(model, recipe) for model in models]
            trained.extend(wanted)
            values = [accuracy(one, seed) for one, seed in zip(wanted, seeds, strict=True)]
            return dataclasses.replace(fitted, val_accuracy=torch.tensor(values, dtype=torch.float64))

        monkeypatch.setattr(training_job, "fit", fake)
        return trained

    return pretend


def test_the_grid_of_the_usual_models() -> None:
    grid = usual_grid(usual_training(GCN()))
    assert {key: sorted(values) for key, values in grid.items()} == {
        "dropout": [0, 0.5, 0.8],
        "hidden": [64, 256, 512],
        "weight_decay": [0, 5e-4, 5e-3],
        "lr": [0.003, 0.01],
        "epochs": [200, 600],
    }


def test_the_grid_follows_the_model() -> None:
    narrow, flat = usual_grid(usual_training(GAT())), usual_grid(usual_training(SGC()))
    assert sorted(narrow["epochs"]) == [1000, 3000]
    assert sorted(narrow["hidden"]) == [GAT().hidden // 4, GAT().hidden, 2 * GAT().hidden]
    assert "hidden" not in flat, "one layer has no width"
    assert "dropout" not in flat


def test_a_real_search(source: SourceGraph, smalls: list[CondensedGraph], found: RecipeSearch) -> None:
    advice = found.recommendation
    assert found.tried[0].changes == {}
    assert {tuple(one.changes) for one in found.tried[1:]} >= {("dropout",), ("hidden",)}
    assert advice.tried == len(found.tried)
    assert advice.graphs == tuple(small.sha256 for small in smalls)
    assert (advice.model, advice.runs, advice.seed, advice.source) == ("gcn", 2, 0, source.sha256)
    assert advice.held == QUICK
    assert advice.recipe["epochs"] == 6
    assert advice.transform == source.transform.kind
    assert advice.val_mean >= advice.fixed_val_mean
    assert [graph.sha256 for graph in found.graphs] == [small.sha256 for small in smalls]
    assert all(graph.provenance.recommendations == (advice,) for graph in found.graphs)
    assert all(small.provenance.recommendations == () for small in smalls), "what was given is left as it is"


def test_accuracies_are_means_over_graphs_and_runs(
    source: SourceGraph, smalls: list[CondensedGraph], found: RecipeSearch
) -> None:
    values = []
    for small in smalls:
        for seed in (0, 1):
            options = {"classes": source.num_classes, "seeds": [seed], "recipe": Recipe(epochs=6)}
            values += fit([GCN()], small.view(), source.view("val"), **options).val_accuracy.tolist()
    assert found.recommendation.fixed_val_mean == pytest.approx(sum(values) / 4)


def test_the_same_again(source: SourceGraph, smalls: list[CondensedGraph], found: RecipeSearch) -> None:
    again = recommend(smalls, on=source, runs=2, grid=GRID, **QUICK)
    assert again.tried == found.tried


def test_test_nodes_are_not_looked_at(found: RecipeSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other labels on the test nodes change nothing, and neither does a source without any."""
    plain = gcond.load("synthetic:tiny")
    poisoned = (plain.y + 1) % plain.num_classes
    monkeypatch.setattr(training_job, "predict", None)
    for changes in (
        {"y": torch.where(plain.test_mask, poisoned, plain.y)},
        {"test_mask": torch.zeros_like(plain.test_mask)},
    ):
        other = dataclasses.replace(plain, **changes)
        smalls = [gcond.condense(other, method="random", nodes=nodes) for nodes in (12, 24)]
        assert recommend(smalls, on=other, runs=2, grid=GRID, **QUICK).tried == found.tried


def test_a_gain_beyond_noise_is_taken_and_built_on(source, smalls, score) -> None:
    def accuracy(one: Training, seed: int) -> float:
        good = 0.1 * (one.recipe.dropout == 0.5) + 0.1 * (one.model.hidden == 8 and one.recipe.dropout == 0.5)
        return 0.5 + good + 0.001 * seed

    score(accuracy)
    found = recommend(smalls, on=source, grid=GRID, **QUICK)
    assert found.changes == {"hidden": 8, "dropout": 0.5}
    assert [one.changes for one in found.tried if one.taken] == [{}, {"dropout": 0.5}, found.changes]
    advice = found.recommendation
    assert (advice.settings["hidden"], advice.recipe["dropout"]) == (8, 0.5)
    assert (advice.fixed_val_mean, advice.val_mean) == (pytest.approx(0.501), pytest.approx(0.701))


def test_a_second_round_sees_what_the_first_changed(source, smalls, score) -> None:
    """Dropout is worth something only beside the width that comes after it in the grid."""
    trained = score(lambda one, _: 0.5 + 0.1 * (one.model.hidden == 8) * (1 + (one.recipe.dropout == 0.5)))
    found = recommend(smalls[:1], on=source, grid=GRID, **QUICK)
    assert found.changes == {"hidden": 8, "dropout": 0.5}
    assert len(trained) == 3 * len(found.tried), "no recipe is trained twice"


@pytest.mark.parametrize("better", [0.0, -0.1, 0.02])
def test_ties_losses_and_noise_keep_the_fixed_recipe(source, smalls, score, better: float) -> None:
    score(lambda one, seed: 0.5 + (0.06 * (seed - 1) + better if one.recipe.dropout else 0))
    found = recommend(smalls, on=source, grid=GRID, **QUICK)
    assert found.changes == {}
    assert found.recommendation.recipe["dropout"] == 0
    assert found.recommendation.val_mean == found.recommendation.fixed_val_mean
    tried = next(one for one in found.tried if one.changes == {"dropout": 0.5})
    assert tried.gain == pytest.approx(better)
    assert tried.noise > abs(better) or better < 0


def test_a_single_validation_node_is_noise(source, smalls, score) -> None:
    """Every run agrees, but on no more than one node."""
    nodes = int(source.val_mask.sum())
    score(lambda one, _: 0.5 + (0.99 / nodes if one.recipe.dropout else 0))
    assert recommend(smalls, on=source, grid=GRID, **QUICK).changes == {}


def test_the_graphs_share_one_recipe(source, smalls, score, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one budget gains and the other loses is not taken, though the first alone would take it."""
    calls = iter(range(1000))
    score(lambda one, _: 0.5 + (0.1 if one.recipe.dropout else 0) * (1 if (next(calls) // 3) % 2 == 0 else -1))
    assert recommend(smalls, on=source, grid={"dropout": [0.5]}, **QUICK).changes == {}
    calls = iter([0] * 1000)
    assert recommend(smalls[:1], on=source, grid={"dropout": [0.5]}, **QUICK).changes == {"dropout": 0.5}


def test_noise_is_that_of_a_paired_test() -> None:
    from scipy.stats import ttest_1samp

    gains = [0.01, 0.03, 0.02, 0.005]
    least = noise(gains)
    shifted = [gain - sum(gains) / 4 + least for gain in gains]
    assert ttest_1samp(shifted, 0, alternative="greater").pvalue == pytest.approx(0.05)
    assert noise([0.01, 0.01]) == 0


def test_a_recipe_that_diverges_is_passed_over(source, smalls, monkeypatch: pytest.MonkeyPatch) -> None:
    def fragile(models: Any, *views: object, recipe: Recipe, **options: Any) -> Fit:
        if recipe.dropout:
            raise DivergedError("numbers are not finite")
        return fit(models, *views, recipe=recipe, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(training_job, "fit", fragile)
    found = recommend(smalls, on=source, runs=2, grid=GRID, **QUICK)
    failed = next(one for one in found.tried if one.changes == {"dropout": 0.5})
    assert (failed.val_mean, failed.gain, failed.taken) == (None, None, False)
    assert found.failures
    with pytest.raises(GcondError, match="not finite"):
        recommend(smalls, on=source, dropout=0.5, **QUICK)


def test_a_run_folder_is_not_trained_twice(source, smalls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = recommend(smalls, on=source, runs=2, grid=GRID, folder=tmp_path, **QUICK)
    monkeypatch.setattr(training_job, "fit", None)
    assert recommend(smalls, on=source, runs=2, grid=GRID, folder=tmp_path, **QUICK).tried == first.tried
    with pytest.raises(GcondError, match="not all of these trainings are done yet"):
        recommend(smalls, on=source, runs=3, grid=GRID, folder=tmp_path, engine=IdleEngine(), **QUICK)


def test_held_settings_are_in_every_recipe(source, smalls, score) -> None:
    trained = score(lambda one, seed: 0.5)
    recommend(smalls, on=source, hidden=16, weight_decay=0.01, **QUICK)
    assert {one.model.hidden for one in trained} == {16}
    assert {(one.recipe.weight_decay, one.recipe.epochs) for one in trained} == {(0.01, 6)}
    assert {one.recipe.dropout for one in trained} == {0, 0.5, 0.8}


def test_a_model_keeps_its_other_settings(source, smalls, score) -> None:
    score(lambda one, seed: 0.5 + 0.1 * bool(one.recipe.dropout))
    advice = recommend(smalls, on=source, model=GCN(layers=3), grid={"dropout": ["0.5"]}, **QUICK).recommendation
    assert advice.settings["layers"] == 3
    assert advice.held == {"layers": 3, "epochs": 6}


def test_files_do_as_well(source, smalls, tmp_path: Path, found: RecipeSearch) -> None:
    for place, small in enumerate(smalls):
        small.save(tmp_path / f"{place}.safetensors")
    files = sorted(tmp_path.glob("*.safetensors"))
    assert recommend(files, on=source, runs=2, grid=GRID, **QUICK).tried == found.tried
    one = recommend(str(files[0]), on="synthetic:tiny", runs=2, grid=GRID, **QUICK)
    assert len(one.graphs) == 1


def test_refusals(source, smalls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Runner", None)
    bare = dataclasses.replace(smalls[0], provenance=None)
    other = gcond.load("synthetic:tiny", setting="inductive")
    elsewhere = gcond.condense(other, method="random", nodes=12)
    for graphs, changes, said in [
        ([], {}, "give at least one"),
        ([bare], {}, "without provenance"),
        ([smalls[0], smalls[0]], {}, "give each once"),
        ([smalls[0], elsewhere], {}, "in different ways"),
        (smalls, {"on": other}, "not the graph these were made from"),
        (smalls[:1], {"runs": 1}, "runs=2"),
        (smalls, {"runs": 0}, "runs=0"),
        (smalls, {"model": "all"}, "one model at a time"),
        (smalls, {"model": "gnc"}, "unknown model 'gnc'"),
        (smalls, {"grid": {}}, "the grid is empty"),
        (smalls, {"grid": {"dropout": []}}, "no value for 'dropout'"),
        (smalls, {"grid": {"droput": [0.5]}}, "did you mean 'dropout'"),
        (smalls, {"grid": {"dropout": [2]}}, "below 1"),
        (smalls, {"grid": {"dropout": [0.5]}, "dropout": 0.1}, "held at 0.1"),
        (smalls, {"epoch": 5}, "did you mean 'epochs'"),
    ]:
        with pytest.raises(GcondError, match=said):
            recommend(graphs, **{"on": source, **changes})


ADVICE = Recommendation(
    model="gcn",
    settings={"layers": 2, "hidden": 8, "activation": "tanh"},
    recipe={"epochs": 7, "dropout": 0.5},
    transform="none",
    val_mean=0.6,
    fixed_val_mean=0.5,
    tried=4,
    graphs=("ab",),
    runs=2,
)


def test_evaluate_follows_the_recommendation(source, smalls) -> None:
    advised = smalls[0].with_recommendation(ADVICE)
    (score,) = gcond.evaluate(advised, on=source, runs=2, recipe="recommended")
    expected = gcond.evaluate(
        smalls[0], on=source, runs=2, models=[GCN(hidden=8, activation="tanh")], recipe=ADVICE.recipe
    )
    assert score.runs == expected[0].runs
    assert (score.settings, score.recipe) == (ADVICE.settings, expected[0].recipe)
    (fixed,) = gcond.evaluate(advised, on=source, runs=1, epochs=3)
    assert fixed.settings["hidden"] == 256, "without being asked for, it changes nothing"


def test_what_is_given_goes_on_top(source, smalls) -> None:
    advised = smalls[0].with_recommendation(ADVICE)
    (score,) = gcond.evaluate(advised, on=source, runs=1, recipe="recommended", models=GCN(hidden=5), epochs=3)
    assert (score.settings["hidden"], score.recipe["epochs"], score.recipe["dropout"]) == (5, 3, 0.5)


def test_a_file_lends_its_recommendation(source, smalls, tmp_path: Path) -> None:
    file = tmp_path / "advised.safetensors"
    smalls[0].with_recommendation(ADVICE).save(file)
    for graph, on in ((source, None), ("synthetic:tiny", None), (smalls[1], source)):
        (score,) = gcond.evaluate(graph, on=on, runs=1, recipe=file)
        assert (score.settings, score.recipe["epochs"]) == (ADVICE.settings, 7)


def test_the_whole_graph_gets_the_transform_of_the_file(tmp_path: Path) -> None:
    source = gcond.load("synthetic:tiny", features="unit-rows")
    small = gcond.condense(source, method="random", nodes=12).with_recommendation(ADVICE)
    small.save(tmp_path / "advised.safetensors")
    (score,) = gcond.evaluate("synthetic:tiny", runs=1, recipe=tmp_path / "advised.safetensors")
    assert score.source == source.sha256
    with pytest.warns(gcond.GcondWarning, match="found for other features"):
        gcond.evaluate(gcond.load("synthetic:tiny"), runs=1, recipe=tmp_path / "advised.safetensors")


def test_evaluate_refuses_what_was_not_found(source, smalls, tmp_path: Path) -> None:
    smalls[0].save(tmp_path / "plain.safetensors")
    advised = smalls[0].with_recommendation(ADVICE)
    damaged = smalls[0].with_recommendation(dataclasses.replace(ADVICE, recipe={"epochz": 1}))
    for graph, options, said in [
        (smalls[0], {}, "gcond recommend FILE --on SOURCE"),
        (tmp_path / "plain.safetensors", {}, "gcond recommend .*plain.safetensors --on SOURCE"),
        (advised, {"models": ["gcn", "sgc"]}, "for sgc, only for gcn.*--model sgc"),
        (advised, {"recipe": tmp_path / "plain.safetensors"}, "plain.safetensors' has no recommended recipe"),
        (advised, {"recipe": "nothing.safetensors"}, "there is no file 'nothing.safetensors'"),
        (source, {}, "give recipe=FILE"),
        (damaged, {}, "recommended recipe of gcn has no setting 'epochz'"),
    ]:
        with pytest.raises(GcondError, match=said):
            gcond.evaluate(graph, on=source, **{"runs": 1, "recipe": "recommended", **options})
