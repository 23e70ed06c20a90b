from __future__ import annotations

import torch

from gcond.teaching.frequencies import ROUNDS, frequencies, frequencies_by_confusion, nearer, weighed


def answers_of(shares, size=4000, seed=0):
    """Exact answers for equally frequent classes, of nodes whose classes have ``shares``; and the classes."""
    stream = torch.Generator().manual_seed(seed)
    y = torch.multinomial(torch.tensor(shares), size, replacement=True, generator=stream)
    points = 2 * torch.eye(len(shares))[y] + torch.randn(size, len(shares), generator=stream)
    return (2 * points).softmax(1), y


def literal(answers, known):
    """The procedure of the paper, node by node and class by class."""
    share = known.tolist()
    for _ in range(ROUNDS - 1):
        new = []
        for row in answers.tolist():
            own = [p * s / k for p, s, k in zip(row, share, known.tolist(), strict=True)]
            new.append([w / sum(own) for w in own])
        share = [sum(row[c] for row in new) / len(new) for c in range(len(share))]
    return torch.tensor(share)


def test_shares_are_those_of_a_literal_loop():
    answers, _ = answers_of((0.7, 0.2, 0.1), size=300)
    known = torch.full((3,), 1 / 3)
    assert torch.allclose(frequencies(answers, known), literal(answers, known), atol=1e-5)


def test_both_estimates_find_the_shares_that_there_are():
    answers, y = answers_of((0.6, 0.3, 0.1))
    judged, own = answers_of((1 / 3, 1 / 3, 1 / 3), size=600, seed=1)
    true = torch.bincount(y).double() / len(y)
    assert float((frequencies(answers, torch.full((3,), 1 / 3)) - true).abs().max()) < 0.03
    found = frequencies_by_confusion(answers, judged, own)
    assert float((found - true).abs().max()) < 0.06
    assert float(found.sum()) == 1 or abs(float(found.sum()) - 1) < 1e-9
    assert bool((found >= 0).all())


def test_a_class_that_nobody_is_judged_of_is_no_trouble():
    answers, _ = answers_of((0.6, 0.3, 0.1))
    judged, own = answers_of((0.5, 0.5, 0.0), size=100, seed=1)
    assert bool(torch.isfinite(frequencies_by_confusion(answers, judged, own)).all())


def test_weighed_rows_add_up_and_the_nearer_is_nearer():
    answers, _ = answers_of((0.6, 0.3, 0.1), size=50)
    assert torch.allclose(weighed(answers, torch.tensor([1.0, 2.0, 3.0])).sum(1), torch.ones(50))
    a, b, c = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1]), torch.tensor([0.6, 0.4])
    assert nearer(a, b, to=c)
    assert not nearer(b, a, to=c)
