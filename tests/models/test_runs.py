"""A run's numbers must be the same bits whichever runs are computed side by side with it."""

from __future__ import annotations

import pytest
import torch

from gcond import models
from gcond.graph.inputs import Inputs
from gcond.linalg.sparse import Identity

RUNS = 5
# Odd sizes, so that parts of a wide product start anywhere in memory and vectors have tails.
MODELS = [
    *[cls(layers=layers, hidden=13) for cls in models.available().values() for layers in (1, 2, 3)],
    *[
        cls(hidden=7, activation=name)
        for cls in models.available().values()
        for name in ("sigmoid", "softplus", "tanh")
    ],
    models.find("sgc")(layers=2, hidden=13),
    models.find("cheby")(order=4, hidden=13),
]


def gradients(model, parameters, inputs):
    """Logits of each run, and gradients of a loss that sums over runs."""
    leaves = [{key: tensor.detach().clone().requires_grad_() for key, tensor in one.items()} for one in parameters]
    logits = model.logits_together([model] * len(leaves), leaves, inputs, [None] * len(leaves))
    loss = sum((one.log_softmax(-1)[..., 0] ** 2).mean(-1) for one in logits)
    slopes = iter(torch.autograd.grad(loss, [tensor for one in leaves for tensor in one.values()]))
    return logits, [{key: next(slopes) for key in one} for one in leaves]


def assert_independent(model, inputs, make_parameters, dtype, chosen=range(RUNS)):
    parameters = [make_parameters(model, inputs.num_features, 3, seed, dtype) for seed in range(RUNS)]
    logits, grads = gradients(model, parameters, inputs)
    for run in chosen:
        (one_logits,), (one_grads,) = gradients(model, [parameters[run]], inputs)
        assert torch.equal(logits[run], one_logits)
        for key, grad in grads[run].items():
            assert torch.equal(grad, one_grads[key]), key


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_runs_side_by_side_equal_each_run_alone(model, dtype, make_small, make_parameters):
    graph = make_small(33, 17).to(dtype)
    for adjacency in ("sparse", "dense"):
        for features in ("sparse", "dense"):
            assert_independent(model, graph.inputs(adjacency, features), make_parameters, dtype)
    assert_independent(model, Inputs(graph.x, Identity()), make_parameters, dtype)


@pytest.mark.parametrize("name", sorted(models.available()))
def test_two_threads_and_wide_products_change_nothing(name, make_small, make_parameters):
    """With more threads a tensor is cut into pieces, and where depends on its size."""
    graph = make_small(149, 37, density=0.9 if name == "gat" else 0.1).to(torch.float32)
    model = models.find(name)(hidden=5 if name == "gat" else 67, activation="elu")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert_independent(model, graph.inputs("dense"), make_parameters, torch.float32, [3])
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", sorted(models.available()))
def test_float32_agrees_with_float64(name, make_small, make_parameters):
    model = models.find(name)(hidden=8)
    graph = make_small()
    p = make_parameters(model, graph.x.shape[1], 3, 0, torch.float64)
    exact = model.logits(p, graph.inputs())
    single = model.logits({key: tensor.float() for key, tensor in p.items()}, graph.to(torch.float32).inputs())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), exact, rtol=1e-4, atol=1e-5)
