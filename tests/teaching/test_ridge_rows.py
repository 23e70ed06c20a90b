from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from gcond.graph.column_work import Hops, SumOfHops
from gcond.teaching import ridge_rows
from gcond.teaching.ridge import ridge_scores
from gcond.teaching.ridge_rows import RidgeRows
from streamed import packed

WORKS = [Hops(2), SumOfHops(4)]
WIDE = {"features": 400, "density": 0.05, "sizes": (50, 40, 30)}


def rows_of(graph, seed=0):
    train = graph.view("train")
    target = F.one_hot(train.y, 3).float()
    return RidgeRows(train.inputs, train.nodes, target - target.mean(0), seed)


def scores(fitted):
    rows, weights = fitted
    return {penalty: rows[torch.arange(len(rows))] @ weight for penalty, weight in weights.items()}


@pytest.mark.parametrize("work", WORKS, ids=str)
def test_both_sides_agree_but_for_lengths(work, make_graph):
    """On labelled nodes, whose lengths are exact, all is the same; elsewhere up to a factor that is about 1."""
    ridge = rows_of(make_graph(**WIDE))
    here, there = scores(ridge.from_features(work)), scores(ridge.from_labelled(work))
    assert set(here) == set(there)
    for penalty, exact in here.items():
        found = there[penalty]
        torch.testing.assert_close(found[ridge.nodes], exact[ridge.nodes], rtol=1e-3, atol=1e-4)
        factor = (found * exact).sum(1) / exact.square().sum(1)
        assert torch.allclose(found, factor[:, None] * exact, atol=1e-4)
        assert float((factor - 1).abs().mean()) < 0.1


def test_small_graphs_are_exact_and_large_ones_estimated(make_graph, monkeypatch):
    ridge, work = rows_of(make_graph(**WIDE)), SumOfHops(4)
    assert torch.equal(ridge.of(work)[0], ridge.from_features(work)[0])
    monkeypatch.setattr(ridge_rows, "CHEAP", 0)
    assert torch.equal(ridge.of(work)[0], ridge.from_labelled(work)[0])
    monkeypatch.setattr(ridge_rows, "MOST_HELD", 1000)
    assert torch.equal(ridge.of(work)[0], ridge.from_features(work)[0])


@pytest.mark.parametrize("shape", [{"features": 12}, WIDE | {"directed": True}])
def test_nothing_is_estimated_where_nothing_is_gained_or_edges_go_one_way(shape, make_graph, monkeypatch):
    monkeypatch.setattr(ridge_rows, "CHEAP", 0)
    ridge, work = rows_of(make_graph(**shape)), Hops(2)
    assert torch.equal(ridge.of(work)[0], ridge.from_features(work)[0])


def test_an_estimate_has_the_same_answers_nearly_everywhere(make_graph, monkeypatch):
    graph = make_graph(**WIDE)
    views = graph.view("train"), graph.view("val")
    exact = ridge_scores(*views, 3, 0)
    monkeypatch.setattr(ridge_rows, "CHEAP", 0)
    found = ridge_scores(*views, 3, 0)
    assert not torch.equal(found.scores, exact.scores)
    assert float((found.scores.argmax(1) == exact.scores.argmax(1)).float().mean()) > 0.9
    assert torch.equal(found.scores, ridge_scores(*views, 3, 0).scores)


def test_from_the_store_it_is_the_same(make_graph, tmp_path, monkeypatch):
    monkeypatch.setattr(ridge_rows, "CHEAP", 0)
    graph = make_graph(**WIDE)
    there, here = rows_of(packed(graph, tmp_path)), rows_of(graph)
    for work in WORKS:
        one, other = scores(there.of(work)), scores(here.of(work))
        for penalty, expected in other.items():
            torch.testing.assert_close(one[penalty], expected, rtol=1e-3, atol=1e-4)
