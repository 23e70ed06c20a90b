"""A score for every ordered pair of nodes: the part of Φ that costs n² h², exact and in blocks of memory.

The first layer of Φ acts on a concatenation, so it splits, ``[x_i; x_j] W = x_i W₁ + x_j W₂``; and because
the pairs are all the pairs, the batch statistics of that sum are the sums of the two parts' own. What is
left for every pair is what this file does, with derivatives written out: they need the pairs' two
hidden layers and nothing else, and where even these do not fit, they are made again block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

EPSILON = 1e-5  # of batch normalisation, PyTorch's default
TENSORS_PER_PAIR = 5  # of width h that are alive at once, here and in the derivative


def pair_scores(
    left: Tensor,
    right: Tensor,
    *,
    weight: Tensor,
    gamma: Tensor,
    beta: Tensor,
    out: Tensor,
    statistics: tuple[Tensor, Tensor] | None = None,
    rows: int | None = None,
) -> Tensor:
    r"""``relu(BN(relu(left_i + right_j) weight)) out`` for all i, j: [n, h] twice to [n, m].

    .. math:: s_{ij} = \mathrm{relu}\big(γ (z_{ij} - μ) / σ + β\big)^{⊤} w, \; z_{ij} = W^{⊤} \mathrm{relu}(l_i + r_j)

    ``μ`` and ``σ²`` are the mean and the variance of z over all pairs, or the ``statistics`` given. ``weight`` is
    [h, h]; ``gamma``, ``beta`` and ``out`` [h]. At most ``rows`` rows of pairs are in memory at a time; the
    result does not depend on it beyond rounding. Differentiable once.
    """
    block = len(left) if rows is None else max(1, min(rows, len(left)))
    return _PairScores.apply(block, statistics, left, right, weight, gamma, beta, out)  # type: ignore[no-untyped-call]


@torch.no_grad()
def pair_statistics(left: Tensor, right: Tensor, weight: Tensor, rows: int | None = None) -> tuple[Tensor, Tensor]:
    """Mean and variance over all pairs of ``relu(left_i + right_j) weight``: [h] each."""
    return _moments(layer for _, _, layer in _blocks(left, right, weight, rows or len(left)))


class _PairScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: int, statistics: tuple[Tensor, Tensor] | None, *tensors: Tensor) -> Tensor:
        left, right, weight, gamma, beta, out = tensors
        ctx.fixed = statistics is not None
        ctx.rows = rows
        ctx.whole = list(_blocks(left, right, weight, rows)) if rows >= len(left) else None
        blocks = ctx.whole or _blocks(left, right, weight, rows)
        mean, variance = statistics or _moments(layer for _, _, layer in blocks)
        ctx.save_for_backward(*tensors, mean, variance)
        scale, shift = _affine(gamma, beta, mean, variance)
        blocks = ctx.whole or _blocks(left, right, weight, rows)
        return torch.cat([(_activate(layer, scale, shift) @ out).view(-1, len(right)) for _, _, layer in blocks])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        left, right, weight, gamma, beta, out, mean, variance = ctx.saved_tensors
        scale, shift = _affine(gamma, beta, mean, variance)
        deviation = (variance + EPSILON).sqrt()
        for_weights = any(ctx.needs_input_grad[4:8])

        def blocks() -> Iterator[tuple[slice, Tensor, Tensor, Tensor, Tensor]]:
            """Rows, first layer, second layer, its activation, and the derivative after normalisation."""
            for place, first, second in ctx.whole or _blocks(left, right, weight, ctx.rows):
                active = _activate(second, scale, shift)
                slope = torch.outer(grad[place].reshape(-1), out)
                yield place, first, second, active, _where_active(slope, active)

        # How the loss moves with β and γ; batch statistics let every pair feel every other through these.
        to_beta, to_gamma, to_out = (torch.zeros_like(beta) for _ in range(3))
        kept = []
        for place, first, second, active, slope in blocks():
            to_beta += slope.sum(0)
            to_gamma += (slope * second).sum(0)
            if for_weights:
                to_out += active.mT @ grad[place].reshape(-1)
            if ctx.whole:
                kept.append((place, first, second, slope))
        to_gamma = (to_gamma - mean * to_beta) / deviation

        pairs = len(left) * len(right)
        pull = -scale * to_gamma / (deviation * pairs)
        level = -scale * to_beta / pairs - pull * mean
        to_left, to_right, to_weight = (torch.zeros_like(tensor) for tensor in (left, right, weight))
        for place, first, second, slope in kept or ((p, f, s, d) for p, f, s, _, d in blocks()):
            slope.mul_(scale)
            if not ctx.fixed:
                slope.addcmul_(second, pull).add_(level)
            if for_weights:
                to_weight += first.mT @ slope
            to_first = _where_active(slope @ weight.mT, first).view(-1, *right.shape)
            to_left[place] = to_first.sum(1)
            to_right += to_first.sum(0)
        return None, None, to_left, to_right, to_weight, to_gamma, to_beta, to_out


def _blocks(left: Tensor, right: Tensor, weight: Tensor, rows: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """A few rows of pairs at a time: which rows, ``relu(left_i + right_j)`` and that times ``weight``, [pairs, h]."""
    for start in range(0, len(left), rows):
        place = slice(start, start + rows)
        first = (left[place, None] + right[None]).relu_().view(-1, right.shape[1])
        yield place, first, first @ weight


def _moments(layers: Iterator[Tensor]) -> tuple[Tensor, Tensor]:
    """Mean and variance [h] of all rows, joined block by block (Chan, Golub and LeVeque, 1983)."""
    count, mean, spread = 0, torch.zeros(()), torch.zeros(())
    for layer in layers:
        own = layer.mean(0)
        around = (layer - own).square_().sum(0)  # torch.var_mean takes twelve times as long on a tall matrix
        new, total = len(layer), count + len(layer)
        if count == 0:
            mean, spread = own, around
        else:
            apart = own - mean
            mean = mean + apart * (new / total)
            spread = spread + around + apart.square() * (count * new / total)
        count = total
    return mean, spread / count


def _where_active(slope: Tensor, activation: Tensor) -> Tensor:
    """The derivative before a ReLU, in place of the one after it: 0 where the ReLU is."""
    return torch.ops.aten.threshold_backward.grad_input(slope, activation, 0, grad_input=slope)


def _affine(gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Batch normalisation as one multiplication and one addition."""
    scale = gamma / (variance + EPSILON).sqrt()
    return scale, beta - mean * scale


def _activate(layer: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return torch.addcmul(shift, layer, scale).relu_()
