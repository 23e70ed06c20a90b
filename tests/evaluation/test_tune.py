"""A search for hyper-parameters: what is drawn, what is given up, what survives a kill, and what is told at the end."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import pytest
import torch

import gcond
from gcond.condensed import CondensedGraph
from gcond.config.setting_ranges import Choices, Range, SettingRange
from gcond.errors import DivergedError, GcondError
from gcond.evaluation.evaluate import evaluate
from gcond.evaluation.recommend import Training, usual_training
from gcond.evaluation.tuning.candidates import shortlist
from gcond.evaluation.tuning.rungs import goes_on, rungs
from gcond.evaluation.tuning.search_space import tuning_space, usual_ranges
from gcond.graph.source_graph import SourceGraph
from gcond.jobs import training_job
from gcond.models import APPNP, GAT, GCN, MLP, SGC, available
from gcond.reports.tuning_table import tuning_tables
from gcond.results import Tuning
from gcond.runtime.engines import Engine, Outcome, open_engine
from gcond.runtime.engines.idle import IdleEngine
from gcond.training import Fit, Recipe, fit

optuna = pytest.importorskip("optuna")

QUICK: dict[str, Any] = {"epochs": 9, "trials": 14, "batch": 4, "top": 3, "final_runs": 2}
NARROW: dict[str, Any] = {"hidden": [4, 8, 16], "layers": "1..2"}


class Elsewhere(Engine):
    """Jobs in reverse, as a cluster may finish them."""

    def work_off(self, function: Any, shared: Any, jobs: Iterator[Any], hear: object) -> Iterator[Outcome[Any, Any]]:
        for job in reversed(list(jobs)):
            yield Outcome(job, function(shared, job, lambda fraction: None))

    def close(self) -> None:
        raise AssertionError("an engine that was given is not closed")


@pytest.fixture(scope="module")
def source() -> SourceGraph:
    return gcond.load("synthetic:tiny")


@pytest.fixture(scope="module")
def small(source: SourceGraph) -> CondensedGraph:
    return gcond.condense(source, method="random", nodes=24)


@pytest.fixture(scope="module")
def found(source: SourceGraph, small: CondensedGraph) -> Tuning:
    return gcond.tune(small, on=source, grid=NARROW, **QUICK)


@pytest.fixture
def score(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Training, int], float]], list[Training]]:
    """Let validation accuracy be what a function of training and seed says; what was trained is listed."""

    def pretend(accuracy: Callable[[Training, int], float]) -> list[Training]:
        trained: list[Training] = []

        def fake(model: Any, *views: object, seeds: list[int], recipe: Recipe, **options: Any) -> Fit:
            models = [model] * len(seeds) if isinstance(model, GCN) else model
            fitted = fit(model, *views, seeds=seeds, recipe=dataclasses.replace(recipe, epochs=1), **options)  # type: ignore[arg-type]
            wanted = [Training(one, recipe) for one in models]
            trained.extend(wanted)
            values = [accuracy(one, seed) for one, seed in zip(wanted, seeds, strict=True)]
            return dataclasses.replace(fitted, val_accuracy=torch.tensor(values, dtype=torch.float64))

        monkeypatch.setattr(training_job, "fit", fake)
        return trained

    return pretend


def told(result: Tuning) -> dict[str, Any]:
    """All of it but the times."""
    made = json.loads(json.dumps(result.to_json(), allow_nan=False))
    for part in (made, *made["trials"], *made["finalists"], made["recommendation"] or {}):
        for key in [key for key in part if "seconds" in key]:
            del part[key]
    return made


def trained(result: Tuning, number: int) -> tuple[GCN, dict[str, Any]]:
    """The model and the recipe of a trial of GCN."""
    settings = result.trials[number].settings
    shape = {key: value for key, value in settings.items() if key in ("layers", "hidden")}
    return GCN(**shape), {key: value for key, value in settings.items() if key not in shape}  # type: ignore[arg-type]


# --- the space


def test_the_ranges_of_the_usual_models() -> None:
    assert usual_ranges(usual_training(GCN())) == {
        "layers": Range(2, 4),
        "hidden": Choices((32, 64, 128, 256, 512)),
        "dropout": Range(0.0, 0.8, step=0.1),
        "lr": Range(0.001, 0.1, log=True),
        "weight_decay": Range(1e-5, 1e-2, log=True),
    }
    assert usual_ranges(usual_training(GAT()))["lr"] == Range(1e-4, 1e-2, log=True)
    assert usual_ranges(usual_training(SGC()))["hops"] == Range(1, 4)
    assert set(usual_ranges(usual_training(APPNP()))) >= {"hops", "alpha"}


@pytest.mark.parametrize("name", sorted(available()))
def test_every_usual_configuration_lies_in_its_space(name: str) -> None:
    space = tuning_space(name, None, {})
    assert all(space.ranges[name][key].holds(value) for key, value in space.usual(name).items())
    assert set(available()[name].ranges) == {field.name for field in dataclasses.fields(available()[name])} - {
        field.name for field in dataclasses.fields(MLP)
    }, "a setting that only this model has is searched"


def test_one_layer_has_no_width_and_no_dropout(source: SourceGraph, small: CondensedGraph) -> None:
    result = gcond.tune(small, on=source, model="sgc", **QUICK | {"trials": 20})
    flat = [trial for trial in result.trials if trial.settings["layers"] == 1]
    deep = [trial for trial in result.trials if trial.settings["layers"] != 1]
    assert flat
    assert deep
    assert all({"hidden", "dropout"}.isdisjoint(trial.settings) for trial in flat)
    assert all({"hidden", "dropout"} <= set(trial.settings) for trial in deep)


def test_a_model_of_one_s_own_brings_its_range(source: SourceGraph, small: CondensedGraph) -> None:
    @dataclass(frozen=True)
    class Own(GCN):
        name: ClassVar[str] = "own"
        ranges: ClassVar[Mapping[str, SettingRange]] = {"extra": Range(1, 3)}
        extra: int = 2

    result = gcond.tune(small, on=source, model=Own(hidden=8), **QUICK)
    assert result.trials[0].settings["extra"] == 2
    assert {trial.settings["extra"] for trial in result.trials} == {1, 2, 3}
    assert result.ranges["own"]["hidden"] == Choices((1, 2, 4, 8, 16))


def test_what_is_held_is_the_same_everywhere(found: Tuning) -> None:
    assert found.held == {"epochs": 9}
    assert all(one.recipe["epochs"] == 9 for one in found.finalists)
    assert all("epochs" not in trial.settings for trial in found.trials)
    for trial in found.trials:
        assert all(found.ranges["gcn"][key].holds(value) for key, value in trial.settings.items() if not trial.usual)


# --- the search


def test_the_usual_configuration_comes_first_and_is_never_given_up(found: Tuning) -> None:
    first = found.trials[0]
    assert first.usual
    assert (first.state, len(first.accuracies)) == ("complete", 3)
    assert first.settings == {"layers": 2, "hidden": 256, "dropout": 0.0, "lr": 0.01, "weight_decay": 5e-4}
    assert not any(trial.usual for trial in found.trials[1:])
    assert found.usual is not None
    assert found.usual.trial == 0


def test_another_engine_gives_the_same_search_and_another_seed_another(
    source: SourceGraph, small: CondensedGraph, found: Tuning
) -> None:
    assert told(gcond.tune(small, on=source, grid=NARROW, engine=Elsewhere(), **QUICK)) == told(found)
    other = gcond.tune(small, on=source, grid=NARROW, seed=1, **QUICK)
    assert [trial.settings for trial in other.trials[1:]] != [trial.settings for trial in found.trials[1:]]


def test_test_labels_decide_nothing_and_are_not_looked_at_in_the_search(
    source: SourceGraph, small: CondensedGraph, found: Tuning, tmp_path: Path
) -> None:
    y = source.y.clone()
    index = source.test_mask.nonzero().squeeze(1)
    y[index] = y[index].roll(7)
    poisoned = gcond.tune(small, on=dataclasses.replace(source, y=y), grid=NARROW, folder=tmp_path, **QUICK)
    honest, other = told(found), told(poisoned)
    assert honest["trials"] == other["trials"]
    assert [one["trial"] for one in honest["finalists"]] == [one["trial"] for one in other["finalists"]]
    assert [one["val"] for one in honest["finalists"]] == [one["val"] for one in other["finalists"]]
    assert [one["test"] for one in honest["finalists"]] != [one["test"] for one in other["finalists"]]
    rows = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    searched = sum(row["condensed"] is not None for row in rows)
    tested = [row["test"] is not None for row in rows]
    assert searched == sum(len(trial.accuracies) for trial in found.trials) + 2 * len(found.finalists)
    assert sum(tested) == 4 * len(found.finalists)
    assert tested == sorted(tested), "what is tested comes after all of the search"


def test_a_rung_is_a_training_of_that_length_as_evaluation_trains(
    source: SourceGraph, small: CondensedGraph, found: Tuning
) -> None:
    for trial in found.trials[:4]:
        model, recipe = trained(found, trial.number)
        for epochs, accuracy in zip((1, 3, 9), trial.accuracies, strict=False):
            looks = {**recipe, "epochs": epochs, "validate_every": 1}
            (score,) = evaluate(small, on=source, models=[model], runs=1, recipe=looks)
            assert accuracy == pytest.approx(score.val_mean, abs=0.02)


def test_rungs() -> None:
    short = [(one.epochs, one.validate_every, one.patience, one.lr) for one in rungs(Recipe(lr=0.02), prune=True)]
    assert short == [(66, 6, "auto", 0.02), (200, 20, "auto", 0.02), (600, 15, "auto", 0.02)]
    assert rungs(Recipe(), prune=False) == (Recipe(validate_every=15),)
    assert [one.epochs for one in rungs(Recipe(epochs=1), prune=True)] == [1, 1, 1]
    assert {one.validate_every for one in rungs(Recipe(validate_every=3), prune=True)} == {3}, "as a person wants it"
    assert goes_on(0.5, [0.5])
    assert [goes_on(value, [0.1, 0.2, 0.3]) for value in (0.1, 0.2, 0.3)] == [False, False, True]
    assert [goes_on(value, [0.1, 0.2, 0.3, 0.4]) for value in (0.2, 0.3, 0.4)] == [False, True, True]
    assert all(goes_on(0.3, [0.3] * 9) for _ in range(9)), "ties go on together"


def test_only_the_best_third_goes_on(found: Tuning) -> None:
    """By the definition: each batch is compared with all that came to the rung before it, and with itself."""
    reached: list[list[float]] = [[], [], []]
    for start in range(0, len(found.trials), found.batch):
        going = list(found.trials[start : start + found.batch])
        for rung in range(3):
            reached[rung] += [trial.accuracies[rung] for trial in going]
            assert all(len(trial.accuracies) > rung for trial in going)
            place = math.ceil(len(reached[rung]) / 3)
            least = sorted(reached[rung])[-place]
            stay = [trial for trial in going if trial.usual or trial.accuracies[rung] >= least or rung == 2]
            for trial in going:
                if trial not in stay:
                    assert (trial.state, len(trial.accuracies)) == ("pruned", rung + 1)
            going = stay
        assert all(trial.state == "complete" for trial in going)
    assert found.count("pruned") > 0


def test_without_pruning_all_are_trained_fully(source: SourceGraph, small: CondensedGraph) -> None:
    result = gcond.tune(small, on=source, grid=NARROW, prune=False, **QUICK | {"trials": 6})
    assert [(trial.state, len(trial.accuracies)) for trial in result.trials] == [("complete", 1)] * 6
    assert [trial.epochs for trial in result.trials] == [9] * 6


def test_it_finds_what_is_good(source: SourceGraph, small: CondensedGraph, score: Any) -> None:
    """An accuracy with its peak at a rate of 0.03 and a dropout of 0.6: better than usual, and than chance would be."""

    def peak(one: Training, seed: int) -> float:
        return 1 - abs(math.log10(one.recipe.lr / 0.03)) / 4 - abs(one.recipe.dropout - 0.6) / 2

    score(peak)
    result = gcond.tune(small, on=source, **QUICK | {"trials": 48, "batch": 8, "epochs": 900})
    late = [trial.val for trial in result.trials[24:] if trial.val is not None]
    early = [trial.val for trial in result.trials[:24] if trial.val is not None]
    assert fmean(late) > fmean(early)
    assert result.winner is not None
    assert result.winner.searched > 0.95
    assert (result.trials[0].val or 1) < 0.6


def test_an_accuracy_is_the_mean_over_runs_from_seeds_that_count_on(
    source: SourceGraph, small: CondensedGraph, score: Any
) -> None:
    seen: set[int] = set()

    def by_seed(one: Training, seed: int) -> float:
        seen.add(seed)
        return 0.1 * seed

    score(by_seed)
    result = gcond.tune(small, on=source, seed=3, runs=2, **QUICK | {"trials": 2})
    assert result.trials[0].val == pytest.approx(0.35)
    assert seen == {3, 4}, "final runs start from the same seeds"


def test_what_is_drawn_again_is_neither_trained_nor_counted_again(
    source: SourceGraph, small: CondensedGraph, tmp_path: Path
) -> None:
    held = {"layers": 2, "dropout": 0.0, "lr": 0.01, "weight_decay": 5e-4}
    result = gcond.tune(small, on=source, grid={"hidden": [4, 8]}, folder=tmp_path, prune=False, **QUICK, **held)
    assert sorted({trial.settings["hidden"] for trial in result.trials}) == [4, 8, 256]
    assert [trial.epochs for trial in result.trials].count(9) == 3
    assert sum(trial.epochs for trial in result.trials) == 27
    assert len({tuple(one.settings.items()) for one in result.finalists}) == len(result.finalists) == 3
    names = [(row["key"], row["seed"]) for row in map(json.loads, (tmp_path / "trials.jsonl").read_text().splitlines())]
    assert len(names) == len(set(names)) == 3 + 3 * 2 + 3 * 2


def test_who_diverges_fails_alone(source: SourceGraph, small: CondensedGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    def fragile(*views: object, recipe: Recipe, **options: Any) -> Fit:
        if recipe.lr > 0.03:
            raise DivergedError("training gcn diverged")
        return fit(*views, recipe=recipe, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(training_job, "fit", fragile)
    result = gcond.tune(small, on=source, grid=NARROW, **QUICK)
    assert len(result.trials) == QUICK["trials"]
    for trial in result.trials:
        assert (trial.state == "failed") == (float(trial.settings["lr"]) > 0.03)  # type: ignore[arg-type]
    assert result.count("failed") > 0
    assert len(result.failures) == result.count("failed")
    assert result.finalists


def test_several_models(source: SourceGraph, small: CondensedGraph) -> None:
    result = gcond.tune(small, on=source, model=["sgc", GCN(hidden=8), "mlp"], **QUICK | {"batch": 2})
    assert [(trial.model, trial.usual) for trial in result.trials[:3]] == [("sgc", True), ("gcn", True), ("mlp", True)]
    assert result.models == ("sgc", "gcn", "mlp")
    assert len({trial.model for trial in result.trials[3:]}) > 1
    winner, usual = result.winner, result.usual
    assert winner is not None
    assert usual is not None
    assert usual.model == winner.model
    assert result.trials[usual.trial].usual


def test_another_metric_chooses(source: SourceGraph, small: CondensedGraph, found: Tuning) -> None:
    result = gcond.tune(small, on=source, grid=NARROW, metric="macro-f1", **QUICK)
    assert (found.metric, result.metric) == ("accuracy", "macro-f1")
    (score,) = evaluate(small, on=source, runs=1, epochs=9, metric="macro-f1")
    assert result.trials[0].val == pytest.approx(score.val_mean, abs=0.02)
    assert result.trials[0].val != found.trials[0].val
    assert all(one.recipe["metric"] == "macro-f1" for one in result.finalists)


def test_inductive_graphs_and_soft_labels(make_graph: Any) -> None:
    graph = make_graph("inductive")
    small = gcond.condense(graph, method="clusters", nodes=6, teacher="ridge")
    result = gcond.tune(small, on=graph, grid=NARROW, **QUICK | {"trials": 4})
    assert len(result.trials) == 4
    assert result.source.setting == "inductive"


# --- stopped and taken up


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(
    source: SourceGraph, small: CondensedGraph, found: Tuning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = training_job.train, []

    def stop(shared: Any, batch: Any, tell: Any) -> Any:
        if len(calls) in (7, 20):
            calls.append(None)
            raise KeyboardInterrupt
        calls.append(batch)
        return original(shared, batch, tell)

    monkeypatch.setattr("gcond.jobs.runner.train", stop)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            gcond.tune(small, on=source, grid=NARROW, folder=tmp_path, **QUICK)
    partly = Tuning.load(tmp_path)
    assert 0 < len(partly.trials) < QUICK["trials"]
    assert partly.finalists == ()
    assert told(gcond.tune(small, on=source, grid=NARROW, folder=tmp_path, **QUICK)) == told(found)
    rows = (tmp_path / "trials.jsonl").read_text().splitlines()
    assert len(rows) == len({(json.loads(row)["key"], json.loads(row)["seed"]) for row in rows})
    monkeypatch.setattr("gcond.jobs.runner.train", None)
    assert told(gcond.tune(small, on=source, grid=NARROW, folder=tmp_path, **QUICK)) == told(found)


def test_a_longer_search_begins_with_the_shorter_one(
    source: SourceGraph, small: CondensedGraph, found: Tuning, tmp_path: Path
) -> None:
    gcond.tune(small, on=source, grid=NARROW, folder=tmp_path, **QUICK | {"trials": 8})
    longer = gcond.tune(small, on=source, grid=NARROW, folder=tmp_path, **QUICK)
    assert told(longer) == told(found)


def test_looking_does_no_work(source: SourceGraph, small: CondensedGraph, found: Tuning, tmp_path: Path) -> None:
    nothing = gcond.tune(small, on=source, grid=NARROW, folder=tmp_path, engine=IdleEngine(), **QUICK)
    assert (nothing.trials, nothing.finalists, nothing.recommendation) == ((), (), None)
    assert list(tmp_path.iterdir()) == []
    gcond.tune(small, on=source, grid=NARROW, folder=tmp_path, **QUICK | {"trials": 8})
    looked = gcond.tune(small, on=source, grid=NARROW, folder=tmp_path, engine=IdleEngine(), **QUICK)
    assert [trial.settings for trial in looked.trials] == [trial.settings for trial in found.trials[:8]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 5}, "holds a search with seed=0"),
        ({"runs": 2}, "holds a search with runs=1"),
        ({"batch": 5}, "holds a search with batch=4"),
        ({"prune": False}, "holds a search with configurations given up on the way"),
        ({"grid": {"hidden": [4]}}, "another space"),
        ({"model": "sgc"}, "another space"),
        ({"epochs": 8}, "other settings"),
    ],
)
def test_another_search_wants_another_folder(
    source: SourceGraph, small: CondensedGraph, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    begun = QUICK | {"trials": 1}
    gcond.tune(small, on=source, grid=NARROW, **begun).save(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(GcondError, match=message):
        gcond.tune(small, on=source, folder=tmp_path, **({"grid": NARROW} | begun | change))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_graph_wants_another_folder(source: SourceGraph, small: CondensedGraph, tmp_path: Path) -> None:
    begun = QUICK | {"trials": 1}
    gcond.tune(small, on=source, **begun).save(tmp_path)
    with pytest.raises(GcondError, match="on another condensed graph"):
        gcond.tune(gcond.condense(source, method="random", nodes=9), on=source, folder=tmp_path, **begun)
    with pytest.raises(GcondError, match="on another condensed graph"):
        gcond.tune(source, folder=tmp_path, **begun)
    other = dataclasses.replace(source, name="other", x=source.x * 2)
    with pytest.raises(GcondError, match="on another graph, 'synthetic:tiny'"):
        gcond.tune(other, folder=tmp_path, **begun)


def test_a_damaged_outcome_is_written_anew_and_a_foreign_log_refused(
    source: SourceGraph, small: CondensedGraph, tmp_path: Path
) -> None:
    begun = QUICK | {"trials": 2}
    (tmp_path / "tune.json").write_text('{"kind": "tu')
    gcond.tune(small, on=source, folder=tmp_path, **begun)
    assert len(Tuning.load(tmp_path).trials) == 2
    (tmp_path / "trials.jsonl").write_text("hello\n")
    with pytest.raises(GcondError, match="is not a file of trials"):
        gcond.tune(small, on=source, folder=tmp_path, **begun)


# --- what is told


def test_finalists_are_the_best_and_tested_as_evaluation_tests(
    source: SourceGraph, small: CondensedGraph, found: Tuning
) -> None:
    complete = sorted(
        (trial for trial in found.trials if trial.state == "complete"),
        key=lambda trial: (-(trial.val or 0), trial.number),
    )
    shapes: dict[tuple[object, ...], int] = {}
    for trial in complete:
        shapes.setdefault((trial.settings["layers"], trial.settings.get("hidden")), trial.number)
    assert len(shapes) >= 3
    expected = [*list(shapes.values())[:3]]
    expected += [0] if 0 not in expected else []
    assert {one.trial for one in found.finalists} == set(expected)
    order = [(-one.confirmed_mean, one.trial) for one in found.finalists]
    assert order == sorted(order)
    for one in found.finalists:
        model, recipe = trained(found, one.trial)
        (score,) = evaluate(source, models=[model], runs=2, recipe={**recipe, "epochs": 9})
        assert (one.test, one.mean, one.val_mean) == (score.runs, score.mean, score.val_mean)
        assert (one.settings, one.recipe) == (score.settings, score.recipe)
        assert one.searched == found.trials[one.trial].val == pytest.approx(one.confirmed[0], abs=0.02)
        (score,) = evaluate(small, on=source, models=[model], runs=2, recipe={**recipe, "epochs": 9})
        assert (one.confirmed_mean, one.confirmed_test) == (score.val_mean, score.runs)


def test_a_shortlist_has_different_architectures_and_then_whoever_is_next() -> None:
    @dataclass(eq=False)
    class One:
        training: Training

    def one(hidden: int, lr: float) -> Any:
        return One(Training(GCN(hidden=hidden), Recipe(lr=lr)))

    ranked = [one(8, 0.1), one(8, 0.1), one(8, 0.2), one(4, 0.1), one(8, 0.3), one(2, 0.1)]
    assert shortlist(ranked, 3) == [ranked[0], ranked[3], ranked[5]]
    assert shortlist(ranked, 2) == [ranked[0], ranked[3]]
    assert shortlist(ranked, 4) == [ranked[0], ranked[3], ranked[5], ranked[2]]
    assert shortlist(ranked, 9) == [ranked[0], ranked[3], ranked[5], ranked[2], ranked[4]], "each once"
    assert shortlist([], 3) == []


@pytest.mark.parametrize("check", [True, False])
def test_test_nodes_are_not_needed(source: SourceGraph, small: CondensedGraph, found: Tuning, check: bool) -> None:
    """Who has labels to train and to validate on, and no more, may search: what is found is the same."""
    untested = dataclasses.replace(source, test_mask=torch.zeros_like(source.test_mask))
    made = gcond.tune(small, on=untested, grid=NARROW, check=check, **QUICK)
    assert [trial.accuracies for trial in made.trials] == [trial.accuracies for trial in found.trials]
    assert all(one.confirmed_test == one.test == () and bool(one.val) == check for one in made.finalists)
    assert made.winner is not None
    assert (made.winner.mean, made.winner.confirmed_test_mean) == (None, None)
    assert (made.favourite is not None, made.compared > 0) == (check, check)
    assert "test %" not in tuning_tables(made)[0].markdown()
    assert json.loads(json.dumps(made.to_json()))["finalists"][0]["mean"] is None


def test_the_whole_graph_is_searched_alike(source: SourceGraph, found: Tuning) -> None:
    whole = gcond.tune(source, grid=NARROW, **QUICK)
    assert whole.on_whole
    assert whole.recommendation is None
    assert whole.whole_estimate_cpu_seconds is None
    assert (whole.spearman, whole.kendall, whole.confirm_cpu_seconds) == (None, None, 0), "there is one order only"
    assert all((one.confirmed, one.confirmed_test) == (one.val, one.test) for one in whole.finalists)
    assert [trial.settings for trial in whole.trials[:4]] == [trial.settings for trial in found.trials[:4]]
    assert whole.ranges == found.ranges
    (first,) = evaluate(source, models="gcn", runs=1, epochs=9)
    assert whole.trials[0].val == pytest.approx(first.val_mean, abs=0.02)


def test_the_winner_travels_in_the_file(
    source: SourceGraph, small: CondensedGraph, found: Tuning, tmp_path: Path
) -> None:
    winner, kept = found.winner, found.recommendation
    assert winner is not None
    assert kept is not None
    assert (kept.settings, kept.recipe, kept.val_mean) == (winner.settings, winner.recipe, winner.confirmed_mean)
    assert (kept.tried, kept.graphs, kept.held) == (14, (small.sha256,), {"epochs": 9})
    assert found.usual is not None
    assert kept.fixed_val_mean == found.usual.confirmed_mean <= kept.val_mean
    assert kept.runs == 2
    small.with_recommendation(kept).save(tmp_path / "s.safetensors")
    (score,) = evaluate(tmp_path / "s.safetensors", on=source, runs=1, recipe="recommended")
    assert (score.settings, score.recipe) == (winner.settings, winner.recipe)
    assert score.runs == winner.confirmed_test[:1]


def test_a_graph_without_provenance_can_be_searched(source: SourceGraph, small: CondensedGraph) -> None:
    result = gcond.tune(dataclasses.replace(small, provenance=None), on=source, **QUICK | {"trials": 2})
    assert result.recommendation is None
    assert result.condense_cpu_seconds is None


def test_the_study_is_optuna_s_own(found: Tuning) -> None:
    study = found.study()
    assert len(study.trials) == len(found.trials) - 1, "the usual width, 256, lies outside of this grid"
    states = [trial.state.name.lower() for trial in study.trials]
    assert states == [trial.state for trial in found.trials[1:]]
    best = max(trial.val or 0 for trial in found.trials[1:] if trial.state == "complete")
    assert study.best_value == best
    assert study.best_params == {
        f"gcn.{key}": value
        for key, value in next(t for t in found.trials[1:] if t.val == best and t.state == "complete").settings.items()
    }


def test_progress_counts_trials_and_then_trainings(source: SourceGraph, small: CondensedGraph) -> None:
    heard: list[tuple[str, float, float]] = []
    gcond.tune(
        small, on=source, on_progress=lambda what, done, total, detail="": heard.append((what, done, total)), **QUICK
    )
    searched = [done for what, done, _ in heard if what == "searching"]
    assert {total for what, _, total in heard if what == "searching"} == {14}
    assert searched == sorted(searched)
    assert searched[-1] == pytest.approx(14)
    assert heard[-1][0] == "on the whole graph"
    assert heard[-1][1] == heard[-1][2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials=0 is too small"),
        ({"trials": 2.5}, "trials=2.5 is not a whole number"),
        ({"runs": 0}, "runs=0 is too small"),
        ({"top": 0}, "top=0 is too small"),
        ({"final_runs": 0}, "final_runs=0"),
        ({"batch": 0}, "batch=0"),
        ({"seed": "x"}, "seed='x' is not a whole number"),
        ({"model": "gnc"}, "unknown model 'gnc'"),
        ({"model": []}, "names no model"),
        ({"model": ["gcn", "gcn"]}, "'gcn' is named twice"),
        ({"model": "all", "trials": 3}, "too small for 7 models"),
        ({"grid": {"hiden": [3]}}, "did you mean 'hidden'"),
        ({"grid": {"hidden": []}}, "no value for 'hidden'"),
        ({"grid": {"hidden": [0]}}, "hidden must be at least 1"),
        ({"grid": {"hidden": "8..4"}}, "no range of 'hidden'"),
        ({"grid": {"hidden": "1.5..4"}}, "hidden=1.5"),
        ({"grid": {"dropout": "0..1"}}, "dropout must be at least 0 and below 1"),
        ({"grid": {"activation": "1..2"}}, "activation"),
        ({"grid": {"lr": [0.1]}, "lr": 0.1}, "'lr' is held at 0.1"),
        ({"grid": {"hidden": [3]}, "layers": 1}, "one layer has none"),
        ({"grid": {"metric": ["accuracy", "macro-f1"]}}, "metrics cannot be compared"),
        ({"metric": "f1"}, "metric"),
        ({"width": 3}, "no setting 'width'"),
        ({"lr": math.nan}, "lr=nan"),
        ({"layers": 1, "lr": 0.1, "weight_decay": 0.0}, "nothing to search"),
        ({"device": "tpu"}, "tpu"),
        ({"engine": IdleEngine(), "threads": 2}, "the engine has its own threads"),
    ],
)
def test_refusals_come_before_any_training(
    source: SourceGraph, small: CondensedGraph, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(GcondError, match=message) as said:
        gcond.tune(small, on=source, folder=tmp_path / "run", **options)
    assert "\n" not in str(said.value)
    assert not (tmp_path / "run").exists()


def test_graphs_that_do_not_fit(source: SourceGraph, small: CondensedGraph, make_graph: Any) -> None:
    with pytest.raises(GcondError, match="features"):
        gcond.tune(small, on=make_graph())
    with pytest.raises(GcondError, match="give the source graph as on="):
        gcond.tune(small)
    with pytest.raises(GcondError, match="cannot be evaluated"):
        gcond.tune(3)  # type: ignore[arg-type]


def test_optuna_is_asked_for_in_one_sentence(
    source: SourceGraph, small: CondensedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(GcondError, match=r"tuning needs Optuna: pip install 'gcond\[tune\]'"):
        gcond.tune(small, on=source)


def test_optuna_stays_as_it_was(source: SourceGraph, small: CondensedGraph, capfd: pytest.CaptureFixture[str]) -> None:
    before = optuna.logging.get_verbosity()
    gcond.tune(small, on=source, **QUICK | {"trials": 3})
    assert optuna.logging.get_verbosity() == before
    assert capfd.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "ray"])
def test_on_either_engine(source: SourceGraph, small: CondensedGraph, found: Tuning, name: Any) -> None:
    if name == "ray":
        pytest.importorskip("ray")
    with open_engine(name, workers=2, threads=2) as engine:
        assert told(gcond.tune(small, on=source, grid=NARROW, engine=engine, **QUICK)) == told(found)
