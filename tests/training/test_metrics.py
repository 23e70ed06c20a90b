"""Metrics against scikit-learn's, and that a training chooses by the one that was asked for."""

from __future__ import annotations

import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from gcond.config import settings
from gcond.config.metric import METRICS
from gcond.models.gcn import GCN
from gcond.runtime.seeds import generator
from gcond.training import PAPER_PROTOCOL, Recipe, fit, predict
from gcond.training.metrics import (
    class_accuracy,
    confusion_matrix,
    measured,
    measured_once,
    over_runs,
    standard_error,
    value,
)
from reference.training import literal_fit

labels = st.integers(2, 6).flatmap(
    lambda classes: st.tuples(
        st.just(classes),
        st.lists(st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)), min_size=1, max_size=30),
    )
)


def theirs(metric, true, predicted):
    with warnings.catch_warnings():  # a class that is predicted and has no nodes, which they leave out too
        warnings.simplefilter("ignore")
        if metric == "accuracy":
            return sklearn_metrics.accuracy_score(true, predicted)
        if metric == "macro-f1":
            return sklearn_metrics.f1_score(true, predicted, average="macro")
        return sklearn_metrics.balanced_accuracy_score(true, predicted)


@given(labels)
def test_they_are_scikit_learn_s_whatever_classes_are_absent(drawn):
    classes, pairs = drawn
    true, predicted = zip(*pairs, strict=True)
    y, found = torch.tensor(true), torch.tensor(predicted)
    (confusion,) = confusion_matrix(found[None], y, classes).tolist()
    assert confusion == sklearn_metrics.confusion_matrix(true, predicted, labels=range(classes)).tolist()
    for metric in METRICS:
        expected = theirs(metric, true, predicted)
        assert value(confusion, metric) == pytest.approx(expected, abs=1e-12)
        assert measured_once(found, y, classes, metric) == pytest.approx(expected, abs=1e-12)
    recalls = sklearn_metrics.recall_score(true, predicted, labels=range(classes), average=None, zero_division=0)
    for label, share in enumerate(class_accuracy(confusion)):
        if label in true:
            assert share == pytest.approx(recalls[label])
        else:
            assert share is None


def test_several_predictions_are_measured_at_once():
    y = torch.tensor([0, 0, 0, 1])
    predicted = torch.tensor([[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]])
    assert measured(predicted, y, 2).tolist() == [0.75, 0.25, 1.0]
    assert measured(predicted, y, 2, "balanced-accuracy").tolist() == [0.5, 0.5, 1.0]
    assert confusion_matrix(predicted, y, 2).sum((1, 2)).tolist() == [4, 4, 4]


def test_over_runs_means_and_deviations():
    first, second = ((8, 2, 0), (1, 1, 0), (0, 0, 0)), ((6, 4, 0), (0, 2, 0), (0, 0, 0))
    found = over_runs([first, second])
    assert found.balanced_accuracy == pytest.approx(((0.8 + 0.5) / 2 + (0.6 + 1) / 2) / 2)
    balanced = torch.tensor([0.65, 0.8], dtype=torch.float64)
    assert found.balanced_accuracy_std == pytest.approx(float(balanced.std()))
    assert found.class_accuracy == (pytest.approx(0.7), 0.75, None)
    assert (found.worst_class, found.worst_class_accuracy) == (0, pytest.approx(0.7))
    assert over_runs([first]).macro_f1_std == 0
    assert over_runs([first, None]) is None
    assert over_runs([]) is None


def test_standard_errors_are_those_of_shares():
    y = torch.tensor([0] * 90 + [1] * 10)
    assert standard_error(0.5, y, 3) == pytest.approx(0.05)
    assert standard_error(0.5, y, 3, "balanced-accuracy") == pytest.approx((0.25 / 90 + 0.25 / 10) ** 0.5 / 2)
    even = torch.arange(100) % 2
    assert standard_error(0.5, even, 2, "macro-f1") == pytest.approx(standard_error(0.5, even, 2))


