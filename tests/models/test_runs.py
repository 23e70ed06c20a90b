"""A run's numbers must be the same bits whatever is stacked beside it."""

from __future__ import annotations

import pytest
import torch

from gcond import models
from gcond.graph.inputs import Inputs
from gcond.linalg.sparse import Identity

RUNS = 5
# Odd sizes, so that slices of a stack start anywhere in memory and vectors have tails.
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
    """Logits, and gradients of a loss that sums over runs."""
    leaves = {key: tensor.detach().clone().requires_grad_() for key, tensor in parameters.items()}
    logits = model.logits(leaves, inputs)
    loss = (logits.log_softmax(-1)[..., 0] ** 2).mean(-1).sum()
    return logits.detach(), dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))


def assert_independent(model, inputs, make_parameters, dtype, chosen=range(RUNS)):
    alone = [make_parameters(model, inputs.num_features, 3, seed, dtype) for seed in range(RUNS)]
    stacked = {key: torch.stack([run[key] for run in alone]) for key in alone[0]}
    logits, grads = gradients(model, stacked, inputs)
    for run in chosen:
        single = {key: tensor[run : run + 1] for key, tensor in stacked.items()}
        for parameters, at in ((alone[run], ...), (single, 0)):
            one_logits, one_grads = gradients(model, parameters, inputs)
            assert torch.equal(logits[run], one_logits[at])
            for key, grad in grads.items():
                assert torch.equal(grad[run], one_grads[key][at]), key


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_stacked_runs_equal_each_run_alone(model, dtype, make_small, make_parameters):
    graph = make_small(33, 17).to(dtype)
    for adjacency in ("sparse", "dense"):
        for features in ("sparse", "dense"):
            assert_independent(model, graph.inputs(adjacency, features), make_parameters, dtype)
    assert_independent(model, Inputs(graph.x, Identity()), make_parameters, dtype)


@pytest.mark.parametrize("name", sorted(models.available()))
def test_two_threads_and_large_stacks_change_nothing(name, make_small, make_parameters):
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
