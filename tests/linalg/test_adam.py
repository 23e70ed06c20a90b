"""Adam on a dictionary is PyTorch's, and can be written down and taken up again."""

from __future__ import annotations

import pytest
import torch

from gcond.linalg.adam import Adam
from gcond.runtime.seeds import generator

STEPS = 12


def weights():
    stream = generator(0, "weights")
    return {"weight": torch.randn(7, 5, generator=stream), "bias": torch.randn(5, generator=stream)}


def gradients(step):
    stream = generator(step, "gradients")
    return {"weight": torch.randn(7, 5, generator=stream), "bias": 1e-3 * torch.randn(5, generator=stream)}


def by_columns(tensors):
    return {key: tensor.mT.contiguous().mT if tensor.dim() == 2 else tensor for key, tensor in tensors.items()}


@pytest.mark.parametrize("columns", [False, True])
def test_equals_pytorch(columns):
    ours, theirs = weights(), weights()
    ours = by_columns(ours) if columns else ours
    adam = Adam(ours, 0.03)
    oracle = torch.optim.Adam(list(theirs.values()), lr=0.03)
    for step in range(STEPS):
        given = gradients(step)
        adam.step(by_columns(given) if columns else given)
        for key, tensor in theirs.items():
            tensor.grad = given[key].clone()
        oracle.step()
        for key, tensor in ours.items():
            torch.testing.assert_close(tensor, theirs[key], rtol=1e-5, atol=1e-6)


def test_changes_its_tensors_in_place_and_leaves_the_gradients():
    tensors = weights()
    places = {key: tensor.data_ptr() for key, tensor in tensors.items()}
    given = gradients(0)
    adam = Adam(tensors, 0.1)
    adam.step(given)
    assert {key: tensor.data_ptr() for key, tensor in tensors.items()} == places
    for key, tensor in tensors.items():
        assert not torch.equal(tensor, weights()[key])
        assert torch.equal(given[key], gradients(0)[key])
        assert tensor.grad is None


def test_learns_what_requires_a_gradient_too():
    tensors = {key: tensor.requires_grad_() for key, tensor in weights().items()}
    plain = weights()
    for group in (tensors, plain):
        Adam(group, 0.1).step(gradients(0))
    for key, tensor in tensors.items():
        assert tensor.requires_grad
        assert torch.equal(tensor.detach(), plain[key])


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("at", range(STEPS + 1))
def test_taken_up_again_at_any_step_it_goes_on_the_same(at, columns):
    start = (lambda: by_columns(weights())) if columns else weights
    whole = start()
    adam = Adam(whole, 0.03)
    for step in range(STEPS):
        if step == at:
            kept, state = {key: tensor.clone() for key, tensor in whole.items()}, adam.state()
        adam.step(gradients(step))
    if at == STEPS:
        kept, state = {key: tensor.clone() for key, tensor in whole.items()}, adam.state()
    again = start()
    other = Adam(again, 0.03)
    for step in range(3):  # what was learned since must not shine through
        other.step(gradients(step + 99))
    for key, tensor in again.items():
        tensor.copy_(kept[key])
    other.load(state)
    for step in range(at, STEPS):
        other.step(gradients(step))
    for key, tensor in whole.items():
        assert torch.equal(again[key], tensor)
    for key, value in adam.state().items():
        assert torch.equal(other.state()[key], value)


def test_state_and_load_copy():
    tensors = weights()
    adam = Adam(tensors, 0.1)
    adam.step(gradients(0))
    state = adam.state()
    before = {key: value.clone() for key, value in state.items()}
    adam.step(gradients(1))
    assert all(torch.equal(state[key], before[key]) for key in state)
    adam.load(state)
    adam.step(gradients(1))
    assert all(torch.equal(state[key], before[key]) for key in state)


def test_slowed_down_it_takes_shorter_steps_with_the_same_moments():
    moved = []
    for factor in (1.0, 0.5):
        tensors = weights()
        adam = Adam(tensors, 0.1)
        adam.slow_down(factor)
        adam.step(gradients(0))
        moved.append(weights()["weight"] - tensors["weight"])
    torch.testing.assert_close(moved[1], moved[0] / 2, rtol=1e-4, atol=1e-6)
    assert adam.lr == 0.05


def test_nothing_to_learn_is_fine():
    adam = Adam({}, 0.1)
    adam.step({})
    adam.slow_down(0.5)
    adam.load(adam.state())
    assert adam.state() == {}
