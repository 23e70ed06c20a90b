"""GraphSAGE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Generator, Tensor

from gcond.graph import Inputs
from gcond.models.model import Dropout, Model, Parameters, glorot


@dataclass(frozen=True)
class SAGE(Model):
    r"""GraphSAGE with the mean aggregator; edge weights weigh the mean.

    .. math:: H^{(l+1)} = σ(D^{-1} A H^{(l)} W^{(l)} + b^{(l)} + H^{(l)} V^{(l)})

    Features [n, d] to class scores [n, C]; equal to stacked ``torch_geometric.nn.SAGEConv`` on unit
    weights. A node without neighbours has only its own part.
    """

    name: ClassVar[str] = "sage"
    citation: ClassVar[str] = "Hamilton et al., Inductive Representation Learning on Large Graphs, NeurIPS 2017"

    @property
    def precomputed(self) -> int:
        return 1

    def init(self, features: int, classes: int, generator: Generator) -> Parameters:
        parameters = super().init(features, classes, generator)
        for layer, width in enumerate(self.widths(features, classes)):
            parameters[f"own{layer}"] = glorot(*width, generator)
        return parameters

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        h = inputs.features("mean") @ parameters["weight0"]
        h = h + parameters["bias0"] + inputs.x @ parameters["own0"]
        for layer in range(1, self.layers):
            h = self.activate(h, dropout)
            neighbours = inputs.mean @ (h @ parameters[f"weight{layer}"])
            h = neighbours + parameters[f"bias{layer}"] + h @ parameters[f"own{layer}"]
        return h
