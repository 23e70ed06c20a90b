"""MLP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gcond.graph import Inputs
from gcond.graph.inputs import Chain
from gcond.linalg.sparse import Matrix
from gcond.models.model import Dropout, Model, Parameters


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
