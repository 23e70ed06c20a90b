"""Every model against PyG's layers with the same weights copied in."""

from __future__ import annotations

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.utils import scatter

from gcond.graph.inputs import Inputs
from gcond.linalg.sparse import Identity
from gcond.models.appnp import APPNP
from gcond.models.cheby import Cheby
from gcond.models.gat import GAT
from gcond.models.gcn import GCN
from gcond.models.mlp import MLP
from gcond.models.model import ACTIVATIONS
from gcond.models.sage import SAGE
from gcond.models.sgc import SGC

CLASSES = 4
WIDE = {"hidden": 9}


def layer_by_layer(model, parameters, x, layer):
    """``layer(l, h)`` for every l, with the model's activation between them."""
    h = layer(0, x)
    for index in range(1, model.layers):
        h = layer(index, ACTIVATIONS[model.activation](h))
    return h


def linear(module, weight, bias=None):
    module.weight.data = weight.T.clone()
    if bias is not None:
        module.bias.data = bias.clone()


def perceptron(model, p, x):
    widths = [x.shape[1], *[model.hidden] * (model.layers - 1), CLASSES]
    net = pyg.MLP(widths, norm=None, act=ACTIVATIONS[model.activation], plain_last=True).double()
    for index, module in enumerate(net.lins):
        linear(module, p[f"weight{index}"], p[f"bias{index}"])
    return net(x)


def oracle_mlp(model, p, x, edge_index, edge_weight):
    return perceptron(model, p, x)


def oracle_gcn(model, p, x, edge_index, edge_weight):
    def layer(index, h):
        conv = pyg.GCNConv(h.shape[1], p[f"bias{index}"].numel()).double()
        linear(conv.lin, p[f"weight{index}"])
        conv.bias.data = p[f"bias{index}"]
        return conv(h, edge_index, edge_weight)

    return layer_by_layer(model, p, x, layer)


def oracle_sgc(model, p, x, edge_index, edge_weight):
    if model.layers == 1:
        conv = pyg.SGConv(x.shape[1], CLASSES, K=model.hops).double()
        linear(conv.lin, p["weight0"], p["bias0"])
        return conv(x, edge_index, edge_weight)
    return pyg.APPNP(model.hops, alpha=0.0)(perceptron(model, p, x), edge_index, edge_weight)


def oracle_appnp(model, p, x, edge_index, edge_weight):
    return pyg.APPNP(model.hops, model.alpha)(perceptron(model, p, x), edge_index, edge_weight)


def oracle_sage(model, p, x, edge_index, edge_weight):
    if bool((edge_weight == 1).all()):

        def layer(index, h):
            conv = pyg.SAGEConv(h.shape[1], p[f"bias{index}"].numel()).double()
            linear(conv.lin_l, p[f"weight{index}"], p[f"bias{index}"])
            linear(conv.lin_r, p[f"own{index}"])
            return conv(h, edge_index)
    else:
        total = scatter(edge_weight, edge_index[1], dim_size=len(x))
        share = edge_weight / total[edge_index[1]]

        def layer(index, h):
            conv = pyg.GraphConv(h.shape[1], p[f"bias{index}"].numel(), aggr="add").double()
            linear(conv.lin_rel, p[f"weight{index}"], p[f"bias{index}"])
            linear(conv.lin_root, p[f"own{index}"])
            return conv(h, edge_index, share)

    return layer_by_layer(model, p, x, layer)


def oracle_cheby(model, p, x, edge_index, edge_weight):
    def layer(index, h):
        conv = pyg.ChebConv(h.shape[1], p[f"bias{index}"].numel(), K=model.order, normalization="sym").double()
        for k, module in enumerate(conv.lins):
            linear(module, p[f"weight{index}.{k}"])
        conv.bias.data = p[f"bias{index}"]
        return conv(h, edge_index, edge_weight, lambda_max=torch.tensor(2.0, dtype=h.dtype))

    return layer_by_layer(model, p, x, layer)


def oracle_gat(model, p, x, edge_index, edge_weight):
    def layer(index, h):
        last = index == model.layers - 1
        heads, width = (1, CLASSES) if last else (model.heads, model.hidden)
        conv = pyg.GATConv(h.shape[1], width, heads=heads, concat=not last).double()
        linear(conv.lin, p[f"weight{index}"])
        conv.att_src.data = p[f"source{index}"][None]
        conv.att_dst.data = p[f"target{index}"][None]
        conv.bias.data = p[f"bias{index}"]
        return conv(h, edge_index)

    return layer_by_layer(model, p, x, layer)


