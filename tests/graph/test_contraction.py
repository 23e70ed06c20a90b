from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from gcond.graph.contraction import (
    averages,
    coarsen_by_heavy_edges,
    coarsen_by_variation,
    contract,
    fewest,
    heavy_edge_sets,
    laplacian,
    neighbourhood_sets,
    numbering,
    smooth_signals,
)
from reference import coarsening as reference
from reference.coarsening import AtLeast


def start(rows, columns):
    return np.random.default_rng(0).standard_normal((rows, columns))


def weighted(graph, seed=0):
    """The graph's adjacency with irregular weights, so that no two costs tie."""
    stream = np.random.default_rng(seed)
    upper = np.triu(nx.to_numpy_array(graph, weight=None) * stream.uniform(0.5, 2, (len(graph), len(graph))), 1)
    return scipy.sparse.csr_matrix(upper + upper.T)


def geometric(nodes, seed, radius=0.3):
    return weighted(nx.random_geometric_graph(nodes, radius, seed=seed), seed)


GRAPHS = {
    "geometric": geometric(40, 1),
    "sparse and in pieces": geometric(40, 2, 0.14),
    "path": weighted(nx.path_graph(25)),
    "star": weighted(nx.star_graph(20)),
    "grid": weighted(nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6))),
    "scale-free": weighted(nx.barabasi_albert_graph(40, 2, seed=3)),
}
every_graph = pytest.mark.parametrize("weights", GRAPHS.values(), ids=GRAPHS.keys())


def indicators(cluster):
    return (np.asarray(cluster)[None, :] == np.arange(max(cluster) + 1)[:, None]).astype(float)


def restricted_error(weights, signals, cluster):
    """ε of the definition: the worst ‖x - Πx‖_L / ‖x‖_L for x in the span of the signals."""
    L = laplacian(weights).toarray()
    P = indicators(cluster)
    mean = P.T @ (P / P.sum(1, keepdims=True))
    A = reference.orthonormal(L, signals)
    return reference.semi_norm(L, A - mean @ A)


