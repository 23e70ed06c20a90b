from __future__ import annotations

import pytest
import torch

from gcond.graph.inputs import Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.linalg.sparse import Identity
from gcond.teaching import calibration
from gcond.teaching.calibration import SHARPNESS, calibrate, sharpen
from gcond.teaching.frequencies import frequencies


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


def drawn_alike(scores, y, each=30):
    """Validation nodes of which there are equally many of each class."""
    nodes = torch.cat([(y == c).nonzero().squeeze(1)[20 : 20 + each] for c in range(scores.shape[1])])
    return view(nodes, y, len(y))


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


def test_answers_for_validation_nodes_add_up_to_their_counts_but_for_the_penalty():
    scores, train, _, y = shifted()
    val = drawn_alike(scores, y)
    found = calibrate(scores, train, val)
    factors = found.weights / found.shift
    unit = scores[val.nodes].double() / scores.std().double()
    answers = (found.sharpness * unit + factors.double().log()).softmax(1)
    counts = torch.bincount(val.y, minlength=3).double()
    assert torch.allclose(counts - answers.sum(0), factors.double().log(), atol=1e-2)


def test_a_class_that_is_answered_too_often_does_not_run_away():
    """Validation nodes in equal numbers, as where a split is drawn by class, and a teacher that likes one class."""
    scores, train, _, y = shifted(shares=(0.2, 0.2, 0.6))
    liking = scores + torch.tensor([1.5, 0.0, 0.0])
    val = drawn_alike(scores, y, each=200)
    true = torch.bincount(y).double() / len(y)
    found = calibrate(liking, train, val)
    assert float((found.frequencies - true).abs().max()) < 0.06
    naive = frequencies(sharpen(liking, val).of(liking), torch.full((3,), 1 / 3))
    assert float((naive - true).abs().max()) > 0.2
    assert accuracy(found.of(liking), y) > accuracy(sharpen(liking, val).of(liking), y) + 0.05


def test_the_shift_makes_validation_nodes_stand_for_all():
    scores, train, _, y = shifted(spread=0.8)
    val = drawn_alike(scores, y)
    found = calibrate(scores, train, val)
    true = 3 * torch.bincount(y) / len(y)
    assert torch.allclose(found.shift, true, atol=0.25)
    natural = view(torch.arange(4000, 6000), y, len(y))
    assert calibrate(scores, train, natural).shift is None


def test_a_class_without_validation_nodes_keeps_a_chance():
    scores, train, val, y = shifted(shares=(0.5, 0.4, 0.1))
    some = view(val.nodes[val.y < 2], y, len(y))
    found = calibrate(scores, train, some)
    assert bool(torch.isfinite(found.weights).all())
    assert float(found.weights[2]) > 0


def test_classes_that_are_known_to_be_uneven_stay_so():
    scores, _, val, y = shifted(size=3000)
    shares = torch.bincount(y[:1000]).double() / 1000
    train = view(torch.arange(1000), y, 3000)
    found = calibrate(scores + shares.log().float(), train, val)
    assert accuracy(found.of(scores), y) > accuracy(scores, y)


def test_where_validation_nodes_are_drawn_as_all_are_they_judge_the_estimate(monkeypatch):
    scores, train, val, _ = shifted()
    exact = calibration.frequencies
    known = torch.full((3,), 1 / 3)

    def harmful(answers, start):
        return torch.tensor([1e-9, 1e-9, 1.0]) if torch.allclose(start, known) else exact(answers, start)

    monkeypatch.setattr(calibration, "frequencies", harmful)
    found = calibrate(scores, train, val)
    assert not found.prior
    assert torch.equal(found.of(scores), sharpen(scores, val).of(scores))


def test_an_estimate_that_another_contradicts_is_dropped(monkeypatch):
    scores, train, val, y = shifted()
    good = calibrate(scores, train, val)
    monkeypatch.setattr(calibration, "frequencies", lambda answers, known: torch.tensor([1e-9, 1e-9, 1.0]))
    found = calibrate(scores, train, val)
    assert not found.prior
    assert found.frequencies is None
    assert accuracy(found.of(scores), y) > accuracy(good.of(scores), y) - 0.02


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