ORACLES = {
    MLP: oracle_mlp,
    GCN: oracle_gcn,
    SGC: oracle_sgc,
    SAGE: oracle_sage,
    APPNP: oracle_appnp,
    Cheby: oracle_cheby,
    GAT: oracle_gat,
}
CASES = [
    *[cls(layers=layers, **WIDE) for cls in ORACLES for layers in (1, 2, 3)],
    *[cls(activation=name, **WIDE) for cls in ORACLES for name in ("sigmoid", "softplus", "elu", "relu6")],
    SGC(hops=1),
    SGC(hops=4),
    SGC(layers=2, hops=3, activation="tanh", **WIDE),
    APPNP(hops=3, alpha=0.5, **WIDE),
    APPNP(hops=1, alpha=0.0, **WIDE),
    APPNP(hops=2, alpha=1.0, **WIDE),
    *[Cheby(order=order, layers=layers, **WIDE) for order in (1, 3, 4, 5) for layers in (1, 2)],
    GAT(heads=1, hidden=5),
    GAT(heads=3, hidden=2, layers=4),
]


@torch.no_grad()
def assert_same(model, graph, make_parameters, *, inputs=None, edges=None):
    p = make_parameters(model, graph.x.shape[1], CLASSES, 1, torch.float64)
    edge_index, edge_weight = edges or (graph.edge_index, graph.edge_weight)
    expected = ORACLES[type(model)](model, p, graph.x, edge_index, edge_weight)
    found = model.logits(p, inputs or graph.inputs())
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("model", CASES, ids=repr)
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("adjacency", ["dense", "sparse"])
def test_equals_pyg_on_a_weighted_graph(model, adjacency, features, make_small, make_parameters):
    graph = make_small()
    assert_same(model, graph, make_parameters, inputs=graph.inputs(adjacency, features))


@pytest.mark.parametrize("cls", ORACLES)
@pytest.mark.parametrize("density", [0.05, 0.9])
def test_equals_pyg_on_unit_weights(cls, density, make_small, make_parameters):
    graph = make_small(density=density).unit()  # 0.9: where attention is over all pairs
    for adjacency in ("dense", "sparse"):
        assert_same(cls(**WIDE), graph, make_parameters, inputs=graph.inputs(adjacency))


@pytest.mark.parametrize("cls", [GCN, SGC, SAGE, APPNP, GAT])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("adjacency", ["dense", "sparse"])
def test_rows_are_targets_on_a_directed_graph(cls, weighted, adjacency, make_small, make_parameters):
    graph = make_small(directed=True)
    graph = graph if weighted else graph.unit()
    assert not torch.equal(graph.dense, graph.dense.T)
    assert_same(cls(**WIDE), graph, make_parameters, inputs=graph.inputs(adjacency))


@pytest.mark.parametrize("cls", [GCN, SGC, SAGE, APPNP, GAT])
@pytest.mark.parametrize("layers", [1, 2])
def test_identity_is_one_self_loop_a_node(cls, layers, make_small, make_parameters):
    graph = make_small()
    loops = torch.arange(len(graph.x)).repeat(2, 1), torch.ones(len(graph.x), dtype=torch.float64)
    inputs = Inputs(graph.x, Identity())
    assert_same(cls(layers=layers, **WIDE), graph, make_parameters, inputs=inputs, edges=loops)


def test_attention_survives_scores_far_apart(make_small, make_parameters):
    """exp of the raw scores would overflow, and exp of scores below a global maximum would all be zero."""
    graph = make_small()
    graph.x[:5] *= 1e4
    model = GAT(hidden=4, heads=2)
    p = make_parameters(model, graph.x.shape[1], CLASSES, 1, torch.float64)
    found = [model.logits(p, graph.inputs(adjacency)) for adjacency in ("sparse", "dense")]
    expected = oracle_gat(model, p, graph.x, graph.edge_index, None)
    assert torch.isfinite(expected).all()
    for one in found:
        torch.testing.assert_close(one, expected, rtol=1e-9, atol=1e-9)
