"""Models as modules of PyG: its own layers, with our weights copied in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from gcond.models.model import Model, Parameters

Layer: TypeAlias = tuple[Any, str]
"""A module, and what it is called with: ``x, edge_index -> x``."""

INPUTS = "x, edge_index, edge_weight"
ON_EDGES = "x, edge_index -> x"
ON_WEIGHTED_EDGES = "x, edge_index, edge_weight -> x"
ON_NODES = "x -> x"

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "linear": nn.Identity,
    "softplus": nn.Softplus,
    "leakyrelu": nn.LeakyReLU,
    "relu6": nn.ReLU6,
    "elu": nn.ELU,
}


def sequential(layers: Sequence[Layer]) -> nn.Module:
    """``torch_geometric.nn.Sequential`` of ``layers``, called with x, edge_index and edge_weight; ready to be used."""
    from torch_geometric.nn import Sequential

    module: nn.Module = Sequential(INPUTS, list(layers))
    return module.eval()


def stacked(model: Model, layers: Sequence[Layer], dropout: float, first: Sequence[Layer] = ()) -> nn.Module:
    """``layers`` with the activation of ``model`` and ``dropout`` between them, after what comes ``first``."""
    parts = [*first, layers[0]]
    for layer in layers[1:]:
        parts += [(_ACTIVATIONS[model.activation](), ON_NODES), (nn.Dropout(dropout), ON_NODES), layer]
    return sequential(parts)


def perceptron(model: Model, parameters: Parameters, dropout: float) -> Layer:
    """``torch_geometric.nn.MLP`` with ``weight{layer}`` and ``bias{layer}``."""
    from torch_geometric.nn import MLP

    weights = [parameters[f"weight{layer}"] for layer in range(model.layers)]
    widths = [weights[0].shape[0], *(weight.shape[1] for weight in weights)]
    module = MLP(widths, norm=None, act=_ACTIVATIONS[model.activation](), dropout=dropout, plain_last=True)
    for layer, linear in enumerate(module.lins):
        copy_linear(linear, weights[layer], parameters[f"bias{layer}"])
    return module, ON_NODES


def copy_linear(linear: Any, weight: Tensor, bias: Tensor | None = None) -> None:
    """Give PyG's ``linear`` a weight [in, out] of ours, and a bias if it has one."""
    copy_into(linear.weight, weight.T)
    if bias is not None:
        copy_into(linear.bias, bias)


@torch.no_grad()
def copy_into(parameter: Tensor, values: Tensor) -> None:
    """``values`` as the content of ``parameter``, which has as many."""
    parameter.copy_(values.reshape(parameter.shape))


def shares(x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
    """Each edge's share of the weight of all edges to its target: float [E]."""
    total = torch.zeros(len(x), dtype=edge_weight.dtype, device=edge_weight.device)
    total = total.index_add(0, edge_index[1], edge_weight)
    return edge_weight / total[edge_index[1]]
