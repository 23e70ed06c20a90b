"""Scores of all pairs of nodes, and their derivatives, whole and in blocks."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from gcond.matching import pairs
from gcond.matching.pairs import all_pairs, pair_statistics

NODES, OTHERS, HIDDEN = 5, 4, 3
NAMES = ("left", "right", "weight", "gamma", "beta", "out")


def arguments(seed: int = 0, nodes: int = NODES, others: int = OTHERS, hidden: int = HIDDEN):
    """Random in float64, γ and β off their special values."""
    stream = torch.Generator().manual_seed(seed)
    shapes = [(nodes, hidden), (others, hidden), (hidden, hidden), (hidden,), (hidden,), (hidden,)]
    made = [torch.randn(shape, generator=stream, dtype=torch.float64).requires_grad_() for shape in shapes]
    return dict(zip(NAMES, made, strict=True))


def fixed(hidden: int = HIDDEN):
    stream = torch.Generator().manual_seed(9)
    return (
        torch.randn(hidden, generator=stream, dtype=torch.float64),
        0.5 + torch.rand(hidden, generator=stream, dtype=torch.float64),
    )


def pair_scores(*, left, right, rows=None, **others):
    blocks = all_pairs(len(left), len(right), rows)
    return pairs.pair_scores(left, right, blocks=blocks, **others).view(len(left), len(right))


def plainly(*, left, right, weight, gamma, beta, out, statistics=None):
    """The same by PyTorch's own batch normalisation, all pairs at once."""
    first = F.relu(left[:, None] + right[None]).flatten(0, 1)
    mean, variance = statistics or (None, None)
    normal = F.batch_norm(first @ weight, mean, variance, gamma, beta, training=statistics is None)
    return (F.relu(normal) @ out).view(len(left), len(right))


@pytest.mark.parametrize("rows", [None, 1, 2, 3, 5, 100])
@pytest.mark.parametrize("statistics", [None, fixed()], ids=["batch", "given"])
def test_equal_to_batch_norm_on_all_pairs(statistics, rows):
    values = arguments()
    found = pair_scores(**values, statistics=statistics, rows=rows)
    expected = plainly(**values, statistics=statistics)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)
    upstream = torch.randn(found.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    own = torch.autograd.grad((found * upstream).sum(), list(values.values()))
    others = torch.autograd.grad((expected * upstream).sum(), list(values.values()))
    for name, tensor, other in zip(NAMES, own, others, strict=True):
        torch.testing.assert_close(tensor, other, rtol=1e-9, atol=1e-11, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("rows", [None, 1, 2, 5])
@pytest.mark.parametrize("statistics", [None, fixed()], ids=["batch", "given"])
def test_derivatives_are_those_of_small_differences(statistics, rows):
    values = arguments(seed=1)

    def scores(*tensors):
        return pair_scores(**dict(zip(NAMES, tensors, strict=True)), statistics=statistics, rows=rows)

    assert torch.autograd.gradcheck(scores, tuple(values.values()))


@pytest.mark.parametrize("rows", [None, 2])
@pytest.mark.parametrize("learned", [{"left", "right"}, {"weight"}, {"gamma", "beta"}, {"out"}, {"left"}], ids=sorted)
def test_derivatives_for_some_alone(learned, rows):
    """In a turn of X' nothing of Φ learns, and the other way round."""
    values = arguments()
    expected = dict(
        zip(NAMES, torch.autograd.grad(plainly(**values).square().sum(), list(values.values())), strict=True)
    )
    some = {key: tensor.detach().requires_grad_(key in learned) for key, tensor in values.items()}
    pair_scores(**some, rows=rows).square().sum().backward()
    for key, tensor in some.items():
        if key in learned:
            torch.testing.assert_close(tensor.grad, expected[key], rtol=1e-9, atol=1e-11)
        else:
            assert tensor.grad is None


def test_two_derivatives_from_one_forward_pass():
    """The pass back works in place on what it makes, never on what it was given."""
    values = arguments()
    score = pair_scores(**values)
    once, twice = (torch.autograd.grad(score.sum(), list(values.values()), retain_graph=True) for _ in range(2))
    for one, other in zip(once, twice, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("rows", [None, 1, 2, 5, 100])
def test_statistics_are_those_of_all_pairs(rows):
    values = {key: tensor.detach() for key, tensor in arguments().items()}
    left, right, weight = values["left"], values["right"], values["weight"]
    layer = F.relu(left[:, None] + right[None]).flatten(0, 1) @ weight
    mean, variance = pair_statistics(left, right, weight, all_pairs(len(left), len(right), rows))
    torch.testing.assert_close(mean, layer.mean(0))
    torch.testing.assert_close(variance, layer.var(0, correction=0))
    torch.testing.assert_close(pair_scores(**values, statistics=(mean, variance)), pair_scores(**values))


@pytest.mark.parametrize("rows", [None, 7])
def test_statistics_far_from_zero_in_float32(rows):
    """A mean a thousand times the deviation: E z² - (E z)² would be noise."""
    stream = torch.Generator().manual_seed(0)
    left, right = 1000 + torch.randn(40, 8, generator=stream), torch.randn(40, 8, generator=stream)
    _, variance = pair_statistics(left, right, torch.eye(8), all_pairs(40, 40, rows))
    expected = (left.double()[:, None] + right.double()[None]).flatten(0, 1).var(0, correction=0)
    torch.testing.assert_close(variance.double(), expected, rtol=1e-3, atol=0)
