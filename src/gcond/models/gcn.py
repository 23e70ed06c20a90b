"""GCN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcond.graph import Inputs
from gcond.graph.column_work import Hops
from gcond.models import pyg_modules
from gcond.models.model import Dropout, Model, Parameters
from gcond.models.stages import Local, Product, Spread, Stage, Stages


@dataclass(frozen=True)
class GCN(Model):
    r"""Graph convolutional network.

    .. math:: H^{(l+1)} = σ(Â H^{(l)} W^{(l)} + b^{(l)}), \quad Â = D^{-½}(A + I)D^{-½}

    Features [n, d] to class scores [n, C]; equal to stacked ``torch_geometric.nn.GCNConv``.
    """

    name: ClassVar[str] = "gcn"
    citation: ClassVar[str] = "Kipf and Welling, Semi-Supervised Classification with GCNs, ICLR 2017"

    @property
    def precomputed(self) -> int:
        return 1

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        return self.stack(parameters, inputs.features("gcn"), dropout, inputs.gcn)

    def to_pyg(
        self, parameters: Parameters, *, dropout: float = 0.0, weighted: bool = False, directed: bool = False
    ) -> torch.nn.Module:
        """``GCNConv`` layers."""
        from torch_geometric.nn import GCNConv

        layers = []
        for layer in range(self.layers):
            weight = parameters[f"weight{layer}"]
            conv = GCNConv(*weight.shape)
            pyg_modules.copy_linear(conv.lin, weight)
            pyg_modules.copy_into(conv.bias, parameters[f"bias{layer}"])
            layers.append((conv, pyg_modules.ON_WEIGHTED_EDGES))
        return pyg_modules.stacked(self, layers, dropout)

    def stages(self, parameters: Parameters) -> Stages:
        then: list[Stage] = []
        for layer in range(1, self.layers):
            then += [self._up_to(layer, parameters), Spread(Hops(1), parameters[f"weight{layer}"].shape[1])]
        last = parameters[f"bias{self.layers - 1}"]
        return Stages((Product(parameters["weight0"], 1),), (*then, Local(lambda h: h + last, len(last), len(last))))

    def _up_to(self, layer: int, parameters: Parameters) -> Local:
        """From one product with the graph to the next: ``h ↦ σ(h + b) W``."""
        bias, weight = parameters[f"bias{layer - 1}"], parameters[f"weight{layer}"]
        return Local(lambda h: self.activate(h + bias) @ weight, weight.shape[1], max(weight.shape))
