from __future__ import annotations

import dataclasses

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from gcond.graph.labelled_view import LabelledView
from gcond.linalg.sparse import Identity, dense, gcn_normalise
from gcond.teaching.random_propagation import RandomPropagation, _glorot, propagated_mean

CLASSES = 3
PLAIN = RandomPropagation(hops=3, hidden=8, epochs=1, node_dropout=0, hidden_dropout=0, draws=1)


def answers_of(teacher, graph, seed=0, val=None):
    return teacher.log_probabilities(graph.view("train"), val or graph.view("val"), CLASSES, seed)


def nobody(graph):
    val = graph.view("val")
    return LabelledView(val.inputs, val.nodes[:0], val.y[:0], val.source_index)


def literal(teacher, graph, seed=0):
    """Training without any chance, on dense matrices, by PyTorch's own Adam; the answers after the last epoch."""
    operator, x, train = dense(gcn_normalise(graph.adjacency)), dense(graph.x), graph.view("train")
    spread = sum(torch.linalg.matrix_power(operator, k) for k in range(teacher.hops + 1)) / (teacher.hops + 1)
    weights = [
        _glorot(x.shape[1], teacher.hidden, seed, "in", "cpu"),
        torch.zeros(teacher.hidden),
        _glorot(teacher.hidden, CLASSES, seed, "out", "cpu"),
        torch.zeros(CLASSES),
    ]
    weights = [weight.requires_grad_() for weight in weights]
    adam = torch.optim.Adam(weights, lr=teacher.lr, weight_decay=teacher.weight_decay)

    def answers():
        hidden = torch.relu(spread @ x @ weights[0] + weights[1])
        return torch.log_softmax(hidden @ weights[2] + weights[3], 1)

    for epoch in range(teacher.epochs):
        each = answers()
        sharp = each.detach().exp() ** (1 / teacher.sharpening)
        agreed = sharp / sharp.sum(1, keepdim=True)
        fitting = -each[train.nodes, train.y].mean()
        ramp = min(1, (epoch + 1) / teacher.ramp)
        loss = fitting + ramp * (each.exp() - agreed).square().sum(1).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    return answers().detach()


@pytest.mark.parametrize("shape", [{}, {"features": 60, "density": 0.1}, {"directed": True, "weighted": True}])
@pytest.mark.parametrize("draws", [1, 2])
def test_without_chance_it_is_the_literal_training(shape, draws, make_graph):
    graph = make_graph(**shape)
    for epochs in (1, 5):
        teacher = dataclasses.replace(PLAIN, epochs=epochs, draws=draws, ramp=3)
        found = answers_of(teacher, graph, val=nobody(graph))
        assert torch.allclose(found, literal(teacher, graph), atol=2e-4)


@pytest.mark.parametrize("directed", [False, True])
def test_the_mean_of_propagations_and_its_derivatives(directed, make_graph):
    operator = gcn_normalise(make_graph(sizes=(6, 5), directed=directed).adjacency).to(dtype=torch.float64)
    columns = torch.randn(11, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    powers = [torch.linalg.matrix_power(dense(operator), k) @ columns for k in range(4)]
    assert torch.allclose(propagated_mean(operator, columns, 3), sum(powers) / 4)
    assert gradcheck(lambda c: propagated_mean(operator, c, 3), columns)
    assert gradgradcheck(lambda c: propagated_mean(operator, c, 3), columns)
    assert torch.allclose(propagated_mean(Identity(), columns, 3), columns)
    assert torch.equal(propagated_mean(operator, columns, 0), columns)


def test_the_same_seed_gives_the_same_answers_and_nothing_else_is_touched(make_graph):
    graph = make_graph()
    before = graph.sha256
    state = torch.get_rng_state()
    teacher = RandomPropagation(epochs=20)
    found = answers_of(teacher, graph, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    assert torch.equal(found, answers_of(teacher, graph, seed=3))
    torch.set_rng_state(state)
    assert not torch.equal(found, answers_of(teacher, graph, seed=4))
    assert dataclasses.replace(graph).sha256 == before


def test_it_learns_where_gradients_are_off_and_leaves_none_behind(make_graph):
    graph = make_graph()
    teacher = RandomPropagation(epochs=10)
    found = answers_of(teacher, graph)
    with torch.no_grad():
        quiet = answers_of(teacher, graph)
        assert not torch.is_grad_enabled()
    assert torch.equal(found, quiet)
    assert not found.requires_grad
    assert found.grad_fn is None
    assert found.shape == (graph.num_nodes, CLASSES)
    assert torch.allclose(found.exp().sum(1), torch.ones(graph.num_nodes), atol=1e-5)


def test_the_best_look_is_kept_and_training_ends_when_none_is_better(make_graph):
    graph = make_graph(features=3)
    val = graph.view("val")

    def accuracy(epochs):
        found = answers_of(RandomPropagation(epochs=epochs, look_every=5, patience=1000), graph)
        return float((found[val.nodes].argmax(1) == val.y).double().mean())

    reached = [accuracy(epochs) for epochs in (5, 10, 20, 40)]
    assert reached == sorted(reached)
    patient = RandomPropagation(epochs=400, look_every=5, patience=20)
    assert torch.equal(answers_of(patient, graph), answers_of(dataclasses.replace(patient, epochs=100_000), graph))


def test_without_validation_nodes_the_last_epoch_counts(make_graph):
    graph = make_graph()
    long, short = (
        answers_of(RandomPropagation(epochs=epochs, lr=0.01, patience=10), graph, val=nobody(graph))
        for epochs in (60, 10)
    )
    train = graph.view("train")

    def likelihood(found):
        return float(found[train.nodes, train.y].mean())

    assert likelihood(long) > likelihood(short) + 0.1


def test_unlabelled_nodes_teach_as_well(make_graph):
    graph = make_graph(seed=2)
    found = answers_of(RandomPropagation(epochs=60), graph)
    test = graph.view("test")
    assert float((found[test.nodes].argmax(1) == test.y).double().mean()) > 0.9
