"""Architecture search: what is trained, what is compared, what survives a kill."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gcond
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.errors import DivergedError, GcondError
from gcond.evaluation.evaluate import evaluate
from gcond.evaluation.nas import architecture_search as nas
from gcond.evaluation.nas.search_space import PAPER, space
from gcond.graph.source_graph import SourceGraph
from gcond.jobs import TrainingJob, training_job
from gcond.jobs.training_job import Batch, Run, TrainingGround, batches
from gcond.models.appnp import APPNP
from gcond.models.gcn import GCN
from gcond.results.search import SIDES, Search
from gcond.runtime.engines import Engine, Outcome, open_engine
from gcond.training.recipe import Recipe

GRID = {"hops": [1, 2], "hidden": [3, 8], "activation": ["relu", "sigmoid"]}
QUICK = {"epochs": 8, "validate_every": 3}


class Elsewhere(Engine):
    """Jobs in reverse, as a cluster may finish them."""

    name = "elsewhere"

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
def found(source: SourceGraph, small: CondensedGraph) -> Search:
    return nas.search(small, on=source, grid=GRID, recipe=QUICK, runs=3)


def without_times(result: Search) -> dict[str, Any]:
    made = result.to_json() | {"cpu_seconds": None}
    rows = [{key: value for key, value in row.items() if "seconds" not in key} for row in made["architectures"]]
    return made | {"architectures": rows}


def test_the_paper_s_space_has_480_architectures() -> None:
    spanned = space("appnp")
    assert len(spanned.models) == len(set(spanned.models)) == 480
    assert spanned.grid["hidden"] == [16, 32, 64, 128, 256, 512]
    assert spanned.grid["hops"] == [2, 4, 6, 8, 10]
    assert len(PAPER["appnp"]["activation"]) == 8
    assert all(model.layers == 2 for model in spanned.models)
    # Stacks share width and reach: 30 of 16 architectures, that is two alphas and eight activations.
    source = gcond.load("synthetic:tiny")
    runs = [Run(TrainingJob(None, model, Recipe(), (0,), tested=False), "", 0) for model in spanned.models]
    stacks = [batch.runs[0].job.model for batch in batches(runs, source)]
    assert len({(model.hidden, model.reach) for model in stacks}) == 30


def test_every_architecture_is_judged_by_validation_as_evaluation_judges_it(
    source: SourceGraph, small: CondensedGraph, found: Search
) -> None:
    assert [one.settings for one in found.architectures] == [
        {"hops": hops, "hidden": hidden, "activation": activation}
        for hops in GRID["hops"]
        for hidden in GRID["hidden"]
        for activation in GRID["activation"]
    ]
    models = [APPNP(**one.settings) for one in found.architectures]
    for side, graph in (("condensed", small), ("whole", source)):
        recipe = QUICK | ({"epochs": 4} if side == "condensed" else {})
        scores = evaluate(graph, on=source, models=models, runs=1, recipe=recipe)
        expected = [score.val_mean for score in scores]
        assert [getattr(one, side) for one in found.architectures] == pytest.approx(expected, abs=0.011)


def test_correlations_are_those_of_the_definition(found: Search) -> None:
    x, y = (np.array([getattr(one, side) for one in found.architectures]) for side in SIDES)
    assert found.pearson == pytest.approx(np.corrcoef(x, y)[0, 1])
    ranks = [np.array([((v < a).sum() + (v <= a).sum() + 1) / 2 for a in v]) for v in (x, y)]
    assert found.spearman == pytest.approx(np.corrcoef(*ranks)[0, 1])


def test_a_side_that_does_not_vary_has_no_correlation(found: Search) -> None:
    flat = tuple(dataclasses.replace(one, whole=0.5) for one in found.architectures)
    for some in (flat, found.architectures[:1], ()):
        same = dataclasses.replace(found, architectures=some)
        assert same.pearson is None
        assert same.spearman is None
        json.dumps(same.to_json(), allow_nan=False)


def test_winners_are_tested_on_the_whole_graph_as_evaluation_tests(source: SourceGraph, found: Search) -> None:
    for side in SIDES:
        best = max(getattr(one, side) for one in found.architectures)
        first = next(one for one in found.architectures if getattr(one, side) == best)
        winner = found.winners[side]
        assert winner.settings == first.settings
        (score,) = evaluate(source, models=[APPNP(**winner.settings)], runs=3, recipe=QUICK)
        assert winner.runs == score.runs
        assert (winner.mean, winner.std) == (score.mean, score.std)


def test_test_labels_decide_nothing(source: SourceGraph, small: CondensedGraph, found: Search) -> None:
    y = source.y.clone()
    index = source.test_mask.nonzero().squeeze(1)
    y[index] = y[index].roll(7)
    poisoned = nas.search(small, on=dataclasses.replace(source, y=y), grid=GRID, recipe=QUICK, runs=3)
    honest, other = without_times(found), without_times(poisoned)
    assert honest["architectures"] == other["architectures"]
    for side in SIDES:
        assert found.winners[side].settings == poisoned.winners[side].settings
        assert found.winners[side].runs != poisoned.winners[side].runs


def test_another_engine_and_another_grid_give_the_same_numbers(
    source: SourceGraph, small: CondensedGraph, found: Search
) -> None:
    elsewhere = nas.search(small, on=source, grid=GRID, recipe=QUICK, runs=3, engine=Elsewhere())
    assert without_times(elsewhere) == without_times(found)
    part = nas.search(small, on=source, grid={key: values[-1:] for key, values in GRID.items()}, recipe=QUICK, runs=1)
    alone, among = without_times(part)["architectures"], without_times(found)["architectures"]
    assert alone == among[-1:]


def test_a_search_that_was_killed_goes_on(
    source: SourceGraph,
    small: CondensedGraph,
    found: Search,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained: list[str] = []
    original = training_job.train

    def counting(shared: TrainingGround, batch: Batch, tell: Any) -> Any:
        if len(trained) == 6:
            raise KeyboardInterrupt
        trained.extend(batch.names)
        return original(shared, batch, tell)

    monkeypatch.setattr("gcond.jobs.runner.train", counting)
    options: dict[str, Any] = {"on": source, "grid": GRID, "recipe": QUICK, "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        nas.search(small, runs=3, **options)
    assert len((tmp_path / "trials.jsonl").read_text().splitlines()) == 6
    with (tmp_path / "trials.jsonl").open("rb+") as file:
        file.truncate(file.seek(0, 2) - 40)  # as a kill may leave the last row
    trained.append("")
    resumed = nas.search(small, runs=3, **options)
    assert without_times(resumed) == without_times(found)
    assert len(trained) - 1 == len(set(trained) - {""}) + 1  # the row that was cut off, once more
    before = len(trained)
    assert nas.search(small, runs=3, **options).to_json() == resumed.to_json()
    assert len(trained) == before
    nas.search(small, runs=3, **(options | {"recipe": QUICK | {"epochs": 12}}))
    assert len(trained) > before + 16


def test_what_fails_is_said_and_does_not_sink_the_rest(
    source: SourceGraph, small: CondensedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = training_job.fit

    def failing(stack: Any, *views: Any, **options: Any) -> Any:
        models = stack if isinstance(stack, list) else [stack]
        if any(model.activation == "sigmoid" and model.hops == 1 for model in models):
            raise DivergedError("training appnp diverged")
        if any(model.hidden == 8 and model.hops == 2 for model in models):
            raise RuntimeError("out of luck")
        return original(stack, *views, **options)

    monkeypatch.setattr(training_job, "fit", failing)
    with open_engine("local", workers=1) as engine:
        result = nas.search(small, on=source, grid=GRID, recipe=QUICK, runs=1, engine=engine)
    # Who diverges falls out alone; any other error takes its stack along.
    assert [one.settings for one in result.architectures] == [
        {"hops": 1, "hidden": 3, "activation": "relu"},
        {"hops": 1, "hidden": 8, "activation": "relu"},
        {"hops": 2, "hidden": 3, "activation": "relu"},
        {"hops": 2, "hidden": 3, "activation": "sigmoid"},
    ]
    assert len(result.failures) == 2 * 3  # two that diverged, and a stack of two
    assert {failure.error for failure in result.failures} == {"training appnp diverged", "RuntimeError: out of luck"}
    assert min(failure.what for failure in result.failures) == (
        "appnp (hidden=3, activation=sigmoid, hops=1) on the condensed graph, seed 0"
    )


def test_when_everything_fails(source: SourceGraph, small: CondensedGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr(training_job, "fit", failing)
    with open_engine("local", workers=1) as engine:
        result = nas.search(small, on=source, grid=GRID, recipe=QUICK, engine=engine)
    assert (result.architectures, result.winners, result.pearson) == ((), {}, None)
    assert len(result.failures) == 8  # stacks of two


def test_any_model_and_a_whole_recipe(source: SourceGraph, small: CondensedGraph) -> None:
    result = nas.search(
        small,
        on=source,
        model="gcn",
        grid={"layers": ["1", "2"], "hidden": (4, 4)},
        recipe=Recipe(epochs=5),
        condensed_epochs=3,
        runs=1,
    )
    assert result.grid == {"layers": [1, 2], "hidden": [4]}
    assert [one.settings for one in result.architectures] == [{"layers": 1, "hidden": 4}, {"layers": 2, "hidden": 4}]
    assert (result.recipe["validate_every"], result.recipe["patience"]) == ("auto", "auto")  # as given
    (score,) = evaluate(small, on=source, models=[GCN(layers=2, hidden=4)], runs=1, recipe={"epochs": 3})
    assert result.architectures[1].condensed == score.val_mean


def test_progress_counts_trainings(source: SourceGraph, small: CondensedGraph) -> None:
    seen: list[tuple[str, float, float]] = []
    nas.search(small, on=source, grid=GRID, recipe=QUICK, runs=7, on_progress=lambda *state: seen.append(state))
    assert ("training", 8, 8) in seen  # one side
    assert seen[-1] == ("training", 7, 7)  # a winner


def test_the_result_as_json(source: SourceGraph, small: CondensedGraph, found: Search) -> None:
    made = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert made["source"]["sha256"] == source.sha256
    assert made["source"]["class_nodes"] == source.class_counts().tolist()
    assert (made["condensed"]["method"], made["condensed"]["nodes"]) == ("random", 24)
    assert made["grid"] == GRID
    assert made["recipe"] == dataclasses.asdict(Recipe(**QUICK, patience=0))
    assert made["condensed_epochs"] == 4
    assert set(made["winners"]) == {"condensed", "whole"}
    assert made["winners"]["whole"]["n"] == 3
    assert made["cpu_seconds"]["whole"] == pytest.approx(sum(one["whole_cpu_seconds"] for one in made["architectures"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "gcn"}, "search space for 'gcn'"),
        ({"model": "appn"}, "did you mean 'appnp'"),
        ({"grid": {}}, "the grid is empty"),
        ({"grid": {"hidden": []}}, "no value for 'hidden'"),
        ({"grid": {"hiden": [3]}}, "did you mean 'hidden'"),
        ({"grid": {"hops": [0]}}, "hops must be at least 1"),
        ({"grid": {"hidden": ["x"]}}, "hidden='x' is not usable"),
        ({"runs": 0}, "use 1 or more"),
        ({"condensed_epochs": 0}, "condensed_epochs=0 is too small"),
        ({"recipe": {"epoch": 3}}, "no setting 'epoch'"),
    ],
)
def test_what_cannot_be_searched(
    source: SourceGraph, small: CondensedGraph, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(GcondError, match=message):
        nas.search(small, **({"on": source, "recipe": QUICK} | changes))


def test_a_result_is_read_back_as_it_was_saved(found: Search, tmp_path: Path) -> None:
    found.save(tmp_path)
    assert Search.load(tmp_path) == found


def test_files_and_models_stand_for_themselves(
    source: SourceGraph, small: CondensedGraph, found: Search, tmp_path: Path
) -> None:
    small.save(tmp_path / "small.safetensors")
    by_path = nas.search(tmp_path / "small.safetensors", on=source, model=APPNP(), grid=GRID, runs=3, **QUICK)
    assert without_times(by_path) == without_times(found)
    other = nas.search(small, on=source, model=APPNP(alpha=0.9), grid={"hidden": [3]}, runs=1, **QUICK)
    same = nas.search(small, on=source, grid={"hidden": [3], "alpha": [0.9]}, runs=1, **QUICK)
    assert other.architectures[0].whole == same.architectures[0].whole


def test_graphs_that_do_not_fit(source: SourceGraph, small: CondensedGraph) -> None:
    narrow = dataclasses.replace(small, x=small.x[:, :-1].clone())
    with pytest.raises(GcondError, match="features"):
        nas.search(narrow, on=source, grid=GRID)
    with pytest.raises(GcondError, match="cannot be searched on"):
        nas.search(source, on=source, grid=GRID)  # type: ignore[arg-type]
    blind = dataclasses.replace(source, val_mask=torch.zeros_like(source.val_mask))
    with pytest.raises(GcondError, match="no val nodes"):
        nas.search(small, on=blind, grid=GRID)


@pytest.mark.slow
def test_processes_give_the_same_numbers(source: SourceGraph, small: CondensedGraph) -> None:
    """Everything that a job is made of goes through a pipe."""
    options: dict[str, Any] = {"on": source, "grid": {"hidden": [3, 8]}, "recipe": {"epochs": 2}, "runs": 1}
    with open_engine("local", workers=2, threads=2) as engine:
        apart = nas.search(small, engine=engine, **options)
    assert not apart.failures
    assert without_times(apart) == without_times(nas.search(small, **options))
