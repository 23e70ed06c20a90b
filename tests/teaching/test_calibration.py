from __future__ import annotations

import pytest
import torch

from gcond.graph.inputs import Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.linalg.sparse import Identity
from gcond.teaching import calibration
from gcond.teaching.calibration import ROUNDS, SHARPNESS, calibrate, sharpen


def view(nodes, y, size):
    return LabelledView(Inputs(torch.zeros(size, 1), Identity()), nodes, y[nodes], torch.arange(size))


def shifted(shares=(0.6, 0.3, 0.1), size=6000, spread=1.2, seed=0):
    """Scores of a teacher that thinks its classes equally frequent, nodes of classes that are not, and their labels.

    Points are Gaussian around a corner a class, so that the exact log-probabilities for equal shares are known.
    """
    stream = torch.Generator().manual_seed(seed)
    y = torch.multinomial(torch.tensor(shares), size, replacement=True, generator=stream)
    centres = 2 * torch.eye(len(shares))
    points = centres[y] + spread * torch.randn(size, len(shares), generator=stream)
    scores = -(points[:, None] - centres).square().sum(2) / (2 * spread**2)
    by_class = [(y == c).nonzero().squeeze(1)[:20] for c in range(len(shares))]
    train = view(torch.cat(by_class), y, size)
    val = view(torch.arange(size - 500, size), y, size)
    return scores.log_softmax(1), train, val, y


def accuracy(probabilities, y):
    return float((probabilities.argmax(1) == y).double().mean())


def likelihood(probabilities, val):
    return float(probabilities[val.nodes, val.y].clamp(min=1e-9).log().mean())


def saerens(answers, known):
    """The procedure of the paper, node by node and class by class."""
    share = known.tolist()
    for _ in range(ROUNDS):
        new = []
        for row in answers.tolist():
            weighed = [p * s / k for p, s, k in zip(row, share, known.tolist(), strict=True)]
            new.append([w / sum(weighed) for w in weighed])
        share = [sum(row[c] for row in new) / len(new) for c in range(len(share))]
    return torch.tensor(new), share


def test_sharpness_is_the_likeliest_of_those_tried():
    scores, _, val, _ = shifted()
    found = sharpen(scores, val)
    unit = scores / scores.std()
    each = {s: likelihood((s * unit).softmax(1), val) for s in SHARPNESS}
    assert found.sharpness == max(each, key=each.get)
    assert torch.allclose(found.of(scores), (found.sharpness * unit).softmax(1), atol=1e-6)
    assert not found.prior


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_scores_does_not_matter(scale):
    scores, train, val, _ = shifted()
    plain, scaled = calibrate(scores, train, val), calibrate(scores * scale, train, val)
    assert plain.sharpness == scaled.sharpness
    assert torch.allclose(plain.of(scores), scaled.of(scores * scale), atol=1e-4)


def test_shares_that_shifted_are_recovered_and_help():
    scores, train, val, y = shifted()
    plain, found = sharpen(scores, val), calibrate(scores, train, val)
    assert found.prior
    true = torch.bincount(y).double() / len(y)
    assert float((found.of(scores).double().mean(0) - true).abs().max()) < 0.05
    assert float((plain.of(scores).double().mean(0) - true).abs().max()) > 0.05
    assert accuracy(found.of(scores), y) > accuracy(plain.of(scores), y) + 0.01


def test_weights_are_those_of_a_literal_loop():
    scores, train, val, _ = shifted(size=600)
    found = calibrate(scores, train, val)
    answers = (found.sharpness * scores / scores.std()).softmax(1).double()
    known = torch.bincount(train.y).double()
    expected, share = saerens(answers, known / known.sum())
    assert torch.allclose(found.of(scores).double(), expected.double(), atol=1e-4)
    assert torch.allclose(found.of(scores).mean(0), torch.tensor(share), atol=1e-4)


def test_classes_that_are_known_to_be_uneven_stay_so():
    scores, _, val, y = shifted(size=3000)
    shares = torch.bincount(y[:1000]).double() / 1000
    train = view(torch.arange(1000), y, 3000)
    found = calibrate(scores + shares.log().float(), train, val)
    assert accuracy(found.of(scores), y) > accuracy(scores, y)


def test_an_estimate_that_harms_is_dropped(monkeypatch):
    scores, train, val, _ = shifted()

    monkeypatch.setattr(calibration, "_frequencies", lambda answers, known: torch.tensor([1e-9, 1e-9, 1.0]))
    found = calibrate(scores, train, val)
    assert not found.prior
    assert torch.equal(found.of(scores), sharpen(scores, val).of(scores))


def test_rows_add_up_and_nothing_is_changed_in_place():
    scores, train, val, _ = shifted()
    before = scores.clone()
    found = calibrate(scores, train, val)
    assert torch.equal(scores, before)
    assert torch.allclose(found.of(scores).sum(1), torch.ones(len(scores)), atol=1e-5)


def test_it_works_without_validation_nodes_and_with_scores_that_are_all_equal():
    scores, train, val, y = shifted()
    nobody = view(val.nodes[:0], y, len(y))
    for given in (scores, torch.zeros_like(scores)):
        for found in (sharpen(given, nobody), calibrate(given, train, nobody), calibrate(given, train, val)):
            assert bool(torch.isfinite(found.of(given)).all())
            assert torch.allclose(found.of(given).sum(1), torch.ones(len(scores)), atol=1e-5)


def test_by_balanced_accuracy_answers_are_weighed_to_equal_shares():
    scores, train, val, y = shifted()
    nodes = torch.cat([train.nodes[train.y == c][: 20 - 9 * c] for c in range(3)])  # 20, 11 and 2 of them
    uneven = view(nodes, y, len(y))
    found = calibrate(scores, uneven, val, metric="balanced-accuracy")
    plain = found.of(scores) * torch.tensor([20.0, 11.0, 2.0])
    expected = (found.sharpness * scores / scores.std()).softmax(1)
    assert torch.allclose(plain / plain.sum(1, keepdim=True), expected, atol=1e-5)
    assert torch.allclose(calibrate(scores, train, val, metric="balanced-accuracy").of(scores), expected, atol=1e-5)
