"""ChebNet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor

from gcond.config.setting_ranges import Range, SettingRange
from gcond.graph import Inputs
from gcond.graph.column_work import Hops
from gcond.linalg.sparse import Operator
from gcond.models import pyg_modules
from gcond.models.model import Dropout, Model, Parameters, glorot
from gcond.models.stages import Local, Product, Spread, Stage, Stages


@dataclass(frozen=True)
class Cheby(Model):
    r"""Chebyshev spectral convolutions of the scaled Laplacian, with λ = 2.

    .. math:: H^{(l+1)} = σ\Big(\sum_{k<K} T_k(L̂) H^{(l)} W^{(l)}_k + b^{(l)}\Big), \quad L̂ = -D^{-½} A D^{-½}

    with ``T_0 = 1``, ``T_1 = L̂`` and ``T_k = 2 L̂ T_{k-1} - T_{k-2}``. Features [n, d] to class scores
    [n, C]; equal to stacked ``torch_geometric.nn.ChebConv(normalization="sym")`` with ``lambda_max=2`` where every edge
    has its reverse. Of one-way edges D counts those that arrive at a node, as everywhere here, and PyG's layer those
    that leave it.
    """

    name: ClassVar[str] = "cheby"
    citation: ClassVar[str] = "Defferrard et al., CNNs on Graphs with Fast Localized Spectral Filtering, NeurIPS 2016"
    counts: ClassVar[tuple[str, ...]] = (*Model.counts, "order")
    ranges: ClassVar[Mapping[str, SettingRange]] = {"order": Range(2, 4)}

    order: int = 2
    """Polynomials K: 1 looks at the node alone, 2 at its neighbours too."""

    @property
    def reach(self) -> int:
        return self.layers * (self.order - 1)

    @property
    def precomputed(self) -> int:
        return min(1, self.order - 1)

    def init(self, features: int, classes: int, generator: Generator) -> Parameters:
        parameters = {}
        for layer, (rows, columns) in enumerate(self.widths(features, classes)):
            for k in range(self.order):
                parameters[f"weight{layer}.{k}"] = glorot(rows, columns, generator)
            parameters[f"bias{layer}"] = torch.zeros(columns)
        return parameters

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        h = self._convolve(0, parameters, inputs, inputs.x)
        for layer in range(1, self.layers):
            h = self._convolve(layer, parameters, inputs, self.activate(h, dropout))
        return h

    def to_pyg(
        self, parameters: Parameters, *, dropout: float = 0.0, weighted: bool = False, directed: bool = False
    ) -> torch.nn.Module:
        """``ChebConv`` layers, which take λ = 2 for a symmetric Laplacian; for ``directed`` edges, whose degrees these
        count at the other end, the recurrence by ``SimpleConv`` and ``Linear``.
        """
        make = pyg_modules.chebyshev_recurrence if directed else pyg_modules.chebyshev
        layers: list[pyg_modules.Layer] = []
        for layer in range(self.layers):
            weights = [parameters[f"weight{layer}.{k}"] for k in range(self.order)]
            layers.append((make(weights, parameters[f"bias{layer}"]), pyg_modules.ON_WEIGHTED_EDGES))
        return pyg_modules.stacked(self, layers, dropout)

    def _convolve(self, layer: int, parameters: Parameters, inputs: Inputs, h: Operator) -> Tensor:
        """``Σ T_k Z_k = Z_0 + L̂ B_1 - B_2`` for ``Z_k = H W_k`` and ``B_k = Z_k + 2 L̂ B_{k+1} - B_{k+2}`` (Clenshaw).

        It propagates the layer's outputs, mostly narrower than its inputs; only the graph's own features
        are propagated before they meet the weights, once.
        """
        weights = [parameters[f"weight{layer}.{k}"] for k in range(self.order)]
        total = h @ weights[0]
        if self.order > 1:
            top = weights[-1]
            spread = inputs.laplacian @ (h @ top) if layer else inputs.features("laplacian") @ top
            following: Tensor | float = h @ top if self.order > 2 else 0.0
            after: Tensor | float = 0.0
            for weight in weights[-2:0:-1]:
                following, after = h @ weight + 2 * spread - after, following
                spread = inputs.laplacian @ following
            total = total + spread - after
        return total + parameters[f"bias{layer}"]

    def stages(self, parameters: Parameters) -> Stages:
        """The same recurrence, its blocks side by side; the first of them is what is spread next."""
        weights = [parameters[f"weight0.{k}"] for k in reversed(range(self.order))]
        first = [Product(weight) for weight in (weights[1:] if self.order == 2 else weights)]
        if self.order > 1:
            first.insert(0, Product(weights[0], 1, "laplacian"))
        then = self._recurrence(weights[0].shape[1])
        for layer in range(1, self.layers):
            then += self._products(layer, parameters)
            then += self._recurrence(len(parameters[f"bias{layer}"]))
        last = parameters[f"bias{self.layers - 1}"]
        return Stages(tuple(first), (*then, Local(partial(self._end, last), len(last), 3 * len(last))))

    def _products(self, layer: int, parameters: Parameters) -> list[Stage]:
        """From the end of one layer to ``[L̂ Z_{K-1} | Z_{K-1} … Z_0]`` of the next, for K = 2 ``[L̂ Z_1 | Z_0]``."""
        weights = [parameters[f"weight{layer}.{k}"] for k in reversed(range(self.order))]
        weight = torch.cat([weights[0], *weights] if self.order > 2 else weights, 1)
        bias = parameters[f"bias{layer - 1}"]
        widest = max(3 * weight.shape[0], weight.shape[1])
        local = Local(lambda h: self.activate(self._end(bias, h)) @ weight, weight.shape[1], widest)
        return [local, Spread(Hops(1), weights[0].shape[1], "laplacian")] if self.order > 1 else [local]

    def _recurrence(self, width: int) -> list[Stage]:
        """From ``[L̂ B_{K-1} | B_{K-1} | Z_{K-2} … Z_0]`` to ``[L̂ B_1 | B_2 | Z_0]``; nothing for K ≤ 2."""
        then: list[Stage] = []
        for k in range(self.order - 2, 0, -1):
            is_top, is_last = k == self.order - 2, k == 1

            def step(h: Tensor, is_top: bool = is_top, is_last: bool = is_last) -> Tensor:
                """``[L̂ B_{k+1} | B_{k+1} | B_{k+2} | Z_k … Z_0]``, whose top has no B before it, to ``[B_k | …]``."""
                spread, following, *rest = h.split(width, 1)
                after = 0.0 if is_top else rest.pop(0)
                found = rest.pop(0) + 2 * spread - after
                return torch.cat([found, *[found] * (not is_last), following, *rest], 1)

            out = (2 + (not is_last) + k) * width
            then += [Local(step, out, out + width), Spread(Hops(1), width, "laplacian")]
        return then

    def _end(self, bias: Tensor, h: Tensor) -> Tensor:
        """From ``[L̂ B_1 | B_2 | Z_0]``, for K = 2 ``[L̂ B_1 | Z_0]`` and for K = 1 ``[Z_0]``, to the layer's output."""
        blocks = h.split(len(bias), 1)
        total = blocks[-1] + bias
        if self.order > 1:
            total = total + blocks[0]
        return total - blocks[1] if self.order > 2 else total
