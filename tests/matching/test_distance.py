"""Distances between class gradients."""

from __future__ import annotations

import pytest
import torch

from gcond.matching.distance import DISTANCES

KINDS = ["column-cosine", "cosine", "mse"]


def gradients(seed: int = 0, scale: float = 1.0, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Of a two-layer model with widths 5, 4, 3, for 3 classes."""
    stream = torch.Generator().manual_seed(seed)
    shapes = {"weight0": (5, 4), "bias0": (4,), "weight1": (4, 3), "bias1": (3,)}
    return {
        key: scale * torch.randn(3, *shape, generator=stream, dtype=torch.float64).to(dtype)
        for key, shape in shapes.items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_between_equals(kind):
    torch.testing.assert_close(DISTANCES[kind](gradients(), gradients()), torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize("kind", KINDS)
def test_one_number_a_class_that_depends_on_no_other_class(kind):
    real, own = gradients(0), gradients(1)
    before = DISTANCES[kind](real, own)
    assert before.shape == (3,)
    assert (before > 0.1).all()
    for tensor in own.values():
        tensor[2] *= -3
    after = DISTANCES[kind](real, own)
    assert torch.equal(after[:2], before[:2])
    assert after[2] != before[2]


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_the_dictionaries_does_not_matter(kind):
    real, own = gradients(0), gradients(1)
    turned = dict(reversed(own.items()))
    torch.testing.assert_close(DISTANCES[kind](real, turned), DISTANCES[kind](real, own))


@pytest.mark.parametrize("kind", ["column-cosine", "cosine"])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_length_of_a_gradient_does_not_matter_to_a_cosine(kind, scale):
    expected = DISTANCES[kind](gradients(0), gradients(1))
    torch.testing.assert_close(DISTANCES[kind](gradients(0), gradients(1, scale)), expected)
    torch.testing.assert_close(DISTANCES[kind](gradients(0, scale), gradients(1)), expected)


def test_each_column_has_its_own_length():
    """The paper's cosine is of every column by itself, the other one of the whole."""
    real, own = gradients(0), gradients(1)
    expected = {kind: DISTANCES[kind](real, own) for kind in KINDS}
    own["weight0"][:, :, 1] *= 5
    torch.testing.assert_close(DISTANCES["column-cosine"](real, own), expected["column-cosine"])
    assert (DISTANCES["cosine"](real, own) - expected["cosine"]).abs().min() > 1e-3
    assert (DISTANCES["mse"](real, own) - expected["mse"]).abs().min() > 1e-3


def test_biases_count_nothing_by_columns_and_something_otherwise():
    real, own = gradients(0), gradients(1)
    other = own | {"bias0": -own["bias0"], "bias1": -own["bias1"]}
    assert torch.equal(DISTANCES["column-cosine"](real, own), DISTANCES["column-cosine"](real, other))
    for kind in ("cosine", "mse"):
        assert (DISTANCES[kind](real, own) != DISTANCES[kind](real, other)).all()


def test_opposites_are_two_a_column_apart():
    real = gradients()
    opposite = {key: -tensor for key, tensor in real.items()}
    columns = 4 + 3
    apart = torch.full((3,), 2.0, dtype=torch.float64)
    torch.testing.assert_close(DISTANCES["column-cosine"](real, opposite), columns * apart)
    torch.testing.assert_close(DISTANCES["cosine"](real, opposite), apart)


def test_mse_is_the_squared_euclidean_distance():
    real, own = gradients(0), gradients(1)
    expected = sum((real[key] - own[key]).square().flatten(1).sum(1) for key in real)
    torch.testing.assert_close(DISTANCES["mse"](real, own), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("zero", ["real", "own", "both"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_zero_are_no_trouble(kind, zero, dtype):
    """A class that is fitted already, or a unit that is never active: cos of a zero vector counts as 0."""
    real, own = gradients(0, dtype=dtype), gradients(1, dtype=dtype)
    for side, name in ((real, "real"), (own, "own")):
        if zero in {name, "both"}:
            side["weight0"][:, :, 2] = 0
            for tensor in side.values():
                tensor[1] = 0
    for tensor in own.values():
        tensor.requires_grad_()
    found = DISTANCES[kind](real, own)
    derivatives = torch.autograd.grad(found.sum(), list(own.values()), allow_unused=True)
    assert found.isfinite().all()
    assert all(tensor is None or tensor.isfinite().all() for tensor in derivatives)
    if kind != "mse":
        assert found[1] == (7 if kind == "column-cosine" else 1)


@pytest.mark.parametrize("kind", ["column-cosine", "cosine"])
def test_small_gradients_still_count_in_float32(kind):
    """As small features give them; an epsilon of 1e-6 beside their lengths would hide them."""
    expected = DISTANCES[kind](gradients(0), gradients(1))
    small = DISTANCES[kind](gradients(0, 1e-8, torch.float32), gradients(1, 1e-8, torch.float32))
    torch.testing.assert_close(small.double(), expected, rtol=1e-4, atol=1e-4)
