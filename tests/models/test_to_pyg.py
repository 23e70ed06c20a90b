"""``Model.to_pyg``: stock layers with the same weights give the same scores on the source's own ``Data``."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch_geometric.nn as pyg

from gcond import models
from gcond.errors import GcondError
from gcond.models.model import ACTIVATIONS, Model

CASES = [
    *[dataclasses.replace(cls(), layers=layers) for cls in models.available().values() for layers in (1, 2, 3)],
    *[models.GCN(activation=name, hidden=7) for name in ACTIVATIONS],
    models.SGC(layers=2, activation="tanh", hidden=7),
    models.APPNP(hops=3, alpha=0.4, activation="elu", hidden=7),
    models.Cheby(order=1),
    models.Cheby(order=4, layers=3, hidden=7),
    models.GAT(heads=3, hidden=2, layers=3),
]
STOCK = {
    "gcn": pyg.GCNConv,
    "sgc": pyg.SGConv,
    "sage": pyg.SAGEConv,
    "appnp": pyg.APPNP,
    "cheby": pyg.ChebConv,
    "gat": pyg.GATConv,
    "mlp": pyg.MLP,
}


def module_and_scores(model, graph, make_parameters, *, dropout=0.0, weighted=False, directed=False):
    parameters = make_parameters(model, graph.num_features, graph.num_classes, 3, torch.float32)
    data = graph.to_pyg()
    module = model.to_pyg(parameters, dropout=dropout, weighted=weighted, directed=directed)
    return module, data, model.logits(parameters, graph.view("train").inputs)


@torch.no_grad()
@pytest.mark.parametrize("model", CASES, ids=repr)
def test_the_scores_are_the_same(model, make_graph, make_parameters):
    module, data, expected = module_and_scores(model, make_graph(seed=2), make_parameters, dropout=0.5)
    torch.testing.assert_close(module(data.x, data.edge_index, data.edge_weight), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", models.available())
def test_weights_of_edges_count_as_they_do_here(name, make_graph, make_parameters):
    graph = make_graph(seed=1, weighted=True)
    module, data, expected = module_and_scores(models.find(name)(), graph, make_parameters, weighted=True)
    torch.testing.assert_close(module(data.x, data.edge_index, data.edge_weight), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", CASES, ids=repr)
def test_one_way_edges_count_as_they_do_here(model, weighted, make_graph, make_parameters):
    graph = make_graph(seed=1, weighted=weighted, directed=True)
    module, data, expected = module_and_scores(model, graph, make_parameters, weighted=weighted, directed=True)
    torch.testing.assert_close(module(data.x, data.edge_index, data.edge_weight), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", models.available())
def test_edges_without_weights_weigh_one(name, make_graph, make_parameters):
    graph = make_graph(seed=1, directed=True)
    module, data, expected = module_and_scores(
        models.find(name)(), graph, make_parameters, weighted=True, directed=True
    )
    assert bool((data.edge_weight == 1).all())
    torch.testing.assert_close(module(data.x, data.edge_index, None), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_sage_on_weights_that_nobody_spoke_of_is_another_model(make_graph, make_parameters):
    module, data, expected = module_and_scores(models.SAGE(), make_graph(weighted=True), make_parameters)
    assert not torch.allclose(module(data.x, data.edge_index, data.edge_weight), expected, atol=1e-3)


@pytest.mark.parametrize("name", models.available())
def test_the_layers_are_stock_ones(name, make_graph, make_parameters):
    module, _, _ = module_and_scores(models.find(name)(), make_graph(), make_parameters)
    assert isinstance(module, pyg.Sequential)
    assert any(type(part) is STOCK[name] for part in module.modules())


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", [name for name in models.available() if name != "sgc"])
def test_dropout_is_there_for_further_training_and_weights_learn(name, directed, make_graph, make_parameters):
    graph = make_graph(directed=directed)
    module, data, _ = module_and_scores(models.find(name)(), graph, make_parameters, dropout=0.5, directed=directed)
    still = [module(data.x, data.edge_index, data.edge_weight) for _ in range(2)]
    assert torch.equal(*still)
    module.train()
    torch.manual_seed(0)
    moving = [module(data.x, data.edge_index, data.edge_weight) for _ in range(2)]
    assert not torch.equal(*moving)
    moving[0].sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_weights_are_copies(make_graph, make_parameters):
    graph, model = make_graph(), models.GCN()
    parameters = make_parameters(model, graph.num_features, graph.num_classes, 3, torch.float32)
    before = {key: tensor.clone() for key, tensor in parameters.items()}
    with torch.no_grad():
        for parameter in model.to_pyg(parameters).parameters():
            parameter.zero_()
    assert all(torch.equal(parameters[key], before[key]) for key in before)


def test_a_model_of_ones_own_must_say_how():
    class Own(Model):
        name = "own"

        def logits(self, parameters, inputs, dropout=None):
            return inputs.x @ parameters["weight0"]

    with pytest.raises(GcondError, match="'own' has no form in PyG"):
        Own().to_pyg({})
