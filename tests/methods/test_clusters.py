from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from gcond.graph import spread_features
from gcond.graph.source_graph import SourceGraph
from gcond.linalg.sparse import dense, gcn_normalise
from gcond.matching.probe import Probe
from gcond.methods import clusters
from gcond.methods.clusters import Clusters
from gcond.methods.condense import condense
from gcond.methods.label_mass import evened, group_quota, label_mass
from gcond.teaching import teach

KINDS = [
    {},
    {"weighted": True},
    {"directed": True, "weighted": True},
    {"features": 700, "density": 0.05},
]


def made(graph, nodes=12, **settings):
    """Nodes count alike and means stay as they are unless told otherwise."""
    usual = {"teacher": "ridge", "weight": "alike", "spread": "means"}
    return condense(graph, method="clusters", nodes=nodes, **usual | settings)


def seen_nodes(graph):
    everyone = torch.ones(graph.num_nodes, dtype=torch.bool)
    return everyone if graph.setting == "transductive" else graph.train_mask


def spread(graph, hops):
    """``Â^hops X`` of the nodes that condensing may see, dense and in double precision."""
    inputs = graph.view("train").inputs
    operator = dense(gcn_normalise(inputs.adjacency)).double()
    return torch.linalg.matrix_power(operator, hops) @ dense(inputs.x).double()