@every_graph
@pytest.mark.parametrize("level_ratio", [0.99, 0.3])
def test_one_level_equals_the_reference(weights, level_ratio):
    n = weights.shape[0]
    stream = np.random.default_rng(4)
    basis, mass = stream.standard_normal((n, 3)), stream.integers(1, 5, n).astype(float)
    for target in (1, n // 2, n - 2):
        found = neighbourhood_sets(weights, basis, mass, AtLeast(n, target), level_ratio)
        expected = reference.neighbourhood_sets(weights.toarray(), basis, mass, target, level_ratio)
        # The same set around two centres costs the same but for rounding.
        assert [sorted(members.tolist()) for members in found] == [sorted(members) for members in expected]
        assert expected


@every_graph
@pytest.mark.parametrize("target", [4, 10])
def test_all_levels_equal_the_reference(weights, target):
    signals = smooth_signals(weights, 5, start)
    found = coarsen_by_variation(weights, AtLeast(weights.shape[0], target), signals, 0.4)
    P, W, sigmas = reference.coarsen(weights.toarray(), signals, target, 0.4)
    assert np.array_equal(P > 0, indicators(found.cluster) > 0)
    assert np.allclose(P, indicators(found.cluster) / indicators(found.cluster).sum(1, keepdims=True))
    assert np.allclose(contract(weights, found.cluster, len(W)).toarray(), W)
    assert np.allclose(found.variations, sigmas, atol=1e-7)
    assert len(sigmas) > 1


@every_graph
@pytest.mark.parametrize("count", [1, 4, 10])
@pytest.mark.parametrize("share", [0.8, 0.5, 0.2])
def test_the_spectral_guarantee_holds(weights, count, share):
    n = weights.shape[0]
    signals = smooth_signals(weights, count, start)
    found = coarsen_by_variation(weights, AtLeast(n, int(share * n)), signals, 0.4)
    error = restricted_error(weights, signals, found.cluster)
    assert error <= found.bound + 1e-9
    # And what it means: the coarse graph measures a smooth signal as the graph itself does, but for ε.
    P = indicators(found.cluster)
    coarse = laplacian(contract(weights, found.cluster, len(P)))
    constants = np.ones((n, 1))
    for x in (np.hstack([signals, constants]) @ np.random.default_rng(5).standard_normal((signals.shape[1] + 1, 9))).T:
        small = P @ x / P.sum(1)
        before, after = np.sqrt(x @ (laplacian(weights) @ x)), np.sqrt(max(0, small @ (coarse @ small)))
        assert abs(after - before) <= error * before + 1e-7


def test_a_level_costs_no_more_than_its_sets():
    weights = GRAPHS["geometric"]
    n = weights.shape[0]
    signals = smooth_signals(weights, 6, start)
    basis = reference.orthonormal(laplacian(weights).toarray(), signals)
    sets = neighbourhood_sets(weights, basis, np.ones(n), AtLeast(n, 15), 0.99)
    step, size = numbering(sets, n)
    sigma = reference.semi_norm(laplacian(weights).toarray(), basis - averages(basis, step, np.ones(n), size)[step])
    costs = [reference.subgraph_cost(weights.toarray(), basis, np.ones(n), s) * (len(s) - 1) for s in sets]
    assert 0 < sigma**2 <= sum(costs) + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_smooth_signals_survive_better_than_under_contractions_at_random(seed):
    weights = geometric(60, seed, 0.25)
    n = weights.shape[0]
    signals = smooth_signals(weights, 4, start)
    found = coarsen_by_variation(weights, AtLeast(n, 30), signals, 0.99).cluster
    stream = np.random.default_rng(seed)
    errors = []
    for _ in range(20):
        upper = scipy.sparse.triu(weights, 1).tocoo()
        values = stream.permutation(upper.data) ** 8
        shuffled = scipy.sparse.csr_matrix((values, (upper.row, upper.col)), shape=(n, n))
        chance = coarsen_by_heavy_edges((shuffled + shuffled.T).tocsr(), AtLeast(n, max(found) + 1), 0.99).cluster
        errors.append(restricted_error(weights, signals, chance))
    assert restricted_error(weights, signals, found) < min(errors)


def test_what_is_constant_on_components_costs_nothing():
    weights = GRAPHS["sparse and in pieces"]
    found = coarsen_by_variation(weights, AtLeast(40, 1), np.ones((40, 1)), 0.99)
    assert max(found.variations) == 0
    _, component = scipy.sparse.csgraph.connected_components(weights, directed=False)
    assert np.array_equal(found.cluster, component)  # both number by the first node


@every_graph
def test_signals_are_the_first_eigenvectors_after_the_constants(weights):
    components = scipy.sparse.csgraph.connected_components(weights)[0]
    L = laplacian(weights).toarray()
    values = np.linalg.eigvalsh(L)
    found = smooth_signals(weights, 5, start)
    assert found.shape[1] == min(5, len(L) - components)
    assert np.allclose(L @ found, found * values[components : components + found.shape[1]], atol=1e-8)


@pytest.mark.slow
def test_large_graphs_have_the_same_signals():
    pieces = [geometric(n, n, 0.08) for n in (700, 500)]
    weights = scipy.sparse.block_diag([*pieces, scipy.sparse.csr_matrix((3, 3))], format="csr")
    components = scipy.sparse.csgraph.connected_components(weights)[0]
    L = laplacian(weights)
    found = smooth_signals(weights, 4, start)
    values = np.linalg.eigvalsh(L.toarray())[components : components + 4]
    assert components > 4
    assert np.allclose(np.linalg.eigvalsh(found.T @ (L @ found)), values, rtol=1e-3)
    assert np.allclose(found.T @ found, np.eye(4), atol=1e-8)


def test_no_more_signals_than_there_are():
    assert smooth_signals(scipy.sparse.csr_matrix((4, 4)), 3, start).shape == (4, 0)
    assert smooth_signals(weighted(nx.path_graph(3)), 10, start).shape == (3, 2)


@st.composite
def partitions(draw):
    n = draw(st.integers(2, 12))
    groups = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    sets = [np.flatnonzero(np.array(groups) == g) for g in set(groups)]
    return n, [members for members in sets if len(members) > 1], draw(st.integers(0, 99))


@given(partitions())
def test_contracting_is_the_dense_product(case):
    n, sets, seed = case
    step, size = numbering(sets, n)
    assert sorted(set(step.tolist())) == list(range(size))
    assert all(len(set(step[members].tolist())) == 1 for members in sets)
    dense = np.random.default_rng(seed).integers(0, 3, (n, n)).astype(float)  # directed, with a diagonal
    P = indicators(step)
    expected = P @ dense @ P.T
    np.fill_diagonal(expected, 0)
    assert np.array_equal(contract(scipy.sparse.csr_matrix(dense), step, size).toarray(), expected)


def test_numbering_follows_the_first_members():
    step, size = numbering([np.array([4, 1]), np.array([5, 3])], 6)
    assert size == 4
    assert step.tolist() == [0, 1, 2, 3, 1, 3]


def test_heavy_edges_are_the_greedy_matching():
    weights = GRAPHS["geometric"]
    n = weights.shape[0]
    W = weights.toarray()
    edges = sorted(
        ((i, j) for i in range(n) for j in range(i + 1, n) if W[i, j]),
        key=lambda e: -W[e] / max(W[e[0]].sum(), W[e[1]].sum()),
    )
    expected, used = [], set()
    for i, j in edges:
        if not {i, j} & used:
            used |= {i, j}
            expected.append([i, j])
    found = [sorted(pair.tolist()) for pair in heavy_edge_sets(weights, AtLeast(n, 1), 0.99)]
    assert found == expected
    assert nx.is_maximal_matching(nx.from_numpy_array(W), {tuple(pair) for pair in found})


def test_the_leaves_of_a_star_go_in_pairs():
    weights = weighted(nx.star_graph(999))
    sets = heavy_edge_sets(weights, AtLeast(1000, 1), 0.99)
    assert len(sets) == 500
    assert sorted(np.concatenate(sets).tolist()) == list(range(1000))


@every_graph
@pytest.mark.parametrize("level_ratio", [0.2, 0.99])
def test_the_target_is_met_exactly_where_components_allow_it(weights, level_ratio):
    n = weights.shape[0]
    components, component = scipy.sparse.csgraph.connected_components(weights, directed=False)
    signals = smooth_signals(weights, 3, start)
    for target in (1, 7, n - 1, n):
        for found in (
            coarsen_by_variation(weights, AtLeast(n, target), signals, level_ratio),
            coarsen_by_heavy_edges(weights, AtLeast(n, target), level_ratio),
        ):
            assert len(np.unique(found.cluster)) == max(target, components)
            pairs = np.unique(np.stack([found.cluster, component]), axis=1)
            assert pairs.shape[1] == len(np.unique(found.cluster))  # no cluster lies in two components


@pytest.mark.parametrize(("n", "ratio", "expected"), [(100, 0.3, 70), (100, 0.99, 1), (5, 0.1, 4), (3, 0.5, 2)])
def test_a_level_leaves_so_many(n, ratio, expected):
    assert fewest(n, ratio) == pytest.approx(expected, abs=1)  # 100 · (1 - 0.99) is a little more than one
    assert fewest(n, ratio) < n
