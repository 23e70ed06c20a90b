"""APPNP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Generator, Tensor

from gcond.graph.inputs import Inputs
from gcond.linalg.sparse import matmul
from gcond.models.model import Dropout, Model, Parameters, linear_parameters


@dataclass(frozen=True)
class APPNP(Model):
    r"""Predict with an MLP, then propagate with a chance ``α`` to return, as personalised PageRank does.

    .. math:: Z^{(0)} = \mathrm{MLP}(X), \quad Z^{(k+1)} = (1 - α) Â Z^{(k)} + α Z^{(0)}, \quad Â = D^{-½}(A + I)D^{-½}

    Features [n, d] to class scores [n, C]; equal to ``torch_geometric.nn.APPNP`` after an ``MLP``.
    """

    name: ClassVar[str] = "appnp"
    citation: ClassVar[str] = "Gasteiger et al., Predict then Propagate, ICLR 2019"

    hops: int = 10
    """Propagations K (the paper's 10)."""
    alpha: float = 0.1
    """Chance to return to the node's own prediction (the paper's 0.1)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hops < 1:
            raise ValueError("hops must be at least 1")
        if not 0 <= self.alpha <= 1:
            raise ValueError("alpha must be from 0 to 1")

    @property
    def reach(self) -> int:
        return self.hops

    def init(self, features: int, classes: int, generator: Generator) -> Parameters:
        return linear_parameters(self.widths(features, classes), generator)

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        own = self.stack(parameters, inputs.x, dropout)
        h = own
        for _ in range(self.hops):
            h = (1 - self.alpha) * matmul(inputs.gcn, h) + self.alpha * own
        return h
