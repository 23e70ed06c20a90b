"""How sure a model may be, against a plain search for the least loss."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import gcond
from gcond.training.temperature import LEAST, sharpness


def smoothed_loss(scores, y, beta):
    """The loss that is to be least, from its definition."""
    nodes, classes = scores.shape
    rest = 1 / (nodes + 2)
    target = F.one_hot(y, classes) * (1 - rest - rest / (classes - 1)) + rest / (classes - 1)
    return float(-(target * (beta * scores).log_softmax(1)).sum(1).mean())


@pytest.mark.parametrize("stretch", [0.05, 1.0, 20.0])
def test_it_is_where_the_loss_is_least(stretch):
    stream = torch.Generator().manual_seed(3)
    truth = torch.randn(400, 5, generator=stream, dtype=torch.float64)
    y = torch.multinomial(truth.softmax(1), 1, generator=stream).squeeze(1)
    scores = stretch * truth
    found = sharpness(scores.float(), y)
    assert found * stretch == pytest.approx(1, abs=0.25), "the labels were drawn by these very probabilities"
    here = smoothed_loss(scores, y, found)
    assert all(here <= smoothed_loss(scores, y, found * factor) + 1e-9 for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2))


def test_few_nodes_that_are_all_right_do_not_make_it_sure():
    y = torch.tensor([0, 1, 2])
    probabilities = (sharpness(torch.eye(3), y) * torch.eye(3)).softmax(1)
    assert probabilities.diagonal().tolist() == pytest.approx([4 / 5] * 3, abs=1e-3)


def test_scores_that_say_nothing_or_the_contrary():
    assert sharpness(torch.empty(0, 3), torch.empty(0, dtype=torch.int64)) == 1
    assert sharpness(torch.ones(4, 1), torch.zeros(4, dtype=torch.int64)) == 1
    assert sharpness(-10 * torch.eye(3).repeat(9, 1), torch.arange(3).repeat(9)) == pytest.approx(LEAST)


def test_probabilities_are_as_sure_as_they_are_right(make_graph):
    """Of a model that learned from soft labels; classes and their order stay what they were."""
    graph = make_graph()
    small = gcond.condense(graph, nodes=9, method="clusters")
    model = gcond.train(small, on=graph, epochs=30)
    found = model.predict(graph, "val")
    plain = model.model.logits(model.parameters, graph.view("val").inputs)[graph.view("val").nodes].softmax(1)
    assert torch.equal(found.classes, plain.argmax(1))
    assert model.record.sharpness != 1

    def loss(probabilities):
        return float(F.nll_loss(probabilities.log(), graph.y[graph.val_mask]))

    assert loss(found.probabilities) < loss(plain)
