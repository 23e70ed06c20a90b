"""A graph to compute on, and the labelled nodes that count in it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcond.graph.inputs import Chain, Form, Inputs
from gcond.linalg.sparse import dense


@dataclass(frozen=True, eq=False)
class LabelledView:
    """A graph to compute on, and the labelled nodes that count in it.

    Training, validation and test are each a view; so is a condensed graph. Whoever is given a view
    cannot read more than it shows.
    """

    inputs: Inputs
    nodes: Tensor
    """int64 [m]: the rows of the inputs that are labelled here."""
    y: Tensor
    """int64 [m] class ids, or float32 [m, C] soft labels, of ``nodes``."""
    source_index: Tensor
    """int64 [n]: which node of the source graph each row of the inputs is."""

    def focus(self, reach: int, precomputed: int = 0) -> LabelledView:
        """The same labelled nodes on no more of the graph than outputs that look ``reach`` edges away depend on.

        ``precomputed`` of these hops are taken on the features alone, which the rows kept bring along.
        """
        inputs, rows = self.inputs.around(self.nodes, reach, precomputed)
        if inputs is self.inputs:
            return self
        return LabelledView(inputs, torch.searchsorted(rows, self.nodes), self.y, self.source_index[rows.cpu()])

    def propagated(self, hops: int, form: Form = "gcn") -> Tensor:
        """The labelled nodes' rows of ``S^hops X``, dense: [m, d]."""
        focused = self.focus(hops, hops)
        features = focused.inputs.features(form, hops)
        if isinstance(features, Chain):
            return features.rows(focused.nodes)
        return dense(features)[focused.nodes]

    def by_class(self) -> LabelledView:
        """The same view with its labelled nodes in order of class."""
        order = self.y.argsort(stable=True)
        return LabelledView(self.inputs, self.nodes[order], self.y[order], self.source_index)

    def detached(self) -> LabelledView:
        """The same view of :meth:`Inputs.detached`."""
        return LabelledView(self.inputs.detached(), self.nodes, self.y, self.source_index)

    def to(self, device: torch.device | str) -> LabelledView:
        return LabelledView(self.inputs.to(device), self.nodes.to(device), self.y.to(device), self.source_index)
