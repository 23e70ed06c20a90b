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


def chebyshev(weights: Sequence[Tensor], bias: Tensor) -> nn.Module:
    """``ChebConv`` of weights [in, out], one for each polynomial."""
    from torch_geometric.nn import ChebConv

    conv: Any = ChebConv(*weights[0].shape, K=len(weights), normalization="sym")
    for linear, weight in zip(conv.lins, weights, strict=True):
        copy_linear(linear, weight)
    copy_into(conv.bias, bias)
    found: nn.Module = conv
    return found


def chebyshev_recurrence(weights: Sequence[Tensor], bias: Tensor) -> nn.Module:
    """The same for one-way edges, where degrees are of the edges that arrive: T_k by ``SimpleConv``, summed."""
    from torch_geometric.nn import Linear, SimpleConv

    parts: list[Layer] = [(laplacian_weights, "x, edge_index, edge_weight -> weight")] if len(weights) > 1 else []
    for k, weight in enumerate(weights):
        linear = Linear(*weight.shape, bias=k == 0)
        copy_linear(linear, weight, bias if k == 0 else None)
        if k == 0:
            parts.append((linear, "x -> total"))
            continue
        before = "x" if k == 1 else f"t{k - 1}"
        parts.append((SimpleConv(aggr="sum"), f"{before}, edge_index, weight -> t{k}"))
        if k > 1:
            parts.append((_twice_less, f"t{k}, {'x' if k == 2 else f't{k - 2}'} -> t{k}"))
        parts += [(linear, f"t{k} -> term"), (torch.add, "total, term -> total")]
    return sequential(parts)


def _twice_less(spread: Tensor, before: Tensor) -> Tensor:
    return 2 * spread - before


def laplacian_weights(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    """The weights of L̂ = -D^-½ A D^-½, where D has the weight of the edges that arrive at a node: float [E]."""
    weight, total = _arriving(x, edge_index, edge_weight)
    scale = torch.where(total > 0, total, torch.inf).pow(-0.5)
    return -scale[edge_index[0]] * weight * scale[edge_index[1]]


def shares(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    """Each edge's share of the weight of all edges to its target: float [E]."""
    weight, total = _arriving(x, edge_index, edge_weight)
    return weight / total[edge_index[1]]


def _arriving(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """The weight of each edge [E], 1 where nothing is said, and of all that arrive at each node [n]."""
    weight = x.new_ones(edge_index.shape[1]) if edge_weight is None else edge_weight
    total = torch.zeros(len(x), dtype=weight.dtype, device=weight.device)
    return weight, total.index_add(0, edge_index[1], weight)
