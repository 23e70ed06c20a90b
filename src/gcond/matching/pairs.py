"""A score for ordered pairs of nodes: the part of Φ that costs h² for each of them, in blocks of pairs.

The first layer of Φ acts on a concatenation, so it splits, ``[x_i; x_j] W = x_i W₁ + x_j W₂``, and the batch statistics
of that sum over all pairs are the sums of the two parts' own. What is left for every pair is what this file does, with
derivatives written out: they need the pairs' two hidden layers and nothing else. Few pairs have these kept; of many,
they are made again block by block, each of which stays in the cache until it is done with: that is a little quicker
than to write and read them in memory, and takes next to none (206,116 pairs of width 128, there and back, on one core:
0.20 s for 0.25, and 0.75 GB less). One core is enough for a block, so a busy machine does not slow it down.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from gcond.linalg.dense_products import multiply_dense
from gcond.linalg.edge_products import Pattern
from gcond.linalg.sparse import SparseMatrix, multiply
from gcond.runtime.threads import fewer_threads

Moments: TypeAlias = tuple[Tensor, Tensor]
"""Mean and variance, [h] each."""

EPSILON = 1e-5  # of batch normalisation, PyTorch's default
TENSORS_PER_PAIR = 5  # of width h that are alive at once, here and in the derivative
KEPT_PAIRS = 40_000
"""Pairs whose hidden layers are kept: of 200 nodes. Up to here the numbers are the same bits as ever."""
BLOCK_PAIRS = 4096
"""Pairs at a time beyond: 2 MB for each of their tensors at the usual width."""


class Block(Protocol):
    """Some pairs (i, j) of nodes, all those of some i."""

    @property
    def place(self) -> slice:
        """Where they are among all pairs."""

    def join(self, left: Tensor, right: Tensor) -> Tensor:
        """``left_i + right_j``, [n, h] twice to [pairs, h]."""

    def part(self, slope: Tensor, to_left: Tensor, to_right: Tensor) -> None:
        """The derivative ``slope`` [pairs, h] of what :meth:`join` gave, added to those of its two arguments."""


@dataclass(frozen=True)
class Rows:
    """The pairs of nodes ``first`` to ``last`` - 1 with each of ``others`` nodes."""

    first: int
    last: int
    others: int

    @property
    def place(self) -> slice:
        return slice(self.first * self.others, self.last * self.others)

    def join(self, left: Tensor, right: Tensor) -> Tensor:
        return (left[self.first : self.last, None] + right[None]).view(-1, right.shape[1])

    def part(self, slope: Tensor, to_left: Tensor, to_right: Tensor) -> None:
        slope = slope.view(-1, *to_right.shape)
        to_left[self.first : self.last] = slope.sum(1)
        to_right += slope.sum(0)


@dataclass(frozen=True)
class Entries:
    """The pairs (target, source) of rows ``first`` to ``last`` - 1 of a ``pattern``."""

    pattern: Pattern
    first: int
    last: int

    @cached_property
    def place(self) -> slice:
        return slice(int(self.pattern.offsets[self.first]), int(self.pattern.offsets[self.last]))

    @cached_property
    def _of_target(self) -> SparseMatrix:
        """[rows, pairs]: a 1 for every pair in the row of its target."""
        offsets = self.pattern.offsets[self.first : self.last + 1] - self.place.start
        return self._ones(offsets, torch.arange(self.place.stop - self.place.start, device=offsets.device))

    @cached_property
    def _of_source(self) -> SparseMatrix:
        """[n, pairs]: a 1 for every pair in the row of its source."""
        source = self.pattern.source[self.place]
        offsets = torch.zeros_like(self.pattern.offsets)
        offsets[1:] = torch.bincount(source, minlength=self.pattern.n).cumsum(0)
        return self._ones(offsets, source.argsort(stable=True))

    def _ones(self, offsets: Tensor, pairs: Tensor) -> SparseMatrix:
        return SparseMatrix.from_parts(
            offsets, pairs, torch.ones(len(pairs), device=pairs.device), (len(offsets) - 1, len(pairs))
        )

    def join(self, left: Tensor, right: Tensor) -> Tensor:
        joined = left.index_select(0, self.pattern.target[self.place])
        return joined.add_(right.index_select(0, self.pattern.source[self.place]))

    def part(self, slope: Tensor, to_left: Tensor, to_right: Tensor) -> None:
        # Sums by a sparse product: ``index_add_`` takes ten times as long.
        to_left[self.first : self.last] = multiply(self._of_target.to(dtype=slope.dtype).csr, slope)
        to_right += multiply(self._of_source.to(dtype=slope.dtype).csr, slope)


def all_pairs(nodes: int, others: int, rows: int | None = None) -> list[Rows]:
    """All pairs of ``nodes`` with ``others``: at most ``rows`` rows of them in a block, and few where they are many."""
    if nodes * others > KEPT_PAIRS:
        rows = min(rows or nodes, BLOCK_PAIRS // others)
    step = nodes if rows is None else max(1, min(rows, nodes))
    return [Rows(first, min(first + step, nodes), others) for first in range(0, nodes, step)]


def pattern_pairs(pattern: Pattern, together: int | None = None) -> list[Entries]:
    """The entries of ``pattern`` as pairs (target, source), at most ``together`` in a block, but whole rows of them."""
    offsets = pattern.offsets.tolist()
    most = BLOCK_PAIRS if offsets[-1] > KEPT_PAIRS else offsets[-1]
    most = most if together is None else min(most, together)
    cuts = [0]
    for row in range(1, pattern.n):
        if offsets[row + 1] - offsets[cuts[-1]] > most:
            cuts.append(row)
    return [Entries(pattern, *rows) for rows in zip(cuts, [*cuts[1:], pattern.n], strict=True)]


def pair_scores(
    left: Tensor,
    right: Tensor,
    *,
    weight: Tensor,
    gamma: Tensor,
    beta: Tensor,
    out: Tensor,
    statistics: Moments | None = None,
    blocks: Sequence[Block],
) -> Tensor:
    r"""``relu(BN(relu(left_i + right_j) weight)) out`` for the pairs i, j of all ``blocks``: [n, h] twice to [pairs].

    .. math:: s_{ij} = \mathrm{relu}\big(γ (z_{ij} - μ) / σ + β\big)^{⊤} w, \; z_{ij} = W^{⊤} \mathrm{relu}(l_i + r_j)

    ``μ`` and ``σ²`` are the mean and the variance of z over these pairs, or the ``statistics`` given. ``weight`` is
    [h, h]; ``gamma``, ``beta`` and ``out`` [h]. One block of pairs is in memory at a time; the result does not depend
    on the cut beyond rounding. Differentiable once.
    """
    return _PairScores.apply(blocks, statistics, left, right, weight, gamma, beta, out)  # type: ignore[no-untyped-call]


@torch.no_grad()
def pair_statistics(left: Tensor, right: Tensor, weight: Tensor, blocks: Sequence[Block]) -> Moments:
    """Mean and variance over the pairs of all ``blocks`` of ``relu(left_i + right_j) weight``: [h] each."""
    return _moments(layer for _, _, layer in _layers(blocks, left, right, weight))


class _PairScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, blocks: Sequence[Block], statistics: Moments | None, *tensors: Tensor) -> Tensor:
        left, right, weight, gamma, beta, out = tensors
        ctx.fixed = statistics is not None
        ctx.blocks = blocks
        ctx.whole = list(_layers(blocks, left, right, weight)) if len(blocks) == 1 else None
        with _threads(blocks):
            mean, variance = statistics or _moments(
                layer for _, _, layer in ctx.whole or _layers(blocks, left, right, weight)
            )
            ctx.save_for_backward(*tensors, mean, variance)
            scale, shift = _affine(gamma, beta, mean, variance)
            layers = ctx.whole or _layers(blocks, left, right, weight)
            return torch.cat([_activate(layer, scale, shift) @ out for _, _, layer in layers])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        with _threads(ctx.blocks):
            return _derivatives(ctx, grad)


def _derivatives(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    left, right, weight, gamma, beta, out, mean, variance = ctx.saved_tensors
    scale, shift = _affine(gamma, beta, mean, variance)
    deviation = (variance + EPSILON).sqrt()
    for_weights = any(ctx.needs_input_grad[4:8])
    product = _product(ctx.blocks)

    def layers() -> Iterator[tuple[Block, Tensor, Tensor, Tensor, Tensor]]:
        """A block, first layer, second layer, its activation, and the derivative after normalisation."""
        for block, first, second in ctx.whole or _layers(ctx.blocks, left, right, weight):
            active = _activate(second, scale, shift)
            slope = torch.outer(grad[block.place], out)
            yield block, first, second, active, _where_active(slope, active)

    # How the loss moves with β and γ; batch statistics let every pair feel every other through these.
    to_beta, to_gamma, to_out = (torch.zeros_like(beta) for _ in range(3))
    kept = []
    for block, first, second, active, slope in layers():
        to_beta += slope.sum(0)
        to_gamma += (slope * second).sum(0)
        if for_weights:
            to_out += active.mT @ grad[block.place]
        if ctx.whole:
            kept.append((block, first, second, slope))
    to_gamma = (to_gamma - mean * to_beta) / deviation

    pairs = len(grad)
    pull = -scale * to_gamma / (deviation * pairs)
    level = -scale * to_beta / pairs - pull * mean
    to_left, to_right, to_weight = (torch.zeros_like(tensor) for tensor in (left, right, weight))
    for block, first, second, slope in kept or ((b, f, s, d) for b, f, s, _, d in layers()):
        slope.mul_(scale)
        if not ctx.fixed:
            slope.addcmul_(second, pull).add_(level)
        if for_weights:
            to_weight += product(first.mT, slope)
        block.part(_where_active(product(slope, weight.mT), first), to_left, to_right)
    return None, None, to_left, to_right, to_weight, to_gamma, to_beta, to_out


def _layers(
    blocks: Sequence[Block], left: Tensor, right: Tensor, weight: Tensor
) -> Iterator[tuple[Block, Tensor, Tensor]]:
    """A block of pairs at a time: which, ``relu(left_i + right_j)`` and that times ``weight``, [pairs, h]."""
    product = _product(blocks)
    for block in blocks:
        first = block.join(left, right).relu_()
        yield block, first, product(first, weight)


def _product(blocks: Sequence[Block]) -> Any:
    """The quickest product where there is more than one block; a single one has the same bits as ever."""
    return torch.matmul if len(blocks) == 1 else multiply_dense


def _threads(blocks: Sequence[Block]) -> Any:
    """One thread where there is more than one block: they are shorter than what a second one is waited for."""
    return fewer_threads(1) if len(blocks) > 1 else contextlib.nullcontext()


def _moments(layers: Iterator[Tensor]) -> Moments:
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
