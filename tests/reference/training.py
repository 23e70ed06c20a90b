"""The evaluation recipe as its paper's script has it: PyG layers, one run, one epoch after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv

from gcond.graph.inputs import Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.linalg.sparse import Identity, SparseMatrix


@dataclass
class Course:
    """What one run of the literal loop went through."""

    parameters: list[dict[str, Tensor]] = field(default_factory=list)
    """After each epoch, named as gcond names them."""
    val_accuracy: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    """On the training nodes, before each epoch's step."""


def edges(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """``edge_index`` and ``edge_weight`` in PyG's order."""
    adjacency = inputs.adjacency
    if isinstance(adjacency, Identity):
        return torch.empty(2, 0, dtype=torch.long), torch.empty(0)
    if isinstance(adjacency, SparseMatrix):
        return torch.stack([adjacency.indices.long(), adjacency.row_index]), adjacency.values
    target, source = adjacency.nonzero(as_tuple=True)
    return torch.stack([source, target]), adjacency[target, source]


def dense(inputs: Inputs) -> Tensor:
    return inputs.x.to_dense() if isinstance(inputs.x, SparseMatrix) else inputs.x


class LiteralGCN(torch.nn.Module):
    """Two GCNConv layers with ReLU between them."""

    def __init__(self, initial: dict[str, Tensor]) -> None:
        super().__init__()
        sizes = [tuple(initial[f"weight{layer}"].shape) for layer in range(2)]
        self.layers = torch.nn.ModuleList(GCNConv(rows, columns) for rows, columns in sizes)
        with torch.no_grad():
            for i, layer in enumerate(self.layers):
                layer.lin.weight.copy_(initial[f"weight{i}"].T)
                layer.bias.copy_(initial[f"bias{i}"])

    def forward(self, inputs: Inputs) -> Tensor:
        edge_index, weight = edges(inputs)
        hidden = self.layers[0](dense(inputs), edge_index, weight).relu()
        return self.layers[1](hidden, edge_index, weight)

    def snapshot(self) -> dict[str, Tensor]:
        named = {}
        for i, layer in enumerate(self.layers):
            named[f"weight{i}"] = layer.lin.weight.detach().T.clone()
            named[f"bias{i}"] = layer.bias.detach().clone()
        return named


@torch.no_grad()
def literal_gcn(parameters: dict[str, Tensor], inputs: Inputs) -> Tensor:
    """Class scores [R, n, C] of stacked two-layer GCN parameters, run by run."""
    runs = len(parameters["weight0"])
    return torch.stack([LiteralGCN({k: t[run] for k, t in parameters.items()})(inputs) for run in range(runs)])


def literal_fit(
    initial: dict[str, Tensor],
    train: LabelledView,
    val: LabelledView,
    *,
    epochs: int,
    lr: float,
    weight_decay: float,
    lowered_after: int | None = None,
) -> Course:
    """Adam; at half-way, or as told, a new Adam with a tenth of the rate. Validation accuracy after every epoch."""
    turn = epochs // 2 if lowered_after is None else lowered_after
    model = LiteralGCN(initial)
    course = Course()
    optimiser = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
    for epoch in range(epochs):
        if epoch == turn and epoch > 0:
            optimiser = torch.optim.Adam(model.parameters(), lr=lr * 0.1, weight_decay=weight_decay)
        optimiser.zero_grad()
        loss = F.cross_entropy(model(train.inputs)[train.nodes], train.y)
        course.loss.append(float(loss.detach()))
        loss.backward()
        optimiser.step()
        course.parameters.append(model.snapshot())
        with torch.no_grad():
            right = model(val.inputs)[val.nodes].argmax(1) == val.y
        course.val_accuracy.append(float(right.double().mean()))
    return course
