from __future__ import annotations

import dataclasses

import pytest
import torch
from sklearn.linear_model import Ridge
from torch_geometric.data import Data

import gcond
from gcond.graph.labelled_view import LabelledView
from gcond.linalg import random_projection
from gcond.linalg.sparse import dense, gcn_normalise
from gcond.teaching import ridge_rows
from gcond.teaching.ridge import HOPS, OWN_SHARES, STEPS, ridge_scores
from gcond.teaching.ridge_rows import PENALTIES, RidgeRows

CLASSES = 3


def normalised(graph):
    return dense(gcn_normalise(graph.adjacency)).double()


def literal_scores(graph, penalty, own):
    """The formulas, one after the other, in double precision, with scikit-learn's regression."""
    operator, power = normalised(graph), dense(graph.x).double()
    total = power
    for _ in range(HOPS):
        power = operator @ power
        total = total + power
    rows = total / (HOPS + 1)
    rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-30)
    train = graph.view("train")
    target = torch.eye(CLASSES, dtype=torch.float64)[train.y]
    fitted = Ridge(alpha=penalty, fit_intercept=False).fit(rows[train.nodes], target - target.mean(0))
    scores = torch.from_numpy(fitted.predict(rows))
    smooth = scores
    for _ in range(STEPS):
        smooth = (1 - own) * operator @ smooth + own * scores
    return smooth + target.mean(0)


def taught(graph, seed=0):
    return ridge_scores(graph.view("train"), graph.view("val"), CLASSES, seed)


@pytest.fixture
def plain_kernel(monkeypatch):
    """No power of the kernel but the first."""
    monkeypatch.setattr(RidgeRows, "powers", lambda self, rows: iter(()))


def accuracy(scores, val):
    return float((scores[val.nodes].argmax(1) == val.y).double().mean())


SHAPES = [
    {"features": 5},  # more labelled nodes than features: regression in the space of features
    {"features": 200, "density": 0.05},  # fewer: in the space of nodes, from sparse features
    {"features": 40},
    {"features": 20, "weighted": True, "directed": True},
]


@pytest.mark.usefixtures("plain_kernel")
@pytest.mark.parametrize("shape", SHAPES)
def test_scores_are_those_of_scikit_learn_smoothed_by_a_loop(shape, make_graph):
    graph = make_graph(**shape)
    found = taught(graph)
    assert found.scores.dtype == torch.float32
    expected = literal_scores(graph, found.penalty, found.own_share)
    assert torch.allclose(found.scores.double(), expected, atol=2e-5)


@pytest.mark.usefixtures("plain_kernel")
@pytest.mark.parametrize("seed", range(4))
def test_what_is_chosen_has_the_best_validation_accuracy(seed, make_graph):
    graph = make_graph(seed=seed, features=4)
    val, found = graph.view("val"), taught(graph)
    by_penalty = [accuracy(literal_scores(graph, penalty, OWN_SHARES[0]), val) for penalty in PENALTIES]
    assert found.penalty == PENALTIES[by_penalty.index(max(by_penalty))]
    by_share = [accuracy(literal_scores(graph, found.penalty, own), val) for own in OWN_SHARES]
    assert found.own_share == OWN_SHARES[by_share.index(max(by_share))]
    assert accuracy(found.scores, val) == max(by_share)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_the_features_does_not_matter(scale, make_graph):
    graph = make_graph()
    plain, scaled = taught(graph), taught(dataclasses.replace(graph, x=dense(graph.x) * scale))
    assert (plain.penalty, plain.own_share) == (scaled.penalty, scaled.own_share)
    assert torch.allclose(plain.scores, scaled.scores, atol=1e-5)


def test_without_validation_nodes_it_is_the_usual(make_graph):
    graph = make_graph()
    train, val = graph.view("train"), graph.view("val")
    nobody = LabelledView(val.inputs, val.nodes[:0], val.y[:0], val.source_index)
    found = ridge_scores(train, nobody, CLASSES, 0)
    assert (found.penalty, found.own_share) == (PENALTIES[0], OWN_SHARES[0])
    assert torch.allclose(found.scores.double(), literal_scores(graph, PENALTIES[0], OWN_SHARES[0]), atol=2e-5)


