"""GCN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from gcond.inputs import Inputs
from gcond.models.base import Dropout, Model, Parameters, add_bias, glorot
from gcond.sparse import matmul


@dataclass(frozen=True)
class GCN(Model):
    r"""Graph convolutional network.

    .. math:: H^{(l+1)} = σ(Â H^{(l)} W^{(l)} + b^{(l)}), \quad Â = D^{-½}(A + I)D^{-½}

    Features [n, d] to class scores [n, C]; equal to stacked ``torch_geometric.nn.GCNConv``.
    """

    name: ClassVar[str] = "gcn"
    citation: ClassVar[str] = "Kipf and Welling, Semi-Supervised Classification with GCNs, ICLR 2017"

    def init(self, features: int, classes: int, generator: Generator) -> Parameters:
        parameters = {}
        for layer, (rows, columns) in enumerate(self.widths(features, classes)):
            parameters[f"weight{layer}"] = glorot(rows, columns, generator)
            parameters[f"bias{layer}"] = torch.zeros(columns)
        return parameters

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        # ÂX does not change while weights do: the first layer propagates it once.
        h = matmul(inputs.features("gcn"), parameters["weight0"])
        h = add_bias(h, parameters["bias0"])
        for layer in range(1, self.layers):
            h = self.activate(h)
            h = dropout(h) if dropout else h
            h = matmul(inputs.gcn, matmul(h, parameters[f"weight{layer}"]))
            h = add_bias(h, parameters[f"bias{layer}"])
        return h
