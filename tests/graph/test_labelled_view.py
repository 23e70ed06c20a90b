"""Views of a graph: the same nodes in another order, on propagated features, or without a way back."""

from __future__ import annotations

import pytest
import torch

from gcond.graph.inputs import Chain, Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.linalg.sparse import SparseMatrix, dense


def sorts(make_graph, setting):
    yield make_graph(setting)
    yield make_graph(setting, features=60, density=0.05)
    yield make_graph(setting, directed=True, weighted=True)
    # Large and thin enough that a few nodes do not see everyone.
    yield make_graph(setting, sizes=(90, 80, 70), features=60, density=0.05)


@pytest.mark.parametrize("form", ["gcn", "mean", "laplacian"])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_propagated_is_the_product_at_the_labelled_nodes(form, hops, setting, make_graph):
    for graph in sorts(make_graph, setting):
        view = graph.view("train")
        some = LabelledView(view.inputs, view.nodes[[5, 0, 3]], view.y[[5, 0, 3]], view.source_index)
        operator = getattr(view.inputs, form).to_dense().double()
        expected = (torch.linalg.matrix_power(operator, hops) @ dense(view.inputs.x).double()).float()
        for each in (view, some):
            found = each.propagated(hops, form)
            assert isinstance(found, torch.Tensor)
            torch.testing.assert_close(found, expected[each.nodes], rtol=1e-4, atol=1e-6)


def test_rows_of_a_chain_are_those_of_all_of_it(make_graph):
    for shape in ({"density": 0.05}, {"density": 0.05, "directed": True, "weighted": True}):
        chain = make_graph(features=60, **shape).view("train").inputs.features("gcn", 2)
        assert isinstance(chain, Chain)
        index = torch.tensor([7, 0, 3, 7])
        assert torch.equal(chain.rows(index), chain.dense()[index])
        some = Chain((*chain.operators, torch.eye(chain.x.shape[0])), chain.x)
        assert torch.equal(some.rows(index), some.dense()[index])


def test_propagated_zero_times_is_the_features(graph):
    view = graph.view("train")
    assert torch.equal(view.propagated(0), dense(view.inputs.x)[view.nodes])


def test_by_class_is_the_same_view_in_order(graph):
    view = graph.view("train")
    order = view.by_class()
    assert order.y.tolist() == sorted(view.y.tolist())
    assert not torch.equal(order.y, view.y)
    pairs = [set(zip(v.nodes.tolist(), v.y.tolist(), strict=True)) for v in (view, order)]
    assert pairs[0] == pairs[1]
    assert order.inputs is view.inputs
    assert torch.equal(order.source_index, view.source_index)
    for label in range(3):  # nodes of one class keep their order
        assert torch.equal(order.nodes[order.y == label], view.nodes[view.y == label])


def test_by_class_gives_the_source_s_own_labels(graph):
    order = graph.view("train").by_class()
    assert torch.equal(graph.y[order.source_index[order.nodes]], order.y)


def test_detached_keeps_nodes_and_labels():
    x, a = torch.rand(4, 3).requires_grad_(), torch.rand(4, 4).requires_grad_()
    view = LabelledView(Inputs(x, a), torch.tensor([2, 0]), torch.tensor([0, 1]), torch.arange(4))
    bare = view.detached()
    assert not bare.inputs.x.requires_grad
    assert not bare.inputs.adjacency.requires_grad
    assert torch.equal(bare.inputs.x, x)
    assert torch.equal(bare.inputs.adjacency, a)
    assert torch.equal(bare.nodes, view.nodes)
    assert torch.equal(bare.y, view.y)


def test_a_real_graph_s_features_are_as_sparse_as_they_were(make_graph):
    view = make_graph(features=60, density=0.05).view("train")
    assert isinstance(view.detached().inputs.x, SparseMatrix)
    assert isinstance(view.by_class().inputs.x, SparseMatrix)
