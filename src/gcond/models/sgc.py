"""SGC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gcond.graph import Inputs
from gcond.graph.inputs import Chain
from gcond.linalg.sparse import Matrix
from gcond.models.model import Dropout, Model, Parameters


@dataclass(frozen=True)
class SGC(Model):
    r"""Simple graph convolution: propagation without anything in between.

    .. math:: Â^K X W + b \quad\text{or, with more layers,}\quad Â^K \,\mathrm{MLP}(X), \quad Â = D^{-½}(A + I)D^{-½}

    Features [n, d] to class scores [n, C]; one layer equals ``torch_geometric.nn.SGConv``, where
    ``Â^K X`` does not change while the weights do.
    """

    name: ClassVar[str] = "sgc"
    citation: ClassVar[str] = "Wu et al., Simplifying Graph Convolutional Networks, ICML 2019"
    counts: ClassVar[tuple[str, ...]] = (*Model.counts, "hops")

    layers: int = 1
    """Linear layers before the propagation, with the activation between them."""
    hops: int = 2
    """Propagations K (the paper's 2)."""

    @property
    def reach(self) -> int:
        return self.hops

    @property
    def precomputed(self) -> int:
        return self.hops if self.layers == 1 else 0

    def linear_in(self, inputs: Inputs) -> Matrix | Chain | None:
        return inputs.features("gcn", self.hops) if self.layers == 1 else None

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        if self.layers == 1:
            return self.stack(parameters, inputs.features("gcn", self.hops), dropout)
        h = self.stack(parameters, inputs.x, dropout)
        for _ in range(self.hops):
            h = inputs.gcn @ h
        return h
