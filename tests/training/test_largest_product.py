"""The estimate by which threads are given out: it grows with the graph, and counts no more than is computed."""

from __future__ import annotations

from gcond import methods
from gcond.graph.budget import nodes_per_class
from gcond.models import GCN, MLP, SGC
from gcond.runtime.threads import SPARSE, deserved
from gcond.training.largest_product import largest_product

HIDDEN, FEATURES, CLASSES = 256, 12, 3


def product(graph, model=None, part="train"):
    return largest_product(model or GCN(hidden=HIDDEN), graph.view(part), CLASSES)


def task_of(graph, method, nodes):
    quota = nodes_per_class(nodes, graph.class_counts())
    return method.task(graph, quota, 0, identity="", device="cpu", callbacks=())


def test_dense_features_by_the_first_weight(make_graph):
    graph = make_graph()
    entries = SPARSE * graph.adjacency.nnz
    assert product(graph) == max(graph.num_nodes * FEATURES * HIDDEN, entries * HIDDEN)
    assert product(graph, MLP(hidden=HIDDEN, layers=2)) == len(graph.view("train").nodes) * FEATURES * HIDDEN


def test_a_model_that_propagates_beforehand_multiplies_labelled_rows_alone(make_graph):
    graph = make_graph()
    assert product(graph, SGC()) == len(graph.view("train").nodes) * FEATURES * CLASSES


def test_a_condensed_graph_without_edges_has_no_product_with_them(make_graph):
    small = methods.GCondX(epochs=0, init="sample", probe_every=0)
    graph = make_graph()
    view = gcond_x_view(graph, small)
    assert largest_product(GCN(hidden=HIDDEN), view, CLASSES) == 9 * FEATURES * HIDDEN


def gcond_x_view(graph, method):
    import gcond

    return gcond.condense(graph, method=method, nodes=9).view()


def test_more_synthetic_nodes_are_more_pairs(make_graph):
    graph, method = make_graph(), methods.GCond()
    few, many = (method.largest_product(task_of(graph, method, nodes)) for nodes in (9, 18))
    assert many > 3 * few
    assert deserved(many) == 1


def test_methods_that_multiply_nothing_have_one_thread(make_graph):
    graph = make_graph()
    for method in (methods.Random(), methods.Coarsening()):
        assert method.largest_product(task_of(graph, method, 9)) == 0
    herding = methods.Herding()
    assert herding.largest_product(task_of(graph, herding, 9)) == product(graph, GCN(hidden=HIDDEN))
