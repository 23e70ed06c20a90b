"""A few rows of propagated features, from the side of their nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from gcond.graph.column_work import ColumnWork
from gcond.graph.inputs import Inputs
from gcond.linalg.sparse import transposed


@torch.no_grad()
def some_rows(inputs: Inputs, nodes: Tensor, work: ColumnWork) -> Tensor:
    r"""The rows ``nodes`` (int64 [m]) of :math:`p(Â) X`, for the polynomial p that ``work`` is: float32 [m, d], dense.

    They are :math:`(p(Â^⊤) E)^⊤ X` with E the indicators of the nodes, so that m columns go through the hops and not d.
    """
    count = len(nodes)
    chosen = torch.zeros(inputs.num_nodes, count, device=nodes.device)
    chosen[nodes, torch.arange(count, device=nodes.device)] = 1
    return (inputs.x.T @ work(transposed(inputs.gcn), chosen)).T
