"""GraphSAGE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from gcond.graph import Inputs
from gcond.graph.column_work import Hops
from gcond.models import pyg_modules
from gcond.models.model import Dropout, Model, Parameters, glorot
from gcond.models.stages import Local, Product, Spread, Stage, Stages


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

    def to_pyg(
        self, parameters: Parameters, *, dropout: float = 0.0, weighted: bool = False, directed: bool = False
    ) -> torch.nn.Module:
        """``SAGEConv`` layers; for ``weighted`` edges, which these pass over, ``GraphConv`` on each edge's share."""
        from torch_geometric.nn import GraphConv, SAGEConv

        layers = []
        for layer in range(self.layers):
            weight, bias, own = (parameters[f"{part}{layer}"] for part in ("weight", "bias", "own"))
            conv = GraphConv(*weight.shape, aggr="add") if weighted else SAGEConv(*weight.shape)
            pyg_modules.copy_linear(conv.lin_rel if weighted else conv.lin_l, weight, bias)
            pyg_modules.copy_linear(conv.lin_root if weighted else conv.lin_r, own)
            layers.append((conv, "x, edge_index, share -> x" if weighted else pyg_modules.ON_EDGES))
        first = [(pyg_modules.shares, "x, edge_index, edge_weight -> share")] if weighted else []
        return pyg_modules.stacked(self, layers, dropout, first)

    def stages(self, parameters: Parameters) -> Stages:
        then: list[Stage] = []
        for layer in range(1, self.layers):
            width = len(parameters[f"bias{layer}"])
            then += [self._up_to(layer, parameters), Spread(Hops(1), width, "mean")]
        last = parameters[f"bias{self.layers - 1}"]
        end = Local(lambda h: _summed(h, last), len(last), 2 * len(last))
        return Stages((Product(parameters["weight0"], 1, "mean"), Product(parameters["own0"])), (*then, end))

    def _up_to(self, layer: int, parameters: Parameters) -> Local:
        """From ``[D^-1 A h W | h V]`` of one layer to ``[h W | h V]`` of the next."""
        bias = parameters[f"bias{layer - 1}"]
        weight = torch.cat([parameters[f"weight{layer}"], parameters[f"own{layer}"]], 1)
        widest = max(2 * len(bias), weight.shape[1])
        return Local(lambda h: self.activate(_summed(h, bias)) @ weight, weight.shape[1], widest)


def _summed(h: Tensor, bias: Tensor) -> Tensor:
    """``[neighbours | own]`` [b, 2w] to the layer's output [b, w]."""
    neighbours, own = h.split(len(bias), 1)
    return neighbours + bias + own
