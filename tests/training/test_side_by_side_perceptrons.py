"""Perceptrons side by side against the same trainings one by one."""

from __future__ import annotations

import pytest
import torch

from gcond.errors import DivergedError
from gcond.graph import Inputs, LabelledView
from gcond.linalg.sparse import Identity
from gcond.models import MLP
from gcond.training import Recipe, fit
from gcond.training.side_by_side_perceptrons import best_validation

FEATURES, CLASSES = 6, 4
MODEL = MLP(layers=2, hidden=16)


def rows(count: int, seed: int, *, soft: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows whose class can be learned, but not all of it."""
    stream = torch.Generator().manual_seed(seed)
    x = torch.randn(count, FEATURES, generator=stream)
    score = 3 * x @ torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(9))
    score = score + torch.randn(score.shape, generator=stream)
    return x, score.softmax(1) if soft else score.argmax(1)


def view(x: torch.Tensor, y: torch.Tensor) -> LabelledView:
    everyone = torch.arange(len(x))
    return LabelledView(Inputs(x, Identity()), everyone, y, everyone)


@pytest.mark.parametrize("metric", ["accuracy", "macro-f1"])
@pytest.mark.parametrize("soft", [True, False])
def test_equal_to_training_one_by_one(soft, metric):
    train, val = rows(40, 0, soft=soft), rows(200, 1)
    recipe = Recipe(epochs=40, lr=0.03, patience=0, validate_every=6, metric=metric)
    expected = fit(MODEL, view(*train), view(*val), classes=CLASSES, seeds=[0, 3, 4], recipe=recipe).val_accuracy
    found = best_validation(MODEL, train, val, classes=CLASSES, seeds=[0, 3, 4], recipe=recipe)
    torch.testing.assert_close(found, expected, rtol=0, atol=0.011)  # two rows of 200, by rounding
    assert 0.5 < float(found.mean()) < 1
    assert len(set(expected.tolist())) > 1


def test_runs_do_not_depend_on_those_beside_them():
    train, val = rows(40, 0), rows(200, 1)
    recipe = Recipe(epochs=20, lr=0.03, patience=0, validate_every=6)
    both = best_validation(MODEL, train, val, classes=CLASSES, seeds=[0, 3], recipe=recipe)
    for place, seed in enumerate((0, 3)):
        alone = best_validation(MODEL, train, val, classes=CLASSES, seeds=[seed], recipe=recipe)
        torch.testing.assert_close(alone[0], both[place], rtol=0, atol=0.006)


def test_what_it_is_given_stays_as_it_is():
    train, val = rows(40, 0, soft=True), rows(50, 1)
    before = [tensor.clone() for tensor in (*train, *val)]
    best_validation(MODEL, train, val, classes=CLASSES, seeds=[0], recipe=Recipe(epochs=4, patience=0))
    for tensor, then in zip((*train, *val), before, strict=True):
        assert torch.equal(tensor, then)


def test_numbers_that_are_not_finite_are_said():
    x, y = rows(20, 0)
    x[0, 0] = torch.inf
    with pytest.raises(DivergedError):
        best_validation(MODEL, (x, y), rows(20, 1), classes=CLASSES, seeds=[0], recipe=Recipe(epochs=4, patience=0))
