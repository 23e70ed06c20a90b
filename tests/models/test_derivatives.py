"""Condensation differentiates a gradient: through the weights, the features and a dense adjacency, twice."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from gcond import models
from gcond.graph.inputs import Inputs
from gcond.models.model import Model

SMOOTH = [
    cls(**({"hidden": 3, "activation": "tanh"} | ({"heads": 2} if name == "gat" else {})))
    for name, cls in models.available().items()
] + [models.find("cheby")(hidden=2, activation="softplus", order=3), models.find("sgc")()]


@pytest.fixture
def tiny(make_small):
    graph = make_small(6, 3, density=0.7)  # three of its nodes are isolated
    graph.x.add_(0.3)  # no row of zeros: GAT's LeakyReLU has its kink there
    return graph


def check(function, tensors):
    leaves = tuple(tensor.clone().requires_grad_() for tensor in tensors)
    assert gradcheck(function, leaves, fast_mode=True)
    assert gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("model", SMOOTH, ids=repr)
@pytest.mark.parametrize("adjacency", ["sparse", "dense"])
def test_features_and_weights(model, adjacency, tiny, make_parameters):
    p = make_parameters(model, 3, 2, 0, torch.float64)
    graph = tiny.inputs(adjacency).adjacency

    def logits(x, *weights):
        return model.logits(dict(zip(p, weights, strict=True)), Inputs(x, graph))

    check(logits, (tiny.x, *p.values()))


@pytest.mark.parametrize("model", [model for model in SMOOTH if model.name not in ("mlp", "gat")], ids=repr)
def test_dense_adjacency(model: Model, tiny, make_parameters):
    p = make_parameters(model, 3, 2, 0, torch.float64)
    edge = tiny.dense > 0

    def logits(weight):  # on the edges alone: at an isolated node the degree has a kink
        return model.logits(p, Inputs(tiny.x, torch.zeros_like(tiny.dense).masked_scatter(edge, weight)))

    check(logits, (tiny.dense[edge],))


@pytest.mark.parametrize("name", ["gcn", "sgc", "sage", "appnp", "cheby"])
def test_isolated_nodes_give_no_nan_in_any_derivative(name, tiny, make_parameters):
    model = models.find(name)(hidden=3)
    p = {key: t.requires_grad_() for key, t in make_parameters(model, 3, 2, 0, torch.float64).items()}
    dense = tiny.dense.clone().requires_grad_()
    loss = model.logits(p, Inputs(tiny.x, dense)).logsumexp(-1).sum()
    first = torch.autograd.grad(loss, list(p.values()), create_graph=True)
    (second,) = torch.autograd.grad(sum((g**2).sum() for g in first), dense)
    assert torch.isfinite(second).all()
    assert second.any()


def test_gat_ignores_the_weights_of_edges(tiny, make_parameters):
    model = models.find("gat")(hidden=3, heads=2)
    p = make_parameters(model, 3, 2, 0, torch.float64)
    assert torch.equal(model.logits(p, tiny.inputs("dense")), model.logits(p, tiny.unit().inputs("dense")))
    assert torch.equal(model.logits(p, tiny.inputs("sparse")), model.logits(p, tiny.unit().inputs("sparse")))


@pytest.mark.parametrize("name", sorted(models.available()))
@pytest.mark.parametrize("density", [0.1, 0.9])
def test_class_gradients_in_one_batched_pass(name, density, make_small, make_parameters):
    """``vmap`` pushes all class gradients through one backward pass; sparse products must allow it."""
    graph = make_small(density=density)
    model = models.find(name)(hidden=5)
    p = {key: t.requires_grad_() for key, t in make_parameters(model, 11, 3, 0, torch.float64).items()}
    for features in ("dense", "sparse"):
        losses = model.logits(p, graph.inputs("sparse", features)).logsumexp(-1)[:3]

        def pull(push, losses=losses):
            return torch.autograd.grad(losses, list(p.values()), push, retain_graph=True)

        batched = torch.func.vmap(pull)(torch.eye(3, dtype=torch.float64))
        for row in range(3):
            one = torch.autograd.grad(losses[row], list(p.values()), retain_graph=True)
            for got, expected in zip(batched, one, strict=True):
                torch.testing.assert_close(got[row], expected)
