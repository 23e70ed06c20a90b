"""GCN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gcond.graph import Inputs
from gcond.models.model import Dropout, Model, Parameters


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