def test_folded_features_give_much_the_same_answers(make_graph, monkeypatch):
    graph = make_graph(features=2000, density=0.1)
    plain = taught(graph)
    monkeypatch.setattr(random_projection, "MOST_ENTRIES", 1000)
    folded = taught(graph)
    assert not torch.equal(plain.scores, folded.scores)
    assert float((plain.scores.argmax(1) == folded.scores.argmax(1)).double().mean()) > 0.85
    assert torch.equal(folded.scores, taught(graph).scores)


def test_it_finds_classes_that_are_there(make_graph):
    graph = make_graph(seed=1)
    test = graph.view("test")
    assert accuracy(taught(graph).scores, test) > 0.9


def noisy(noise, per_class=150):
    """Classes whose nodes know little of themselves and much by their neighbours, as far as ``noise`` hides it."""
    stream = torch.Generator().manual_seed(0)
    y = torch.arange(CLASSES).repeat_interleave(per_class)
    n = len(y)
    x = torch.randn(CLASSES, 40, generator=stream)[y] + noise * torch.randn(n, 40, generator=stream)
    source = torch.arange(n).repeat_interleave(20)
    target = torch.randint(n, (len(source),), generator=stream)
    alike = torch.rand(len(source), generator=stream) < 0.4
    target = torch.where(alike, y[source] * per_class + target % per_class, target)
    part = torch.arange(n) % 3
    masks = {f"{name}_mask": part == place for place, name in enumerate(("train", "val", "test"))}
    return gcond.load(Data(x=x, y=y, edge_index=torch.stack([source, target]), **masks))


def test_features_of_near_neighbours_take_the_place_of_the_mean_where_a_node_itself_is_noise():
    graph = noisy(8.0)
    found = taught(graph)
    assert found.near
    val = graph.view("val")
    assert accuracy(found.scores, val) > accuracy(literal_scores(graph, found.penalty, found.own_share), val)
    assert not taught(noisy(0.5)).near


def test_penalties_that_change_nothing_are_not_tried():
    stream = torch.Generator().manual_seed(0)
    many = torch.nn.functional.normalize(torch.randn(20_000, 4, generator=stream))
    few, target = many[:12], torch.randn(20_000, CLASSES, generator=stream)
    assert [penalty for penalty, _ in ridge_rows.regressions(many, target)] == [PENALTIES[0]]
    assert len(list(ridge_rows.regressions(few, target[:12]))) == len(PENALTIES)


def few_labels(seed):
    """Classes with a topic of their own each, words of which are drawn, and two labelled nodes of each."""
    stream = torch.Generator().manual_seed(seed)
    y = torch.arange(CLASSES).repeat_interleave(100)
    n, words = len(y), 300
    topics = torch.rand(CLASSES, words, generator=stream).pow(6)
    x = (torch.rand(n, words, generator=stream) < 0.01 + 0.25 * topics[y]).float()
    place = torch.arange(n) % 100
    masks = {"train_mask": place < 2, "val_mask": (place >= 2) & (place < 32), "test_mask": place >= 32}
    edges = torch.randint(n, (2, 40), generator=stream)
    return gcond.load(Data(x=x, y=y, edge_index=edges, **masks))


@pytest.mark.filterwarnings("ignore")
def test_where_few_are_labelled_unlabelled_nodes_have_a_say(monkeypatch):
    graphs = [few_labels(seed) for seed in range(4)]
    found = [taught(graph) for graph in graphs]
    right = [accuracy(one.scores, graph.view("test")) for one, graph in zip(found, graphs, strict=True)]
    assert max(one.power for one in found) > 1
    assert all(one.choices.get("power", 1) == one.power for one in found)
    monkeypatch.setattr(RidgeRows, "powers", lambda self, rows: iter(()))
    alone = [accuracy(taught(graph).scores, graph.view("test")) for graph in graphs]
    assert sum(right) > sum(alone) + 0.1
    assert "power" not in taught(graphs[0]).choices


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_the_power_that_is_taken_is_the_best_on_validation_nodes(seed, monkeypatch):
    graph = few_labels(seed)
    found, val = taught(graph), graph.view("val")
    monkeypatch.setattr(ridge_rows, "HIGHEST_POWER", found.power - 1)
    assert found.power == 1 or accuracy(taught(graph).scores, val) < accuracy(found.scores, val)
    monkeypatch.setattr(ridge_rows, "HIGHEST_POWER", found.power + 1)
    assert taught(graph).power == found.power or found.power == 3