@pytest.mark.parametrize("metric", METRICS)
def test_the_epoch_is_the_first_that_is_best_by_the_metric(make_graph, metric):
    graph, model = make_graph(), GCN(hidden=8)
    train, val = graph.view("train"), graph.view("val")
    recipe = Recipe(epochs=30, lr=0.05, weight_decay=5e-3, metric=metric, **PAPER_PROTOCOL)
    fitted = fit(model, train, val, classes=graph.num_classes, seeds=[7, 3], recipe=recipe)
    for place, seed in enumerate([7, 3]):
        initial = model.init(graph.num_features, graph.num_classes, generator(seed, "weights"))
        course = literal_fit(initial, train, val, epochs=30, lr=0.05, weight_decay=5e-3)
        reached = [theirs(metric, val.y, each) for each in predict(model, course.parameters, val)]
        best = max(range(30), key=lambda epoch: reached[epoch])
        assert int(fitted.epoch[place]) == best + 1
        assert float(fitted.val_accuracy[place]) == pytest.approx(reached[best], abs=1e-12)


def test_of_the_last_epoch_the_metric_is_reported(make_graph):
    graph, model = make_graph(), GCN(hidden=8)
    val, recipe = graph.view("val"), Recipe(epochs=5, select="last", metric="macro-f1")
    fitted = fit(model, graph.view("train"), val, classes=graph.num_classes, seeds=[1], recipe=recipe)
    (predicted,) = predict(model, fitted.parameters, val)
    assert float(fitted.val_accuracy) == pytest.approx(theirs("macro-f1", val.y, predicted))


def test_metrics_choose_differently_where_classes_are_uneven():
    """A look at which a rare class is found is worse by accuracy and better by balance."""
    y = torch.tensor([0] * 9 + [1])
    all_common, rare_found = torch.zeros(10, dtype=torch.long), torch.tensor([1, 1] + [0] * 7 + [1])
    accuracy = [measured_once(each, y, 2) for each in (all_common, rare_found)]
    balanced = [measured_once(each, y, 2, "balanced-accuracy") for each in (all_common, rare_found)]
    assert accuracy[0] > accuracy[1]
    assert balanced[0] < balanced[1]


def test_the_usual_metric_leaves_fingerprints_as_they_were():
    usual, other = Recipe(), Recipe(metric="macro-f1")
    assert settings.identity(usual) == {key: each for key, each in settings.as_dict(usual).items() if key != "metric"}
    assert settings.identity(other) == settings.as_dict(other)
    assert settings.as_dict(usual)["metric"] == "accuracy"  # recorded all the same


@pytest.mark.parametrize("metric", METRICS)
def test_importance_counts_a_node_as_so_many(metric):
    y = torch.tensor([0, 0, 0, 1, 1, 2])
    predicted = torch.tensor([0, 1, 0, 1, 0, 2])
    importance = torch.tensor([1.0, 3.0, 2.0])
    copies = importance.long()[y]
    expected = measured_once(predicted.repeat_interleave(copies), y.repeat_interleave(copies), 3, metric)
    assert measured_once(predicted, y, 3, metric, importance) == pytest.approx(expected)
    alike = measured_once(predicted, y, 3, metric, torch.full((3,), 0.5))
    assert alike == pytest.approx(measured_once(predicted, y, 3, metric))


def test_nodes_that_count_unequally_are_worth_fewer():
    y = torch.arange(2).repeat(50)
    assert standard_error(0.5, y, 2) == pytest.approx(0.05)
    assert standard_error(0.5, y, 2, importance=torch.tensor([2.0, 2.0])) == pytest.approx(0.05)
    assert standard_error(0.5, y, 2, importance=torch.tensor([1.0, 0.0])) == pytest.approx((0.25 / 50) ** 0.5)
