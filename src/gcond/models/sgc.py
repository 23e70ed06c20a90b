"""SGC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcond.config.setting_ranges import Range, SettingRange
from gcond.graph import Inputs
from gcond.graph.column_work import Hops
from gcond.graph.inputs import Chain
from gcond.linalg.sparse import Matrix
from gcond.models import pyg_modules
from gcond.models.model import Dropout, Model, Parameters
from gcond.models.stages import Product, Spread, Stages


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
    ranges: ClassVar[Mapping[str, SettingRange]] = {"hops": Range(1, 4)}

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

    def to_pyg(
        self, parameters: Parameters, *, dropout: float = 0.0, weighted: bool = False, directed: bool = False
    ) -> torch.nn.Module:
        """``SGConv``; with more layers an ``MLP`` and ``APPNP`` that never returns."""
        from torch_geometric.nn import APPNP, SGConv

        if self.layers > 1:
            spread = (APPNP(self.hops, alpha=0.0), pyg_modules.ON_WEIGHTED_EDGES)
            return pyg_modules.sequential([pyg_modules.perceptron(self, parameters, dropout), spread])
        conv = SGConv(*parameters["weight0"].shape, K=self.hops)
        pyg_modules.copy_linear(conv.lin, parameters["weight0"], parameters["bias0"])
        return pyg_modules.sequential([(conv, pyg_modules.ON_WEIGHTED_EDGES)])

    def stages(self, parameters: Parameters) -> Stages:
        layers = self.hidden_layers(parameters)
        if self.layers == 1:
            return Stages((Product(parameters["weight0"], self.hops),), (layers,))
        return Stages((Product(parameters["weight0"]),), (layers, Spread(Hops(self.hops), layers.width)))
