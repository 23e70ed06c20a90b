"""ChebNet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from gcond.graph import Inputs
from gcond.linalg.sparse import Operator
from gcond.models.model import Dropout, Model, Parameters, glorot


@dataclass(frozen=True)
class Cheby(Model):
    r"""Chebyshev spectral convolutions of the scaled Laplacian, with λ = 2.

    .. math:: H^{(l+1)} = σ\Big(\sum_{k<K} T_k(L̂) H^{(l)} W^{(l)}_k + b^{(l)}\Big), \quad L̂ = -D^{-½} A D^{-½}

    with ``T_0 = 1``, ``T_1 = L̂`` and ``T_k = 2 L̂ T_{k-1} - T_{k-2}``. Features [n, d] to class scores
    [n, C]; equal to stacked ``torch_geometric.nn.ChebConv(normalization="sym")`` with ``lambda_max=2``.
    """

    name: ClassVar[str] = "cheby"
    citation: ClassVar[str] = "Defferrard et al., CNNs on Graphs with Fast Localized Spectral Filtering, NeurIPS 2016"
    counts: ClassVar[tuple[str, ...]] = (*Model.counts, "order")

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
