"""Class gradients, one class at a time as the yardstick."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from gcond.graph.inputs import Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.linalg.sparse import gcn_normalise
from gcond.matching.gradients import class_gradients, linear_class_gradients
from gcond.models.gcn import GCN
from gcond.models.sgc import SGC

CLASSES, FEATURES = 3, 5


def labelled(y: list[int], *, learned: bool = False) -> LabelledView:
    """A full graph of len(y) nodes whose rows are not in order of class, with the labelled ones in order."""
    stream = torch.Generator().manual_seed(0)
    n = len(y)
    x = torch.randn(n, FEATURES, generator=stream, dtype=torch.float64).requires_grad_(learned)
    weight = torch.rand(n, n, generator=stream, dtype=torch.float64)
    adjacency = ((weight + weight.T) / 2).fill_diagonal_(0).requires_grad_(learned)
    classes = torch.tensor(y)
    order = classes.argsort(stable=True)
    return LabelledView(Inputs(x, adjacency), order, classes[order], torch.arange(n))


def weights_of(model) -> dict[str, torch.Tensor]:
    stream = torch.Generator().manual_seed(1)
    fresh = model.init(FEATURES, CLASSES, stream)
    return {key: torch.randn(tensor.shape, generator=stream, dtype=torch.float64) for key, tensor in fresh.items()}


def one_by_one(model, theta, view: LabelledView) -> dict[str, torch.Tensor]:
    """Plain autograd, a class after the other; a class without nodes has no gradient."""
    weights = {key: tensor.clone().requires_grad_() for key, tensor in theta.items()}
    scores = model.logits(weights, view.inputs)[view.nodes]
    found = []
    for label in range(CLASSES):
        own = view.y == label
        loss = F.cross_entropy(scores[own], view.y[own]) if own.any() else 0 * scores.sum()
        found.append(torch.autograd.grad(loss, list(weights.values()), create_graph=True))
    return {key: torch.stack([gradients[i] for gradients in found]) for i, key in enumerate(weights)}


MODELS = [SGC(), SGC(layers=2, hidden=4), GCN(hidden=4), GCN(layers=1)]


@pytest.mark.parametrize("y", [[2, 0, 1, 0, 1, 0], [1, 0, 2], [2, 2, 0, 2]], ids=["mixed", "one each", "without 1"])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_equal_to_one_class_at_a_time(model, y):
    view, theta = labelled(y), weights_of(model)
    found, expected = class_gradients(model, theta, view, CLASSES), one_by_one(model, theta, view)
    assert found.keys() == theta.keys()
    for key, tensor in found.items():
        assert tensor.shape == (CLASSES, *theta[key].shape)
        torch.testing.assert_close(tensor, expected[key], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("together", [1, 2, 3, None])
def test_how_many_classes_are_done_together_does_not_matter(together):
    model, view = GCN(hidden=4), labelled([0, 1, 2, 0, 1])
    theta = weights_of(model)
    found, expected = class_gradients(model, theta, view, CLASSES, together), one_by_one(model, theta, view)
    for key, tensor in found.items():
        torch.testing.assert_close(tensor, expected[key], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_derivatives_for_features_and_adjacency(model):
    theta = weights_of(model)
    found = []
    for gradients in (class_gradients, one_by_one):
        view = labelled([2, 0, 1, 0, 1, 0], learned=True)
        arguments = (view, CLASSES) if gradients is class_gradients else (view,)
        loss = sum(tensor.sin().sum() for tensor in gradients(model, theta, *arguments).values())
        found.append(torch.autograd.grad(loss, [view.inputs.x, view.inputs.adjacency]))
    for own, expected in zip(*found, strict=True):
        assert expected.abs().max() > 1e-3
        torch.testing.assert_close(own, expected, rtol=1e-9, atol=1e-11)


def test_the_weights_are_left_alone():
    model, view = GCN(hidden=4), labelled([0, 1, 2])
    theta = weights_of(model)
    before = {key: tensor.clone() for key, tensor in theta.items()}
    class_gradients(model, theta, view, CLASSES)
    for key, tensor in theta.items():
        assert torch.equal(tensor, before[key])
        assert not tensor.requires_grad


def test_the_closed_form_by_hand():
    """Two nodes, two classes, one feature: G_c = h (p - y)."""
    theta = {"weight0": torch.tensor([[1.0, -1.0]]), "bias0": torch.tensor([0.5, 0.0])}
    design, y = torch.tensor([[2.0], [-1.0]]), torch.tensor([0, 1])
    first, second = torch.sigmoid(torch.tensor([4.5, -1.5]))  # p of class 0: the scores' difference is 2 h + 0.5
    found = linear_class_gradients(theta, design, y, 2)
    torch.testing.assert_close(found["bias0"], torch.stack([first - 1, 1 - first, second, -second]).view(2, 2))
    weight = torch.stack([2 * (first - 1), 2 * (1 - first), -second, second])
    torch.testing.assert_close(found["weight0"], weight.view(2, 1, 2))


def test_the_closed_form_is_differentiable():
    theta = weights_of(SGC())
    y = torch.tensor([0, 0, 1, 2, 2])
    design = torch.randn(5, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda h: tuple(linear_class_gradients(theta, h, y, CLASSES).values()), design)


def test_features_count_through_both_hops():
    """SGC looks at Â²X: the gradient of a class with one node sees every other node's features."""
    view, theta = labelled([0, 1, 2, 1, 1]), weights_of(SGC())
    operator = gcn_normalise(view.inputs.adjacency)
    design = (operator @ operator @ view.inputs.x)[view.nodes]
    expected = linear_class_gradients(theta, design, view.y, CLASSES)
    for key, tensor in class_gradients(SGC(), theta, view, CLASSES).items():
        torch.testing.assert_close(tensor, expected[key])
