"""GAT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from gcond.config.setting_ranges import Choices, SettingRange
from gcond.graph import Inputs
from gcond.linalg.sparse import Operator
from gcond.models import pyg_modules
from gcond.models.model import Activation, Dropout, Model, Parameters, glorot
from gcond.models.stages import Attend, Local, Product, Stage, Stages

SLOPE = 0.2
# Where at least this share of all pairs are edges, a full matrix of scores is quicker than a list of edges.
DENSE_FROM = 0.25


@dataclass(frozen=True)
class GAT(Model):
    r"""Graph attention: every node weighs its neighbours and itself, once per head.

    .. math:: h_i' = σ\Big(\big\Vert_{m} \sum_j α^m_{ij} W_m h_j + b\Big), \quad
        α^m_{ij} = \mathrm{softmax}_j \, \mathrm{LeakyReLU}(t_m^⊤ W_m h_i + s_m^⊤ W_m h_j)

    over the edges j → i and the node itself. Heads are concatenated in hidden layers; the last layer has
    one head of C columns. Features [n, d] to class scores [n, C]; equal to stacked
    ``torch_geometric.nn.GATConv``. An edge's weight says only that it is there.
    """

    name: ClassVar[str] = "gat"
    citation: ClassVar[str] = "Veličković et al., Graph Attention Networks, ICLR 2018"
    recipe: ClassVar[Mapping[str, Any]] = {"epochs": 3000, "lr": 1e-3}
    counts: ClassVar[tuple[str, ...]] = (*Model.counts, "heads")
    ranges: ClassVar[Mapping[str, SettingRange]] = {"heads": Choices((4, 8, 16))}

    hidden: int = 16
    """Width of every head in a hidden layer (released scripts)."""
    activation: Activation = "elu"
    """Between layers (the paper's choice)."""
    heads: int = 16
    """Heads of every hidden layer (released scripts)."""

    def init(self, features: int, classes: int, generator: Generator) -> Parameters:
        parameters = {}
        for layer in range(self.layers):
            rows = self.heads * self.hidden if layer else features
            heads, width = (self.heads, self.hidden) if layer + 1 < self.layers else (1, classes)
            parameters[f"weight{layer}"] = glorot(rows, heads * width, generator)
            parameters[f"source{layer}"] = glorot(heads, width, generator)
            parameters[f"target{layer}"] = glorot(heads, width, generator)
            parameters[f"bias{layer}"] = torch.zeros(heads * width)
        return parameters

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        h = self._layer(0, parameters, inputs, inputs.x)
        for layer in range(1, self.layers):
            h = self._layer(layer, parameters, inputs, self.activate(h, dropout))
        return h

    def to_pyg(
        self, parameters: Parameters, *, dropout: float = 0.0, weighted: bool = False, directed: bool = False
    ) -> torch.nn.Module:
        """``GATConv`` layers."""
        from torch_geometric.nn import GATConv

        layers = []
        for layer in range(self.layers):
            weight, source, target = (parameters[f"{part}{layer}"] for part in ("weight", "source", "target"))
            heads, width = source.shape
            conv = GATConv(len(weight), width, heads=heads)
            pyg_modules.copy_linear(conv.lin, weight)
            pyg_modules.copy_into(conv.att_src, source)
            pyg_modules.copy_into(conv.att_dst, target)
            pyg_modules.copy_into(conv.bias, parameters[f"bias{layer}"])
            layers.append((conv, pyg_modules.ON_EDGES))
        return pyg_modules.stacked(self, layers, dropout)

    def _layer(self, layer: int, parameters: Parameters, inputs: Inputs, h: Operator) -> Tensor:
        attend = _attend_pairs if len(inputs.edges[0]) >= DENSE_FROM * inputs.num_nodes**2 else _attend_edges
        z = h @ parameters[f"weight{layer}"]
        out = attend(z, parameters[f"source{layer}"], parameters[f"target{layer}"], inputs)
        return out + parameters[f"bias{layer}"]

    def stages(self, parameters: Parameters) -> Stages:
        then: list[Stage] = []
        for layer in range(self.layers):
            then += [self._scored(layer, parameters), Attend(len(parameters[f"source{layer}"]), SLOPE)]
        last = parameters[f"bias{self.layers - 1}"]
        return Stages((Product(parameters["weight0"]),), (*then, Local(lambda h: h + last, len(last), len(last))))

    def _scored(self, layer: int, parameters: Parameters) -> Local:
        """From the sums of the layer before, or ``X W``, to ``[z | to | off]``."""
        target, source = parameters[f"target{layer}"], parameters[f"source{layer}"]

        def scored(h: Tensor) -> Tensor:
            if layer:
                h = self.activate(h + parameters[f"bias{layer - 1}"]) @ parameters[f"weight{layer}"]
            z = _by_head(h, len(source))
            return torch.cat([h, _score(z, target).T, _score(z, source).T], 1)

        width = source.numel() + 2 * len(source)
        return Local(scored, width, width + (len(parameters[f"weight{layer}"]) if layer else 0))


def _attend_pairs(z: Tensor, source: Tensor, target: Tensor, inputs: Inputs) -> Tensor:
    """Attention over all pairs of nodes, those without an edge masked: ``z`` [n, heads · k] to the same."""
    z = _by_head(z, len(source))
    scores = F.leaky_relu(_score(z, target)[:, :, None] + _score(z, source)[:, None, :], SLOPE)
    return _side_by_side((scores + inputs.edge_mask.to(z.dtype)).softmax(-1) @ z)


def _attend_edges(z: Tensor, source: Tensor, target: Tensor, inputs: Inputs) -> Tensor:
    """Attention over the listed edges: ``z`` [n, heads · k] to the same."""
    z = _by_head(z, len(source))
    pattern = inputs.pattern
    to, off = _score(z, target), _score(z, source)
    with torch.no_grad():
        # LeakyReLU rises, so a node's highest score is the one of its highest neighbour.
        highest = torch.segment_reduce(off.T.contiguous()[pattern.source], "max", offsets=pattern.offsets).T
        highest = F.leaky_relu(to + highest, SLOPE)
    scores = F.leaky_relu(to.index_select(1, pattern.target) + off.index_select(1, pattern.source), SLOPE)
    values = (scores - highest.index_select(1, pattern.target)).exp()
    # A column of ones brings the sum that the softmax divides by along with the weighted sum.
    sums = pattern.weigh(values, F.pad(z, (0, 1), value=1.0))
    return _side_by_side(sums[..., :-1] / sums[..., -1:])


def _by_head(z: Tensor, heads: int) -> Tensor:
    """[n, heads · k] to [heads, n, k]."""
    return z.view(len(z), heads, -1).transpose(0, 1)


def _side_by_side(z: Tensor) -> Tensor:
    """[heads, n, k] to [n, heads · k]."""
    return z.transpose(0, 1).flatten(1)


def _score(z: Tensor, attention: Tensor) -> Tensor:
    """[heads, n, k] · [heads, k] to [heads, n]."""
    return (z * attention[:, None]).sum(-1)
