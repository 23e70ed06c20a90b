"""Features from edges: held to networkx and dense algebra, and to what each setting may see."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import gcond
from gcond.errors import GcondError
from gcond.graph.source_graph import SourceGraph
from gcond.graph.structural_features import (
    _pattern,
    core_numbers,
    position_columns,
    role_columns,
    structural_features,
    triangles,
)
from gcond.linalg.sparse import dense, gcn_normalise

PARTS = ("train", "val", "test")


def masks(graph):
    return [graph.mask(part) for part in PARTS]


def bare(graph, setting=None):
    """The same graph without its features."""
    parts = {part: graph.mask(part) for part in PARTS}
    edges = graph.adjacency.edge_index
    return SourceGraph.build(
        name="bare", x=None, edge_index=edges, y=graph.y, setting=setting or graph.setting, **parts
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("directed", [False, True])
def test_roles_as_networkx_has_them(seed, directed, make_graph):
    graph = make_graph(seed=seed, directed=directed, weighted=True)
    pattern = _pattern(graph.adjacency)
    known = nx.from_scipy_sparse_array(pattern)
    assert triangles(pattern).tolist() == list(nx.triangles(known).values())
    assert core_numbers(pattern).tolist() == list(nx.core_number(known).values())
    degree = np.array([known.degree(node) for node in known])
    roles = role_columns(graph.adjacency).numpy()
    np.testing.assert_allclose(roles[:, 0], np.log1p(degree), rtol=1e-6)
    np.testing.assert_allclose(roles[:, 2], list(nx.clustering(known).values()), atol=1e-6)
    walk = np.divide(pattern.toarray(), degree[:, None], where=degree[:, None] > 0, out=np.zeros(pattern.shape))
    np.testing.assert_allclose(roles[:, 4], np.diag(walk @ walk), atol=1e-6)


def test_positions_are_the_leading_eigenvectors(make_graph):
    adjacency = make_graph().adjacency
    n = adjacency.shape[0]
    whole = gcn_normalise(adjacency).to_dense().double()
    found = position_columns(adjacency).double()
    values, vectors = torch.linalg.eigh(whole)
    expected = (vectors * values).flip(1)
    expected = expected / expected.norm(dim=1, keepdim=True)
    # With as many columns as nodes nothing is left out, and rows have the same angles whatever the signs.
    assert found.shape == (n, n)
    torch.testing.assert_close(found @ found.T, expected @ expected.T, rtol=1e-3, atol=1e-3)


def test_a_graph_without_edges_has_features_that_are_finite():
    y = torch.arange(12) % 2
    for setting in ("transductive", "inductive"):
        graph = SourceGraph.build(
            name="dust",
            x=None,
            edge_index=torch.empty(2, 0, dtype=torch.long),
            y=y,
            train=torch.arange(4),
            val=torch.arange(4, 8),
            test=torch.arange(8, 12),
            setting=setting,
        )
        assert dense(graph.x).isfinite().all()
        assert gcond.load(graph.to_pyg(), setting=setting, features="structural").sha256 == graph.sha256


def test_said_recorded_and_the_same_each_time(graph):
    first, second = bare(graph), bare(graph)
    assert first.sha256 == second.sha256
    assert first.transform.kind == "structural"
    assert first.notes[-1] == f"there are no features, so {first.num_features} structural ones are made from the edges"
    x, again = structural_features(graph.adjacency, masks(graph), graph.setting, first.transform)
    assert torch.equal(x, first.x)
    assert again == first.transform


def test_a_part_sees_its_own_edges_only(make_graph):
    graph = make_graph("inductive")
    before = bare(graph)
    train = graph.train_mask
    edges = graph.adjacency.edge_index
    inside = train[edges[0]] & train[edges[1]]
    changed = SourceGraph.build(
        name="bare",
        x=None,
        edge_index=torch.cat([edges[:, inside], torch.combinations((~train).nonzero().squeeze(1)).T], 1),
        y=graph.y,
        setting="inductive",
        **{part: graph.mask(part) for part in PARTS},
    )
    assert torch.equal(before.x[train], changed.x[train])
    assert before.transform == changed.transform
    assert not torch.equal(before.x[~train], changed.x[~train])


def test_another_setting_makes_them_anew(make_graph):
    whole = bare(make_graph())
    parts = whole.with_setting("inductive")
    assert parts.sha256 == bare(make_graph(), "inductive").sha256
    assert parts.with_setting("transductive").sha256 == whole.sha256
    assert parts.num_features < whole.num_features  # places in one part mean nothing in another


def test_pyg_data_without_features(make_graph):
    data = make_graph().to_pyg()
    known = gcond.load(data, features="structural")
    data.x = None
    graph = gcond.load(data)
    assert graph.transform.kind == "structural"
    assert torch.equal(graph.x, known.x)
    assert "the 12 given features are replaced by" in known.notes[-1]
    assert gcond.load(graph, features="auto") is graph
    assert gcond.load(graph, features="structural") is graph
    with pytest.raises(GcondError, match="has structural features, and no others to make tf-idf"):
        gcond.load(data, features="tf-idf")
    with pytest.raises(GcondError, match="has no y"):
        gcond.load(Data(edge_index=data.edge_index))


def test_they_tell_communities_apart():
    graph = gcond.load("synthetic:small,nodes=600,classes=3,homophily=0.95,degree=12", features="structural")
    (score,) = gcond.evaluate(graph, runs=1, epochs=60, device="cpu")
    assert score.mean > 0.8
