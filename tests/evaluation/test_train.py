"""``gcond.train``: the very weights that ``evaluate`` tests, chosen by validation alone."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import gcond
from gcond import models
from gcond.errors import GcondError
from gcond.models import GCN, SGC

QUICK = {"epochs": 15}


@pytest.fixture(scope="module")
def source():
    return gcond.load("synthetic:tiny")


@pytest.fixture(scope="module")
def small(source):
    return gcond.condense(source, method="random", nodes=24)


@pytest.mark.parametrize("name", models.available())
def test_seed_s_is_run_s_of_evaluate(name, source, small):
    (score,) = gcond.evaluate(small, on=source, models=name, runs=3, **QUICK)
    for seed in range(3):
        model = gcond.train(small, on=source, model=name, seed=seed, **QUICK)
        assert model.record.test_accuracy == score.runs[seed]
        assert model.predict(source, "test").accuracy() == pytest.approx(score.runs[seed])


def test_the_whole_graph_in_both_settings(graph):
    (score,) = gcond.evaluate(graph, runs=1, **QUICK)
    model = gcond.train(graph, **QUICK)
    assert model.record.test_accuracy == score.runs[0]
    assert model.record.val_accuracy == pytest.approx(score.val_mean)
    assert model.record.trained_on["method"] == "whole"
    assert model.predict(graph, "test").accuracy() == pytest.approx(score.runs[0])


def test_of_several_runs_the_best_on_validation_nodes_is_kept(source, small):
    several = [gcond.train(small, on=source, seed=seed, **QUICK) for seed in range(2, 6)]
    best = max(several, key=lambda model: model.record.val_accuracy)  # the first of equal ones
    kept = gcond.train(small, on=source, seed=2, runs=4, **QUICK)
    assert (kept.record.seed, kept.sha256) == (best.record.seed, best.sha256)
    assert kept.record.runs == 4


def test_test_labels_are_not_looked_at_to_choose(make_graph):
    graph = make_graph()
    poisoned = dataclasses.replace(graph, y=torch.where(graph.test_mask, (graph.y + 1) % 3, graph.y))
    small = gcond.condense(graph, method="random", nodes=9)
    one, other = (gcond.train(small, on=on, runs=3, **QUICK) for on in (graph, poisoned))
    assert one.sha256 == other.sha256
    assert one.record.test_accuracy != other.record.test_accuracy


def test_test_nodes_are_not_needed(make_graph):
    graph = make_graph()
    bare = dataclasses.replace(graph, test_mask=torch.zeros_like(graph.test_mask))
    model = gcond.train(bare, **QUICK)
    assert model.record.test_accuracy is None
    assert model.sha256 == gcond.train(graph, **QUICK).sha256


def test_validation_nodes_are_needed_where_they_choose(make_graph):
    graph = make_graph()
    bare = dataclasses.replace(graph, val_mask=torch.zeros_like(graph.val_mask))
    with pytest.raises(GcondError, match="no val nodes to choose the best epoch by"):
        gcond.train(bare, **QUICK)
    model = gcond.train(bare, select="last", **QUICK)
    assert model.record.val_accuracy is None
    assert model.record.epoch == 15


def test_recipes_by_every_way(source, small):
    expected = gcond.train(small, on=source, recipe=gcond.Recipe(epochs=15, dropout=0.3))
    assert gcond.train(small, on=source, recipe={"epochs": 15, "dropout": 0.3}).sha256 == expected.sha256
    assert gcond.train(small, on=source, dropout=0.3, **QUICK).sha256 == expected.sha256
    assert gcond.train(small, on=source, model=GCN(), dropout=0.3, **QUICK).sha256 == expected.sha256


def test_the_recommended_recipe(source, small, tmp_path):
    found = gcond.recommend(small, on=source, runs=2, grid={"dropout": [0, 0.5]}, epochs=15)
    advised = found.graphs[0]
    model = gcond.train(advised, on=source, recipe="recommended")
    (said,) = advised.provenance.recommendations
    assert model.record.recipe == said.recipe
    with pytest.raises(GcondError, match="no recommended recipe for sgc"):
        gcond.train(advised, on=source, model="sgc", recipe="recommended")


def test_files_and_names(source, small, tmp_path):
    small.save(tmp_path / "small.safetensors")
    source.save(tmp_path / "source.safetensors")
    expected = gcond.train(small, on=source, **QUICK).sha256
    assert gcond.train(tmp_path / "small.safetensors", on=tmp_path / "source.safetensors", **QUICK).sha256 == expected
    whole = gcond.train(source, **QUICK).sha256
    assert gcond.train(tmp_path / "source.safetensors", **QUICK).sha256 == whole
    assert gcond.train("synthetic:tiny", on="synthetic:tiny", **QUICK).sha256 == whole
    assert gcond.train(source, on=gcond.load("synthetic:tiny"), **QUICK).sha256 == whole


def test_progress_reaches_its_end(source, small):
    told = []
    gcond.train(small, on=source, runs=2, on_progress=lambda *tick: told.append(tick), **QUICK)
    assert told[-1] == ("training", 30, 30)
    assert [done for _, done, _ in told] == list(range(1, 31))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "gnc"}, "unknown model 'gnc'"),
        ({"model": "all"}, "not one model"),
        ({"model": ["gcn"]}, "not one model"),
        ({"model": GCN}, "not one model"),
        ({"runs": 0}, "runs=0 is too small"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"depth": 3}, "no setting 'depth'"),
        ({"recipe": "nowhere"}, "no way to train"),
        ({"device": "tpu"}, "tpu"),
        ({"threads": 0}, "threads=0"),
        ({"on": None}, "tested on its source"),
        ({"on": "synthetic:tinny"}, "synthetic graph 'tinny'"),
    ],
)
def test_refused(source, small, options, words):
    with pytest.raises(GcondError, match=words):
        gcond.train(small, **({"on": source} | options))


def test_a_whole_graph_is_trained_on_itself(source, make_graph):
    with pytest.raises(GcondError, match="validated and tested on itself"):
        gcond.train(source, on=make_graph())


def test_other_features_and_classes(small, make_graph):
    with pytest.raises(GcondError, match="features"):
        gcond.train(small, on=make_graph())


def test_a_linear_model_and_its_file(source, tmp_path):
    model = gcond.train(source, model=SGC(), **QUICK)
    assert set(model.parameters) == {"weight0", "bias0"}
