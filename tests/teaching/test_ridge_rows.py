from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from sklearn.kernel_ridge import KernelRidge

from gcond.graph.column_work import Hops, SumOfHops
from gcond.teaching import ridge_rows
from gcond.teaching.ridge import ridge_scores
from gcond.teaching.ridge_rows import RidgeRows
from gcond.teaching.unit_rows import EstimatedRows, HeldRows
from streamed import packed

WORKS = [Hops(2), SumOfHops(4)]
WIDE = {"features": 400, "density": 0.05, "sizes": (50, 40, 30)}


def rows_of(graph, seed=0):
    train = graph.view("train")
    target = F.one_hot(train.y, 3).float()
    return RidgeRows(train.inputs, train.nodes, target - target.mean(0), seed)


def scores(ridge, rows):
    return products(ridge.fitted(rows))


def products(fitted):
    rows, weights = fitted
    return {penalty: rows[torch.arange(len(rows))] @ weight for penalty, weight in weights.items()}


@pytest.mark.parametrize("work", WORKS, ids=str)
def test_both_sides_agree_but_for_lengths(work, make_graph):
    """On labelled nodes, whose lengths are exact, all is the same; elsewhere up to a factor that is about 1."""
    ridge = rows_of(make_graph(**WIDE))
    here, there = scores(ridge, ridge.from_features(work)), scores(ridge, ridge.from_labelled(work))
    assert set(here) == set(there)
    for penalty, exact in here.items():
        found = there[penalty]
        torch.testing.assert_close(found[ridge.nodes], exact[ridge.nodes], rtol=1e-3, atol=1e-4)
        factor = (found * exact).sum(1) / exact.square().sum(1)
        assert torch.allclose(found, factor[:, None] * exact, atol=1e-4)
        assert float((factor - 1).abs().mean()) < 0.1


def test_small_graphs_are_exact_and_large_ones_estimated(make_graph, monkeypatch):
    ridge, work = rows_of(make_graph(**WIDE)), SumOfHops(4)
    assert isinstance(ridge.of(work), HeldRows)
    monkeypatch.setattr(ridge_rows, "CHEAP", 0)
    assert isinstance(ridge.of(work), EstimatedRows)
    monkeypatch.setattr(ridge_rows, "MOST_HELD", 1000)
    assert isinstance(ridge.of(work), HeldRows)


@pytest.mark.parametrize("shape", [{"features": 12}, WIDE | {"directed": True}])
def test_nothing_is_estimated_where_nothing_is_gained_or_edges_go_one_way(shape, make_graph, monkeypatch):
    monkeypatch.setattr(ridge_rows, "CHEAP", 0)
    assert isinstance(rows_of(make_graph(**shape)).of(Hops(2)), HeldRows)


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
        one, other = scores(there, there.of(work)), scores(here, here.of(work))
        for penalty, expected in other.items():
            torch.testing.assert_close(one[penalty], expected, rtol=1e-3, atol=1e-4)


def literal_power(ridge, work, power):
    """Scores by scikit-learn's ridge on the whole kernel [N, N], raised to the power and brought to ones inside."""
    rows = ridge.from_features(work).rows.double()
    kernel = torch.linalg.matrix_power(rows @ rows.T, power)
    own = kernel.diagonal().clamp(min=1e-30).sqrt()
    kernel = kernel / (own[:, None] * own)
    among = kernel[ridge.nodes][:, ridge.nodes].numpy()
    for penalty in ridge_rows.POWER_PENALTIES:
        fitted = KernelRidge(alpha=penalty, kernel="precomputed").fit(among, ridge.target.numpy())
        yield penalty, torch.from_numpy(fitted.predict(kernel[:, ridge.nodes].numpy()))


@pytest.mark.parametrize("side", ["from_features", "from_labelled"])
def test_powers_of_the_kernel_are_those_of_the_whole_matrix(side, make_graph, monkeypatch):
    """From the features, exactly where nodes are labelled and elsewhere up to a factor that is about 1; else nearly."""
    ridge, work = rows_of(make_graph(**WIDE)), SumOfHops(4)
    monkeypatch.setattr(ridge_rows, "HIGHEST_POWER", 4)
    found = dict(ridge.powers(getattr(ridge, side)(work)))
    assert list(found) == [2, 3, 4]
    for power, fitted in found.items():
        by_penalty = products(fitted)
        for penalty, exact in literal_power(ridge, work, power):
            if penalty not in by_penalty:  # much like another one
                continue
            scores = by_penalty[penalty].double()
            factor = (scores * exact).sum(1) / exact.square().sum(1)
            assert 0.8 < float(factor.median()) < 1.2
            if side == "from_features":
                torch.testing.assert_close(scores[ridge.nodes], exact[ridge.nodes], rtol=1e-2, atol=1e-3)
                assert torch.allclose(scores, factor[:, None] * exact, atol=1e-3)
            else:  # rows between them have estimated lengths, too
                assert float(F.cosine_similarity(scores.flatten(), exact.flatten(), dim=0)) > 0.97


def test_many_labelled_nodes_need_no_power(make_graph, monkeypatch):
    few, wide = rows_of(make_graph(features=12)), rows_of(make_graph(**WIDE))
    assert not list(few.powers(few.of(Hops(2))))
    monkeypatch.setattr(ridge_rows, "MOST_POWERED", 1000)
    assert not list(wide.powers(wide.of(Hops(2))))


def test_powers_from_the_store_are_the_same(make_graph, tmp_path):
    graph, work = make_graph(**WIDE), SumOfHops(4)
    one, other = rows_of(packed(graph, tmp_path)), rows_of(graph)
    for side in ("from_features", "from_labelled"):
        there, here = (dict(each.powers(getattr(each, side)(work))) for each in (one, other))
        for power, fitted in here.items():
            for penalty, expected in products(fitted).items():
                torch.testing.assert_close(products(there[power])[penalty], expected, rtol=1e-2, atol=1e-3)