def train_shares(graph):
    return graph.class_counts().double() / graph.class_counts().sum()


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("hops", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_features_are_the_means_of_the_clusters(kind, hops, folded, *, setting, make_graph, monkeypatch):
    graph = make_graph(setting, **kind)
    monkeypatch.setattr(spread_features, "WIDTH", 3 if folded else graph.num_features)
    small = made(graph, hops=hops)
    seen = seen_nodes(graph)
    assert small.cluster.shape == (graph.num_nodes,)
    assert bool((small.cluster[~seen] == -1).all())
    assert sorted(small.cluster[seen].unique().tolist()) == list(range(12))
    rows, group = spread(graph, hops), small.cluster[seen]
    for one in range(12):
        assert torch.allclose(small.x[one].double(), rows[group == one].mean(0), atol=1e-5)


def test_labels_are_soft_and_weigh_the_classes_as_training_does(make_graph):
    for seed in range(3):
        graph = make_graph(seed=seed, features=3)
        small = made(graph, nodes=14)
        assert small.y.shape == (14, 3)
        assert torch.allclose(small.y.sum(1), torch.ones(14), atol=1e-5)
        assert torch.allclose(small.y.sum(0).double(), 14 * train_shares(graph), atol=0.05)
        assert small.hard_labels.tolist() == sorted(small.hard_labels.tolist())


def test_groups_of_a_class_are_equally_large(make_graph):
    small = made(make_graph(), nodes=14)
    size = torch.bincount(small.cluster)
    for label in range(3):
        mine = size[small.hard_labels == label]
        assert int(mine.max() - mine.min()) <= 1


def test_labelled_nodes_are_in_clusters_of_their_class(setting, make_graph):
    graph = make_graph(setting, features=3)
    small = made(graph)
    index = graph.train_mask.nonzero().squeeze(1)
    assert torch.equal(small.hard_labels[small.cluster[index]], graph.y[index])


def test_where_all_nodes_are_labelled_the_labels_are_hard(make_graph):
    graph = make_graph("inductive")
    small = made(graph)
    assert small.y.dtype == torch.int64
    assert torch.equal(small.y[small.cluster[graph.train_mask]], graph.y[graph.train_mask])
    assert small.provenance.choices["teacher"] == "the labels themselves"


def test_hard_labels_are_the_likeliest_of_the_soft_ones(make_graph):
    graph = make_graph(features=3)
    soft, hard = made(graph, labels="soft"), made(graph, labels="hard")
    assert hard.y.dtype == torch.int64
    assert torch.equal(hard.y, soft.hard_labels)
    assert torch.equal(hard.x, soft.x)
    assert torch.equal(hard.cluster, soft.cluster)


@pytest.mark.parametrize("kind", KINDS)
def test_edges_are_those_between_clusters(kind, setting, make_graph):
    graph = make_graph(setting, **kind)
    assert made(graph).num_edges == 0
    small = made(graph, structure="edges", hops=1)
    group = small.cluster[seen_nodes(graph)]
    adjacency = dense(graph.view("train").inputs.adjacency).double()
    member = torch.eye(12, dtype=torch.float64)[group].T
    between = member @ adjacency @ member.T
    scale = (between.diagonal() + member.sum(1)).rsqrt()
    expected = (scale[:, None] * between * scale[None, :]).fill_diagonal_(0)
    found = small.adjacency()
    assert torch.allclose(found.double(), expected, atol=1e-6)
    assert not found.diagonal().any()
    assert bool((small.edge_weight > 0).all())
    assert torch.equal(found, found.T) != graph.directed


@pytest.mark.parametrize("teacher", ["ridge", "network"])
def test_poisoned_test_labels_change_nothing(teacher, setting, make_graph):
    graph = make_graph(setting)
    y = graph.y.clone()
    y[graph.test_mask] = (y[graph.test_mask] + 1) % 3
    clean, dirty = (made(each, teacher=teacher).tensors() for each in (graph, dataclasses.replace(graph, y=y)))
    assert clean.keys() == dirty.keys()
    assert all(torch.equal(clean[key], dirty[key]) for key in clean)


def test_every_budget_is_met_with_every_class(setting, make_graph):
    for graph in (make_graph(setting), make_graph(setting, sizes=(90, 8, 4), features=2)):
        for nodes in (3, 4, 7, 20, int(graph.train_mask.sum())):
            small = made(graph, nodes=nodes)
            assert small.num_nodes == nodes
            assert small.hard_labels.unique().tolist() == [0, 1, 2]
            assert bool(torch.isfinite(small.x).all())
            assert int(torch.bincount(small.cluster[seen_nodes(graph)], minlength=nodes).min()) >= 1


def hand_made(y, train, edges=(), features=None):
    size = len(y)
    rest = [node for node in range(size) if node not in set(train)]
    x = torch.randn(size, 4, generator=torch.Generator().manual_seed(0)) if features is None else features
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    return SourceGraph.build(
        name="hand-made",
        x=x,
        edge_index=torch.cat([edge_index, edge_index.flip(0)], 1),
        y=torch.tensor(y),
        train=torch.tensor(train),
        val=torch.tensor(rest[: len(rest) // 2], dtype=torch.long),
        test=torch.tensor(rest[len(rest) // 2 :], dtype=torch.long),
    )


@pytest.mark.parametrize("structure", ["none", "edges"])
def test_a_graph_without_edges(structure):
    graph = hand_made([0, 1, 2] * 10, list(range(15)))
    small = made(graph, nodes=6, structure=structure)
    assert small.num_edges == 0
    for one in range(6):
        assert torch.allclose(small.x[one], dense(graph.x)[small.cluster == one].mean(0), atol=1e-6)


def test_a_class_that_nobody_is_predicted_to_be_of_has_its_labelled_nodes():
    # Class 2 looks like class 0 everywhere: whoever is not labelled as it is taken for one of the others.
    y = [0] * 30 + [1] * 30 + [2] * 4
    features = torch.zeros(64, 3)
    features[:, 0] = 1
    features[30:60] = torch.tensor([0.0, 1.0, 0.0])
    graph = hand_made(y, [*range(10), *range(30, 40), 60, 61], features=features)
    for nodes in (3, 8, 22):
        small = made(graph, nodes=nodes)
        assert small.num_nodes == nodes
        assert small.hard_labels.unique().tolist() == [0, 1, 2]
        assert 1 <= int((small.hard_labels == 2).sum()) <= int((small.hard_labels[small.cluster] == 2).sum())


def test_a_rare_class_keeps_the_label_of_its_node(make_graph):
    graph = make_graph(sizes=(200, 190, 4))
    small = made(graph, nodes=6)
    assert small.y.dim() == 2
    assert float(small.y[-1, 2]) > 0.5


def test_what_is_chosen_is_the_same_for_every_budget_and_is_noted(make_graph):
    graph = make_graph(features=3)
    noted = [made(graph, nodes=nodes, weight="auto", spread="auto").provenance.choices for nodes in (3, 9, 30)]
    assert noted[0] == noted[1] == noted[2]
    assert "weight=alike" in noted[0]["tried"]


def test_known_labels_count_for_more_only_where_that_is_clearly_better(make_graph, monkeypatch):
    graph = make_graph(features=3)
    good = {"alike": 0.8, "labelled": 0.0}

    def chosen():
        return made(graph, weight="auto").provenance.choices["weight"]

    monkeypatch.setattr(clusters, "shown", lambda gathered, task: gathered)
    monkeypatch.setattr(Clusters, "gather", gathering(Clusters.gather))
    monkeypatch.setattr(Probe, "accuracy", lambda self, gathered: good[gathered.by.weight])
    monkeypatch.setattr(Clusters, "known", lambda self, task, taught: 0.85)
    assert chosen() == "alike"
    good["labelled"] = 0.801
    assert chosen() == "alike"
    good["labelled"] = 1.0
    assert chosen() == "labelled"
    good["alike"] = 0.86  # as much as the teacher knows, so there is nothing to win by known labels
    assert chosen() == "alike"


def gathering(gather):
    """``gather`` whose result remembers what gathered it."""

    class By(tuple):
        by = None

    def remembering(self, *given):
        found = By(gather(self, *given))
        found.by = self
        return found

    return remembering


@pytest.mark.parametrize(("common", "most", "spread"), [(0.0, 1.0, "means"), (0.0, 1e6, "nodes"), (30.0, 1.0, "nodes")])
def test_means_are_stretched_where_that_is_little_or_they_lie_close(common, most, spread, make_graph, monkeypatch):
    monkeypatch.setattr(clusters, "MOST_STRETCHED", most)
    plain = make_graph()
    graph = SourceGraph.build(
        name="close",
        x=dense(plain.x) - dense(plain.x).mean(0) + common,
        edge_index=plain.adjacency.edge_index,
        y=plain.y,
        train=plain.train_mask,
        val=plain.val_mask,
        test=plain.test_mask,
    )
    small = made(graph, spread="auto")
    assert small.provenance.choices["spread"] == spread
    assert torch.equal(small.x, made(graph, spread=spread).x)


@pytest.mark.parametrize(("linear", "mass"), [(0.9, "between"), (0.89, "between"), (0.6, "training")])
def test_another_mass_is_taken_only_where_a_linear_model_can_bear_it(linear, mass, make_graph, monkeypatch):
    monkeypatch.setattr(clusters, "shown", lambda gathered, task: gathered)
    monkeypatch.setattr(Clusters, "gather", gathering(Clusters.gather))
    monkeypatch.setattr(Probe, "linear", lambda self, found: linear if found.by.mass == "between" else 0.9)
    graph = make_graph()
    assert made(graph).provenance.choices["mass"] == "training"

    def of_shifted_nodes(*given, **options):
        taught = teach(*given, **options)
        return dataclasses.replace(taught, importance=torch.ones(3), frequencies=torch.tensor([0.5, 0.3, 0.2]))

    monkeypatch.setattr(clusters, "teach", of_shifted_nodes)
    assert made(graph).provenance.choices["mass"] == mass


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_labelled_nodes_can_count_as_much_as_all_others(kind, folded, make_graph, monkeypatch):
    graph = make_graph(**kind)
    monkeypatch.setattr(spread_features, "WIDTH", 3 if folded else graph.num_features)
    small = made(graph, weight="labelled", spread="means")
    weights = torch.ones(graph.num_nodes, dtype=torch.float64)
    weights[graph.train_mask] = (~graph.train_mask).sum() / graph.train_mask.sum()
    assert float(weights[graph.train_mask].sum()) == pytest.approx(float(weights[~graph.train_mask].sum()))
    rows = spread(graph, 2)
    for one in range(small.num_nodes):
        own = small.cluster == one
        expected = (weights[own, None] * rows[own]).sum(0) / weights[own].sum()
        assert torch.allclose(small.x[one].double(), expected, atol=1e-5)
    assert small.provenance.choices["weight"] == "labelled"


def test_where_all_nodes_are_labelled_none_can_count_for_more(make_graph):
    graph = make_graph("inductive")
    choices = made(graph, weight="auto").provenance.choices
    assert choices["weight"] == "alike"
    assert "tried" not in choices
    assert torch.equal(made(graph, weight="labelled").x, made(graph).x)


def test_stretched_features_are_spread_as_the_nodes_are(make_graph):
    graph = make_graph(features=6)
    means, nodes = (made(graph, spread=spread) for spread in ("means", "nodes"))
    assert torch.equal(means.y, nodes.y)
    assert torch.allclose(means.x.mean(0), nodes.x.mean(0), atol=1e-5)
    points = graph.view("train").inputs.features("gcn", 2)
    points = points if isinstance(points, torch.Tensor) else points.dense()
    middle = means.x.mean(0)
    own = torch.stack(
        [(points[means.cluster == k] - middle).square().sum(1).mean() for k in range(len(means.x))]
    ).mean()
    assert float((nodes.x - middle).square().sum(1).mean()) == pytest.approx(float(own), rel=1e-3)


def test_features_are_spread_once_whatever_is_tried(make_graph, monkeypatch):
    calls = []
    original = clusters.SpreadFeatures.of

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(clusters.SpreadFeatures, "of", counted)
    made(make_graph(), teacher="auto")
    assert len(calls) == 1


def test_without_validation_nodes_the_simplest_teacher_is_taken(make_graph):
    graph = make_graph()
    bare = dataclasses.replace(graph, val_mask=torch.zeros(graph.num_nodes, dtype=torch.bool))
    small = made(bare, teacher="auto")
    assert small.provenance.choices["teacher"] == "ridge"
    assert small.num_nodes == 12


def test_what_methods_go_on_from(make_graph):
    graph = make_graph(features=3)
    method = Clusters(teacher="ridge")
    task = method.task(graph, torch.tensor([5, 4, 3]), 0, identity="", device="cpu", callbacks=())
    found = method.prepared(task)
    assert torch.equal(found.task.labels, found.graph.hard_labels)
    assert torch.equal(found.task.taught.nodes, torch.arange(graph.num_nodes))
    assert torch.equal(found.task.taught.y, found.graph.hard_labels[found.graph.cluster])
    assert task.taught is None
    assert not found.graph.x.requires_grad


@st.composite
def soft_labels(draw):
    classes = draw(st.integers(2, 6))
    size = draw(st.integers(2 * classes, 60))
    stream = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    labels = (draw(st.sampled_from([0.3, 3.0, 30.0])) * torch.randn(size, classes, generator=stream)).softmax(1)
    labels[:classes] = torch.eye(classes)
    shares = torch.rand(classes, generator=stream, dtype=torch.float64) ** draw(st.sampled_from([0, 1, 6])) + 1e-3
    return labels, shares / shares.sum(), draw(st.integers(classes, size))


@given(soft_labels())
def test_mass_and_quota_of_any_labels(case):
    labels, shares, nodes = case
    mass = label_mass(nodes, shares)
    assert float(mass.sum()) == pytest.approx(nodes)
    assert float(mass.min()) > 1 - 1e-9
    above = mass > 1 + 1e-9
    if int(above.sum()) > 1:  # in proportion to each other
        ratio = mass[above] / shares[above]
        assert float(ratio.max() / ratio.min()) == pytest.approx(1)
    predicted = labels.argmax(1)
    quota = group_quota(nodes, labels, predicted, mass)
    assert int(quota.sum()) == nodes
    assert bool((quota >= 1).all())
    assert bool((quota <= torch.bincount(predicted, minlength=len(shares))).all())


@given(soft_labels())
def test_evening_leaves_no_class_without_a_node(case):
    labels, shares, _ = case
    own = labels.argmax(1)
    before = labels.clone()
    even = evened(labels, label_mass(len(labels), shares), own)
    assert set(even.argmax(1).tolist()) >= set(own.tolist())
    assert torch.allclose(even.sum(1), torch.ones(len(labels)), atol=1e-5)
    assert torch.equal(labels, before)


def test_evening_reaches_the_mass_where_labels_allow_it():
    stream = torch.Generator().manual_seed(0)
    labels = (0.9 * torch.eye(3)[torch.arange(12) % 3] + 0.1 * torch.rand(12, 3, generator=stream).softmax(1)) / 1.0
    mass = torch.tensor([4.1, 3.8, 4.1], dtype=torch.float64)
    even = evened(labels, mass, labels.argmax(1))
    assert torch.allclose(even.sum(0).double(), mass, atol=1e-4)


def test_quota_solves_for_the_mass():
    # Nodes predicted as class 0 are of class 1 by a third: balanced labels need more groups of class 0.
    labels = torch.cat([torch.tensor([[2 / 3, 1 / 3]]).repeat(50, 1), torch.tensor([[0.0, 1.0]]).repeat(50, 1)])
    quota = group_quota(20, labels, labels.argmax(1), torch.tensor([10.0, 10.0], dtype=torch.float64))
    assert quota.tolist() == [15, 5]


def test_by_balanced_accuracy_all_classes_have_the_same_mass(make_graph):
    graph = make_graph(sizes=(60, 30, 12))
    uneven, even = (made(graph, metric=metric) for metric in ("accuracy", "balanced-accuracy"))
    mass = [small.y.sum(0) if small.y.dim() == 2 else torch.bincount(small.y).float() for small in (uneven, even)]
    assert torch.allclose(mass[0], 12 * train_shares(graph).float(), atol=0.6)
    assert torch.allclose(mass[1], torch.full((3,), 4.0), atol=0.6)


@pytest.mark.parametrize(("mass", "part"), [("training", 0.0), ("between", 0.5), ("frequencies", 1.0)])
def test_mass_lies_between_training_labels_and_frequencies(mass, part, make_graph):
    graph = make_graph()
    method = Clusters(mass=mass)
    quota = torch.ones(graph.num_classes, dtype=torch.int64)
    task = method.task(graph, quota, 0, identity="", device="cpu", callbacks=())
    frequencies = torch.arange(1, graph.num_classes + 1).float()
    frequencies /= frequencies.sum()
    own = torch.bincount(task.train.y, minlength=graph.num_classes).double()
    expected = (own / own.sum()) ** (1 - part) * frequencies.double() ** part
    assert torch.allclose(method.shares(task, frequencies), expected / expected.sum())
    assert torch.allclose(method.shares(task), own / own.sum())


def test_the_last_digits_of_a_solution_do_not_decide_between_equal_remainders():
    """20, 12 and 7 of 39 labels in 9 groups: the first and the last class are owed 0.6154 of a group each."""
    population = torch.tensor([20, 12, 7])
    predicted = torch.repeat_interleave(torch.arange(3), population)
    mass = label_mass(9, population.double() / population.sum())
    found = set()
    for seed in range(50):
        noise = torch.randn(3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        labels = F.one_hot(predicted).float()
        found.add(tuple(group_quota(9, labels, predicted, mass * (1 + 2e-16 * noise)).tolist()))
    assert len(found) == 1
