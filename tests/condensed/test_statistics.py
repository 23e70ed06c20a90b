"""Statistics against NetworkX and PyG, and against the paper's own table."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.utils import homophily as pyg_homophily

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.graph.source_graph import SourceGraph
from gcond.graph.statistics import density, edge_homophily


def source(edges, y, *, n, directed=False, weight=None, listed=None):
    train = torch.zeros(n, dtype=torch.bool)
    train[: n // 2] = True
    return SourceGraph.build(
        name="tiny",
        x=torch.ones(n, 3),
        edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T,
        edge_weight=weight,
        y=torch.as_tensor(y),
        train=train,
        val=torch.tensor([n - 2]),
        test=torch.tensor([n - 1]),
        directed=directed,
        listed_edges=listed,
    )


def random_graph(seed, n=30, p=0.2, *, directed=False):
    graph = networkx.gnp_random_graph(n, p, seed=seed, directed=directed)
    y = np.random.default_rng(seed).integers(0, 3, n)
    y[:3] = [0, 1, 2]
    return graph, y


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_source_graph_agrees_with_networkx_and_pyg(seed, directed):
    graph, y = random_graph(seed, directed=directed)
    found = source(list(graph.edges), y, n=30, directed=directed).statistics
    assert found.nodes == graph.number_of_nodes()
    assert found.edges == graph.number_of_edges()
    # NetworkX leaves the diagonal out of the places that an edge could be; the paper does not.
    assert found.density == pytest.approx(networkx.density(graph) * 29 / 30)
    edge_index = torch.tensor(list(graph.edges)).T
    assert found.homophily == pytest.approx(pyg_homophily(edge_index, torch.as_tensor(y), method="edge"))
    same = sum(y[a] == y[b] for a, b in graph.edges)
    assert found.homophily == pytest.approx(same / graph.number_of_edges())


@pytest.mark.parametrize("edges", [5429, 5278])
def test_density_of_cora_as_in_the_paper(edges):
    assert density(2708, edges) == pytest.approx(2 * edges / 2708**2)
    assert round(100 * density(2708, 5429), 2) == 0.15
    assert round(100 * density(70, 2128), 2) == 86.86


def test_density_counts_the_edges_as_listed():
    found = source([(0, 1), (1, 2)], [0, 1, 0, 1, 0, 1], n=6, listed=5).statistics
    assert (found.edges, found.listed_edges) == (2, 5)
    assert found.density == pytest.approx(2 * 5 / 36)


def test_light_edges_of_a_source_count_as_any_other():
    edges, weight = [(0, 1), (2, 3), (0, 2)], torch.tensor([0.1, 0.2, 0.3])
    found = source(edges, [0, 0, 1, 1, 0, 1, 0, 1], n=8, weight=weight).statistics
    assert found.homophily == pytest.approx(2 / 3)


def test_class_nodes_of_a_source_are_its_training_nodes():
    found = source([(0, 1)], [0, 1, 1, 1, 0, 0, 0, 0], n=8).statistics
    assert found.class_nodes == (1, 3)


def condensed(edges, weight, y, n):
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    return CondensedGraph(torch.ones(n, 2), torch.as_tensor(y), edge_index, torch.tensor(weight, dtype=torch.float32))


def both_ways(edges):
    return [*edges, *[(b, a) for a, b in edges]]


def test_light_edges_count_in_density_but_not_in_homophily():
    edges = [(0, 1), (1, 2), (2, 3)]
    weight = [0.9, 0.49, 0.5]
    found = condensed(both_ways(edges), weight * 2, [0, 0, 1, 0], 4).statistics
    assert found.edges == 3
    assert found.density == pytest.approx(6 / 16)
    assert found.homophily == pytest.approx(1 / 2)  # 0-1 agrees, 2-3 does not, 1-2 is too light


def test_a_condensed_graph_agrees_with_networkx_and_pyg():
    graph, y = random_graph(5)
    weight = np.random.default_rng(5).random(graph.number_of_edges()).tolist()
    found = condensed(both_ways(list(graph.edges)), weight * 2, y, 30).statistics
    heavy = [edge for edge, w in zip(graph.edges, weight, strict=True) if w >= 0.5]
    assert found.edges == graph.number_of_edges()
    assert found.homophily == pytest.approx(pyg_homophily(torch.tensor(heavy).T, torch.as_tensor(y), method="edge"))


def test_one_way_edges_of_a_condensed_graph_count_once_each():
    found = condensed([(0, 1), (1, 2), (2, 0)], [1, 1, 1], [0, 1, 0], 3).statistics
    assert found.edges == 3
    assert found.density == pytest.approx(3 / 9)


def test_no_structure_has_no_homophily():
    found = condensed([], [], [0, 1, 1], 3).statistics
    assert (found.edges, found.density, found.homophily) == (0, 0.0, None)
    assert found.class_nodes == (1, 2)


def test_soft_labels_count_as_their_likeliest_class():
    y = torch.tensor([[0.6, 0.4], [0.1, 0.9], [0.2, 0.8]])
    graph = CondensedGraph(torch.ones(3, 2), y, torch.tensor([[1, 2], [2, 1]]), torch.ones(2))
    found = graph.statistics
    assert found.class_nodes == (1, 2)
    assert found.homophily == 1.0


def test_unlabelled_ends_do_not_count():
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    assert edge_homophily(edge_index, torch.tensor([0, 0, -1, -1])) == 1.0


def test_bytes_are_those_of_the_tensors():
    found = condensed(both_ways([(0, 1)]), [1, 1], [0, 1], 2).statistics
    assert found.bytes == 2 * 2 * 4 + 2 * 8 + 2 * 2 * 8 + 2 * 4


@given(st.integers(2, 12), st.data())
def test_relabelling_the_nodes_changes_nothing(n, data):
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    weight = data.draw(st.lists(st.floats(0, 1, width=32), min_size=len(edges), max_size=len(edges)))
    y = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    order = data.draw(st.permutations(range(n)))
    moved = [0] * n
    for old, new in enumerate(order):
        moved[new] = y[old]
    first = condensed(both_ways(edges), weight * 2, y, n).statistics
    renamed = [(order[a], order[b]) for a, b in edges]
    second = condensed(both_ways(renamed), weight * 2, moved, n).statistics
    assert first == second
