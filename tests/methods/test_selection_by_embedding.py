from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv

from gcond.config.settings import build
from gcond.errors import GcondError
from gcond.graph.budget import nodes_per_class
from gcond.methods import available
from gcond.methods.herding import Herding
from gcond.methods.method import Task
from gcond.methods.selection_by_embedding import SelectionByEmbedding, embed
from gcond.models.gcn import GCN
from gcond.training.fit import accuracy, fit
from gcond.training.recipe import Recipe
from reference.training import literal_gcn

QUICK = Recipe(epochs=12, dropout=0.5, select="last")


def task_of(graph, nodes=12, seed=3):
    quota = nodes_per_class(nodes, graph.class_counts())
    return Task(graph.view("train"), graph.view("val"), graph.num_classes, quota, seed)


def test_output_is_the_log_probability_of_the_trained_gcn(graph):
    task, model = task_of(graph), GCN(hidden=16)
    points = embed(task, model, QUICK, "output")
    fitted = fit(model, task.train, None, classes=3, seeds=[3], recipe=QUICK)
    expected = literal_gcn({key: tensor[None] for key, tensor in fitted.parameters[0].items()}, task.train.inputs)[
        0
    ].log_softmax(-1)
    torch.testing.assert_close(points.float(), expected[task.train.nodes], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(points.exp().sum(1), torch.ones(len(points), dtype=torch.float64), rtol=1e-5, atol=1e-6)
    assert points.dtype == torch.float64


def test_hidden_is_the_activated_first_layer(graph):
    task, model = task_of(graph), GCN(hidden=16)
    points = embed(task, model, QUICK, "hidden")
    fitted = fit(model, task.train, None, classes=3, seeds=[3], recipe=QUICK)
    convolution = GCNConv(graph.num_features, 16)
    with torch.no_grad():
        convolution.lin.weight.copy_(fitted.parameters[0]["weight0"].T)
        convolution.bias.copy_(fitted.parameters[0]["bias0"])
        adjacency = task.train.inputs.adjacency
        edge_index = torch.stack([adjacency.indices.long(), adjacency.row_index])
        expected = convolution(task.train.inputs.x, edge_index, adjacency.values).relu()
    torch.testing.assert_close(points.float(), expected[task.train.nodes], rtol=1e-4, atol=1e-5)
    assert points.shape == (len(task.train.nodes), 16)


def test_the_gcn_learns(make_graph):
    graph = make_graph()
    recipe = Recipe(epochs=100, dropout=0.5, select="last")
    points = embed(task_of(graph), GCN(hidden=32), recipe, "output")
    train = graph.view("train")
    assert (points.argmax(1) == train.y).double().mean() > 0.95
    fitted = fit(GCN(hidden=32), train, None, classes=3, seeds=[3], recipe=recipe)
    assert accuracy(GCN(hidden=32), fitted.parameters, graph.view("test")) > 0.7


def test_nothing_carries_a_gradient(graph):
    assert not embed(task_of(graph), GCN(hidden=8), QUICK, "output").requires_grad


def test_each_class_is_herded_on_its_own_points(graph):
    method = Herding(epochs=5, hidden=8)
    task = task_of(graph)
    points = embed(task, method.model(), method.recipe(), "output")
    expected = []
    for label, count in enumerate(task.quota.tolist()):
        candidates = task.candidates(label)
        own = points[task.train.y == label]
        expected.append(task.train.source_index[candidates[method.pick(own, count)]].sort().values)
    assert torch.equal(method.reduce(task).source_index, torch.cat(expected))


def test_the_settings_matter(make_graph):
    graph = make_graph(sizes=(80, 60, 40), features=5)
    task = task_of(graph, 20)
    base = {"epochs": 20, "hidden": 8}
    variants = [Herding(**base), Herding(**base, embedding="hidden"), Herding(epochs=40, hidden=8)]
    variants += [Herding(**base, lr=0.1), Herding(**base, dropout=0.0), Herding(epochs=20, hidden=9)]
    chosen = {tuple(method.reduce(task).source_index.tolist()) for method in variants}
    assert len(chosen) == len(variants)


def test_the_base_is_abstract_and_not_registered():
    with pytest.raises(TypeError, match="abstract"):
        SelectionByEmbedding()
    assert SelectionByEmbedding not in available().values()


@pytest.mark.parametrize("name", ["herding", "k-center"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": "0"}, "epochs must be at least 1"),
        ({"hidden": "0"}, "hidden must be at least 1"),
        ({"lr": "-1"}, "lr must be positive"),
        ({"dropout": "1"}, "dropout must be at least 0 and below 1"),
        ({"weight_decay": "-0.1"}, "weight_decay must be at least 0"),
        ({"embedding": "logits"}, "'output' or 'hidden'"),
        ({"epochs": "many"}, "setting epochs='many' is not usable"),
        ({"epoch": "5"}, "did you mean 'epochs'"),
    ],
)
def test_unusable_settings_are_refused(name, values, message):
    with pytest.raises(GcondError, match=message) as caught:
        build(available()[name], values, f"method '{name}'")
    assert "\n" not in str(caught.value)
    assert "ArgsKwargs" not in str(caught.value)
