"""APPNP, alone and several architectures side by side.

An architecture search trains many architectures of one shape, and most of their time goes into products with the same
graph: with features, which are sparse, and with Â, K times. Side by side these are one product for all. On Cora (one
thread, CPU time, benchmarks/nas.py) 48 architectures are then about twice as fast as one by one: 1.8 to 2.1 times on
the whole graph, 1.9 to 2.1 on 70 nodes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from gcond.config.setting_ranges import Range, SettingRange
from gcond.graph import Inputs
from gcond.graph.column_work import Smoothing
from gcond.linalg.sparse import Identity, Matrix, SparseMatrix
from gcond.models import pyg_modules
from gcond.models.model import Dropout, Model, Parameters
from gcond.models.stages import Product, Spread, Stages

# Wider blocks fill a core's vectors on their own; side by side they would only fall out of its caches.
_NARROW = 128


@dataclass(frozen=True)
class APPNP(Model):
    r"""Predict with an MLP, then propagate with a chance ``α`` to return, as personalised PageRank does.

    .. math:: Z^{(0)} = \mathrm{MLP}(X), \quad Z^{(k+1)} = (1 - α) Â Z^{(k)} + α Z^{(0)}, \quad Â = D^{-½}(A + I)D^{-½}

    Features [n, d] to class scores [n, C]; equal to ``torch_geometric.nn.APPNP`` after an ``MLP``.
    """

    name: ClassVar[str] = "appnp"
    citation: ClassVar[str] = "Gasteiger et al., Predict then Propagate, ICLR 2019"
    counts: ClassVar[tuple[str, ...]] = (*Model.counts, "hops")
    ranges: ClassVar[Mapping[str, SettingRange]] = {"hops": Range(2, 16), "alpha": Range(0.05, 0.5)}

    hops: int = 10
    """Propagations K (the paper's 10)."""
    alpha: float = 0.1
    """Chance to return to the node's own prediction (the paper's 0.1)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha <= 1:
            raise ValueError("alpha must be from 0 to 1")

    @property
    def reach(self) -> int:
        return self.hops

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        return self._propagate(inputs, self.stack(parameters, inputs.x, dropout))

    def to_pyg(
        self, parameters: Parameters, *, dropout: float = 0.0, weighted: bool = False, directed: bool = False
    ) -> torch.nn.Module:
        """``MLP``, then ``torch_geometric.nn.APPNP``."""
        from torch_geometric import nn

        spread = (nn.APPNP(self.hops, self.alpha), pyg_modules.ON_WEIGHTED_EDGES)
        return pyg_modules.sequential([pyg_modules.perceptron(self, parameters, dropout), spread])

    def stages(self, parameters: Parameters) -> Stages:
        layers = self.hidden_layers(parameters)
        steps = Spread(Smoothing(self.alpha, self.hops), layers.width)
        return Stages((Product(parameters["weight0"]),), (layers, steps))

    def _propagate(self, inputs: Inputs, own: Tensor) -> Tensor:
        h = own
        for _ in range(self.hops):
            h = (1 - self.alpha) * (inputs.gcn @ h) + self.alpha * own
        return h

    @classmethod
    def logits_together(
        cls,
        models: Sequence[Self],
        parameters: Sequence[Parameters],
        inputs: Inputs,
        dropouts: Sequence[Dropout | None],
    ) -> list[Tensor]:
        """Products with the graph for all models at once; what differs between them, one after the other.

        A sparse product sums every column on its own and in the order of the entries, so that columns beside it
        change nothing.
        """
        hidden = _side_by_side(inputs.x, [one["weight0"] for one in parameters])
        own = []
        for model, one, drop, first in zip(models, parameters, dropouts, hidden, strict=True):
            h = first + one["bias0"]
            for layer in range(1, model.layers):
                h = _ToNarrow.apply(model.activate(h, drop), one[f"weight{layer}"]) + one[f"bias{layer}"]  # type: ignore[no-untyped-call]
            own.append(h)
        if isinstance(inputs.gcn, Identity):  # on which propagation does nothing
            return own
        if isinstance(inputs.gcn, Tensor):
            return [model._spread(inputs) @ h for model, h in zip(models, own, strict=True)]
        start, classes = torch.cat(own, 1), own[0].shape[1]
        alpha = start.new_tensor([model.alpha for model in models]).repeat_interleave(classes)
        returned, h = alpha * start, start
        for _ in range(models[0].hops):
            h = (1 - alpha) * (inputs.gcn @ h) + returned
        return list(h.split(classes, 1))

    def _spread(self, inputs: Inputs) -> Tensor:
        """``(1-α)^K Â^K + α Σ_{k<K} (1-α)^k Â^k`` [n, n]: all of the propagation as one matrix, made once per graph."""
        return inputs.once(
            (self.name, self.hops, self.alpha),
            lambda: self._propagate(inputs, torch.eye(inputs.num_nodes, dtype=inputs.x.dtype, device=inputs.x.device)),
        )


def _side_by_side(x: Matrix, weights: Sequence[Tensor]) -> list[Tensor]:
    """``x @ weight`` for each of ``weights`` [d, k]; sparse features are gone through once for all narrow ones."""
    width = weights[0].shape[1]
    if not isinstance(x, SparseMatrix) or width > _NARROW or len(weights) == 1:
        return [x @ weight for weight in weights]
    return list((x @ torch.cat(list(weights), 1)).split(width, 1))


class _ToNarrow(torch.autograd.Function):
    """``h @ weight``, [n, k] to [n, few]: BLAS is several times as fast where the long side lies contiguous."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(h, weight)
        return (weight.T.contiguous() @ h.T).T.contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        h, weight = ctx.saved_tensors
        across = grad.T.contiguous()
        return across.T @ weight.T.contiguous(), (across @ h).T
