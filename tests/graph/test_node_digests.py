from __future__ import annotations

import dataclasses

import pytest
import torch
from tests.streamed import packed, small_pieces

from gcond.errors import GcondError
from gcond.graph.node_digests import NodeDigests
from gcond.graph.node_ids import NodeIds
from gcond.linalg.sparse import SparseMatrix, dense


def test_dense_and_sparse_features_have_the_same(make_graph):
    import scipy.sparse

    graph = make_graph(density=0.3, features=60)
    other = dense(graph.x) if isinstance(graph.x, SparseMatrix) else None
    if other is None:
        other = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(graph.x.numpy()))
    found, again = NodeDigests.of(graph), NodeDigests.of(dataclasses.replace(graph, x=other))
    assert torch.equal(found.features, again.features)
    assert len(found.features.unique()) == graph.num_nodes


def test_a_change_shows_where_it_is(make_graph):
    graph = make_graph()
    x = dense(graph.x).clone()
    x[7, 3] = torch.nextafter(x[7, 3], torch.tensor(torch.inf))
    found, other = NodeDigests.of(graph), NodeDigests.of(dataclasses.replace(graph, x=x))
    assert (found.features != other.features).nonzero().tolist() == [[7]]
    assert torch.equal(found.edges, other.edges)
    weights = graph.adjacency.values.clone()
    weights[0] = 2
    heavier = graph.adjacency.with_values(weights, symmetric=False)
    other = NodeDigests.of(dataclasses.replace(graph, adjacency=heavier))
    assert (found.edges != other.edges).nonzero().tolist() == [[int(graph.adjacency.row_index[0])]]


@pytest.mark.parametrize("shape", [{}, {"features": 60, "density": 0.05}, {"directed": True, "weighted": True}])
@pytest.mark.parametrize("named", [False, True])
def test_a_graph_on_disk_has_the_same(shape, named, make_graph, tmp_path):
    graph = make_graph(**shape)
    if named:
        graph = dataclasses.replace(graph, ids=NodeIds.of([f"n{row}" for row in range(graph.num_nodes)], len(graph.y)))
    with small_pieces():
        there = NodeDigests.of(packed(graph, tmp_path)).tensors()
    here = NodeDigests.of(graph).tensors()
    assert ("ids" in there) == named
    assert there.keys() == here.keys()
    assert all(torch.equal(there[name], here[name]) for name in here)


def test_labels_are_of_training_nodes_alone(graph):
    found = NodeDigests.of(graph)
    assert torch.equal(found.labels != 0, graph.train_mask)
    if graph.setting == "inductive":
        assert not bool(found.features[~graph.train_mask].any())
        assert not bool(found.edges[~graph.train_mask].any())


def test_tensors_that_do_not_fit_are_refused(make_graph):
    found = NodeDigests.of(make_graph()).tensors()
    assert torch.equal(NodeDigests.from_tensors(found).labels, found["labels"])
    assert NodeDigests.from_tensors({}) is None
    with pytest.raises(GcondError, match="not complete"):
        NodeDigests.from_tensors({key: value for key, value in found.items() if key != "edges"})
    with pytest.raises(GcondError, match="do not fit together"):
        NodeDigests.from_tensors(found | {"edges": found["edges"][:-1]})
    with pytest.raises(GcondError, match="do not fit together"):
        NodeDigests.from_tensors(found | {"edges": found["edges"].long()})
