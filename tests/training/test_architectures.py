"""Architectures trained side by side: what each model computes on its own, whoever stands beside it."""

from __future__ import annotations

import pytest
import torch

from gcond import models
from gcond.graph.inputs import Inputs
from gcond.linalg.sparse import Identity, dense
from gcond.models.appnp import APPNP
from gcond.models.gcn import GCN
from gcond.models.model import ACTIVATIONS
from gcond.runtime.seeds import generator
from gcond.training.fit import accuracy, fit, predict, stackable
from gcond.training.recipe import Recipe

# Narrow and wide weights take different ways through sparse features; odd sizes leave tails in vectors.
WIDTHS = (13, 150)


def space(hidden, **more):
    return [APPNP(hidden=hidden, alpha=alpha, activation=name, **more) for alpha in (0.1, 0.3) for name in ACTIVATIONS]


def weights(model, features, classes, seed):
    return model.init(features, classes, generator(seed, "weights"))


def derivatives(family, parameters, inputs):
    leaves = [{key: tensor.detach().clone().requires_grad_() for key, tensor in one.items()} for one in parameters]
    logits = type(family[0]).logits_together(family, leaves, inputs, [None] * len(family))
    return with_gradients(logits, leaves)


def with_gradients(logits, leaves):
    loss = sum((one.log_softmax(-1)[..., 0] ** 2).mean(-1) for one in logits)
    slopes = iter(torch.autograd.grad(loss, [tensor for one in leaves for tensor in one.values()]))
    return [one.detach() for one in logits], [{key: next(slopes) for key in one} for one in leaves]


@pytest.mark.parametrize("hidden", WIDTHS)
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("form", ["sparse", "dense", "dense adjacency", "identity"])
def test_scores_and_gradients_are_those_of_the_models(make_graph, hidden, layers, form):
    graph = make_graph(features=60, density=0.05) if form == "sparse" else make_graph(features=11)
    inputs = graph.view("train").inputs
    if form == "dense adjacency":
        inputs = Inputs(inputs.x, graph.adjacency.to_dense())
    elif form == "identity":
        inputs = Inputs(inputs.x, Identity())
    family = space(hidden, layers=layers, hops=3)
    alone = [weights(model, graph.num_features, 3, seed) for seed, model in enumerate(family)]
    logits, gradients = derivatives(family, alone, inputs)
    for number, (model, one) in enumerate(zip(family, alone, strict=True)):
        leaves = {key: tensor.clone().requires_grad_() for key, tensor in one.items()}
        (expected,), (slopes,) = with_gradients([model.logits(leaves, inputs)], [leaves])
        torch.testing.assert_close(logits[number], expected, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(gradients[number], slopes, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", sorted(models.available()))
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_training_gives_what_training_one_model_gives(make_graph, setting, name, dropout):
    """Weights are compared after a few steps of Adam, which would show a gradient that is laid out wrongly."""
    cls = models.find(name)
    family = [cls(hidden=5, activation=each) for each in ("relu", "tanh", "linear")]
    seeds = [4, 0, 9]
    recipe = Recipe(epochs=6, dropout=dropout, select="last")
    for graph in (make_graph(setting), make_graph(setting, features=60, density=0.05)):
        options = {"classes": 3, "recipe": recipe}
        together = fit(family, graph.view("train"), graph.view("val"), seeds=seeds, **options)
        classes = predict(family, together.parameters, graph.view("test"))
        for place, (model, seed) in enumerate(zip(family, seeds, strict=True)):
            single = fit(model, graph.view("train"), graph.view("val"), seeds=[seed], **options)
            torch.testing.assert_close(together.parameters[place], single.parameters[0], rtol=1e-3, atol=1e-4)
            assert (classes[place] == predict(model, single.parameters, graph.view("test"))[0]).double().mean() > 0.9


@pytest.mark.parametrize("hidden", WIDTHS)
def test_an_architecture_does_not_depend_on_those_beside_it(make_graph, setting, hidden):
    recipe = Recipe(epochs=5, validate_every=2)
    family = space(hidden, hops=3)
    for graph in (make_graph(setting), make_graph(setting, features=60, density=0.05)):
        options = {"classes": 3, "recipe": recipe}
        views = (graph.view("train"), graph.view("val"))
        together = fit(family, *views, seeds=[1] * len(family), **options)
        for chosen in ([5], [8, 5, 2]):
            part = fit([family[i] for i in chosen], *views, seeds=[1] * len(chosen), **options)
            for place, number in enumerate(chosen):
                assert torch.equal(part.val_accuracy[place], together.val_accuracy[number])
                for key, tensor in part.parameters[place].items():
                    assert torch.equal(tensor, together.parameters[number][key]), (key, number)


def test_accuracy_is_each_model_s_own(make_graph):
    graph = make_graph()
    family = space(8, hops=2)
    views = (graph.view("train"), graph.view("val"))
    fitted = fit(family, *views, classes=3, seeds=[0] * len(family), recipe=Recipe(epochs=10))
    scores = accuracy(family, fitted.parameters, graph.view("test"))
    for number, model in enumerate(family):
        alone = accuracy(model, fitted.parameters[number : number + 1], graph.view("test"))
        assert float(scores[number]) == pytest.approx(float(alone), abs=1e-9)


def test_what_can_be_one_stack():
    base = stackable(APPNP(hidden=8, hops=2), 30, 3)
    assert stackable(APPNP(hidden=8, hops=2, alpha=0.5, activation="elu"), 30, 3) == base
    others = [APPNP(hidden=9, hops=2), APPNP(hidden=8, hops=3), APPNP(hidden=8, hops=2, layers=3), GCN(hidden=8)]
    keys = {stackable(model, 30, 3) for model in others}
    assert base not in keys
    assert len(keys) == len(others)
    assert stackable(APPNP(hidden=8, hops=2), 31, 3) != base


def test_asking_for_shapes_draws_nothing():
    state = torch.random.get_rng_state()
    stackable(GCN(), 1433, 7)
    assert torch.equal(state, torch.random.get_rng_state())


def test_the_dense_propagation_is_the_stepwise_one(make_graph):
    graph = make_graph()
    inputs = Inputs(dense(graph.x), graph.adjacency.to_dense())
    model = APPNP(hidden=4, hops=7, alpha=0.15)
    spread = model._spread(inputs)
    z = torch.randn(graph.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    h = z
    for _ in range(7):
        h = 0.85 * inputs.gcn @ h + 0.15 * z
    torch.testing.assert_close(spread @ z, h)
