"""Several architectures trained as one stack: runs that differ in what they compute, not in their weights' shapes.

Nothing here depends on who stands beside whom in a stack: a run gives the same bits alone and among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import torch
from torch import Generator, Tensor

from gcond.graph.inputs import Inputs
from gcond.linalg.sparse import Adjacency, Operator, SparseMatrix, aligned, matmul
from gcond.models.appnp import APPNP
from gcond.models.model import Dropout, Model, Parameters
from gcond.runtime.seeds import generator

# Wider blocks fill a core's vectors on their own; side by side they would only fall out of its caches.
_NARROW = 128


class StackedDropout:
    """Dropout on [R, n, k] that draws each run's mask from that run's own generator."""

    def __init__(self, rate: float, seeds: Sequence[int], device: torch.device) -> None:
        self._rate = rate
        self._streams = [generator(seed, "dropout", device) for seed in seeds]

    def __call__(self, x: Tensor) -> Tensor:
        return torch.stack([self.run(number)(one) for number, one in enumerate(x.unbind())])

    def run(self, number: int) -> Dropout:
        """That of one run alone, on [n, k]."""
        stream = self._streams[number]

        def drop(x: Tensor) -> Tensor:
            keep = torch.rand(x.shape, generator=stream, device=x.device) >= self._rate
            return x * keep / (1 - self._rate)

        return drop


class Architectures:
    """One model a run, to be trained as a stack: where a :class:`~gcond.models.model.Model` has [R, …], so has this.

    The models share their class, the shapes of their weights and how far they look (:func:`stackable`).
    """

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = tuple(models)
        self.name = self.models[0].name
        self.reach = self.models[0].reach
        self.precomputed = self.models[0].precomputed
        self._spread: dict[Inputs, list[Operator]] = {}

    def init(self, features: int, classes: int, stream: Generator) -> Parameters:
        """Fresh weights of one run; the same for all models, since only shapes enter."""
        return self.models[0].init(features, classes, stream)

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: StackedDropout | None = None) -> Tensor:
        """Class scores [R, n, C], each run's by its own model."""
        return _logits(self.models[0], self, parameters, inputs, dropout)

    def spread(self, inputs: Inputs) -> list[Operator]:
        """APPNP's propagation as one matrix a run, made once for each graph that is small enough to be dense."""
        if inputs not in self._spread:
            kinds = [(model.hops, model.alpha) for model in self.models]  # type: ignore[attr-defined]
            made = {kind: _personalised(inputs.gcn, *kind) for kind in set(kinds)}
            self._spread[inputs] = [made[kind] for kind in kinds]
        return self._spread[inputs]


def stackable(model: Model, features: int, classes: int) -> tuple[Any, ...]:
    """What models have in common that can be one stack: class, shapes of their weights, and how far they look."""
    # On the meta device nothing is drawn or stored: only shapes are asked for.
    with torch.device("meta"):
        weights = model.init(features, classes, None)  # type: ignore[arg-type]
    shapes = tuple(sorted((key, tuple(weight.shape)) for key, weight in weights.items()))
    return (model.name, model.reach, model.precomputed, shapes)


@singledispatch
def _logits(
    first: Model, stack: Architectures, parameters: Parameters, inputs: Inputs, dropout: StackedDropout | None
) -> Tensor:
    """Run by run, for any model."""
    runs = {key: tensor.unbind() for key, tensor in parameters.items()}
    scores = []
    for number, model in enumerate(stack.models):
        one = {key: aligned(weights[number]) for key, weights in runs.items()}
        scores.append(model.logits(one, inputs, dropout.run(number) if dropout else None))
    return torch.stack(scores)


@_logits.register(APPNP)
def _appnp_logits(
    first: APPNP, stack: Architectures, parameters: Parameters, inputs: Inputs, dropout: StackedDropout | None
) -> Tensor:
    """Products with the graph for all runs side by side; what differs between architectures, run by run."""
    models = stack.models
    hidden = _side_by_side(inputs.x, parameters["weight0"])
    biases = parameters["bias0"].unbind()
    runs = [h + bias for h, bias in zip(hidden, biases, strict=True)]
    for layer in range(1, first.layers):
        runs = [model.activate(h) for model, h in zip(models, runs, strict=True)]
        if dropout:
            runs = list(dropout(torch.stack(runs)).unbind())
        weights, biases = parameters[f"weight{layer}"].unbind(), parameters[f"bias{layer}"].unbind()
        runs = [
            _ToNarrow.apply(aligned(h), weight) + bias for h, weight, bias in zip(runs, weights, biases, strict=True)
        ]
    own = torch.stack(runs)
    if not isinstance(inputs.gcn, SparseMatrix):
        return torch.stack([matmul(spread, run) for spread, run in zip(stack.spread(inputs), own, strict=True)])
    count, rows, classes = own.shape
    alpha = own.new_tensor([model.alpha for model in models]).repeat_interleave(classes)  # type: ignore[attr-defined]
    back = own.transpose(0, 1).reshape(rows, count * classes)
    returned, h = alpha * back, back
    for _ in range(first.hops):
        h = (1 - alpha) * (inputs.gcn @ h) + returned
    return h.view(rows, count, classes).transpose(0, 1)


def _side_by_side(left: Operator, right: Tensor) -> Sequence[Tensor]:
    """``left @ right`` for each of ``right`` [R, m, k], as R tensors [n, k].

    A sparse matrix goes through its entries once for all narrow blocks together. Its kernel sums every column on
    its own and in the order of the entries, so that neighbours change nothing.
    """
    count, rows, columns = right.shape
    if not isinstance(left, SparseMatrix) or columns > _NARROW or count == 1:
        return matmul(left, right).unbind()
    wide = left @ right.transpose(0, 1).reshape(rows, count * columns)
    return wide.view(-1, count, columns).unbind(1)


class _ToNarrow(torch.autograd.Function):
    """``h @ weight``, [n, k] to [n, few]: BLAS is several times as fast where the long side lies contiguous."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(h, weight)
        return (weight.T.contiguous() @ h.T).T.contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        h, weight = ctx.saved_tensors
        across = grad.T.contiguous()
        return across.T @ weight.T.contiguous(), (across @ h).T


def _personalised(operator: Adjacency, hops: int, alpha: float) -> Operator:
    """``(1-α)^K Â^K + α Σ_{k<K} (1-α)^k Â^k``, which is all of APPNP's propagation in one matrix."""
    if not isinstance(operator, Tensor):
        return operator  # the identity, on which it does nothing
    own = torch.eye(len(operator), dtype=operator.dtype, device=operator.device)
    spread = own
    for _ in range(hops):
        spread = (1 - alpha) * (operator @ spread) + alpha * own
    return spread
