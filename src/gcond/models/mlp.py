"""MLP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcond.graph import Inputs
from gcond.graph.inputs import Chain
from gcond.linalg.sparse import Matrix
from gcond.models import pyg_modules
from gcond.models.model import Dropout, Model, Parameters
from gcond.models.stages import Product, Stages


@dataclass(frozen=True)
class MLP(Model):
    r"""Multi-layer perceptron: what the features say without the graph.

    .. math:: H^{(l+1)} = σ(H^{(l)} W^{(l)} + b^{(l)})

    Features [n, d] to class scores [n, C]; equal to ``torch_geometric.nn.MLP`` without norm.
    """

    name: ClassVar[str] = "mlp"
    citation: ClassVar[str] = (
        "Rumelhart, Hinton and Williams, Learning Representations by Back-Propagating Errors, 1986"
    )

    @property
    def reach(self) -> int:
        return 0

    def linear_in(self, inputs: Inputs) -> Matrix | Chain | None:
        return inputs.x if self.layers == 1 else None

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        return self.stack(parameters, inputs.x, dropout)

    def to_pyg(
        self, parameters: Parameters, *, dropout: float = 0.0, weighted: bool = False, directed: bool = False
    ) -> torch.nn.Module:
        """``torch_geometric.nn.MLP``."""
        return pyg_modules.sequential([pyg_modules.perceptron(self, parameters, dropout)])

    def stages(self, parameters: Parameters) -> Stages:
        return Stages((Product(parameters["weight0"]),), (self.hidden_layers(parameters),))
