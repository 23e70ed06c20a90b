"""Where X' starts: every row from its own class, by whichever way."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from gcond.graph.budget import nodes_per_class
from gcond.linalg.sparse import SparseMatrix, dense, take_rows
from gcond.matching.start import class_means, initial_features, root_mean_square
from gcond.methods.method import Task
from gcond.runtime.seeds import generator
from reference.selection import k_center

INITS = ["sample", "k-center", "means", "propagated-means", "noise"]
NODES = 11


def task_of(graph, nodes=NODES, seed=0):
    quota = nodes_per_class(nodes, graph.class_counts())
    return Task(graph.view("train"), graph.view("val"), graph.num_classes, quota, seed)


def sorts(make_graph, setting):
    """Dense and sparse features, and a directed graph."""
    yield make_graph(setting)
    yield make_graph(setting, features=60, density=0.05)
    yield make_graph(setting, directed=True, weighted=True)


def members(task, label):
    """The features of the training nodes of a class."""
    return dense(task.train.inputs.x)[task.candidates(label)]


def scipy_propagated(graph):
    """``Â² X`` of the graph that training sees, by SciPy in float64: [n, d]."""
    inputs = graph.view("train").inputs
    a = inputs.adjacency.to_scipy().astype(np.float64) + scipy.sparse.identity(inputs.num_nodes)
    scale = scipy.sparse.diags(1 / np.sqrt(np.asarray(a.sum(1)).ravel()))
    hat = (scale @ a @ scale).toarray()
    return torch.from_numpy(hat @ hat @ dense(inputs.x).double().numpy())


def is_row_of(rows, pool):
    """Which row of ``pool`` each of ``rows`` is; fails where it is none."""
    found = (rows[:, None] == pool[None]).all(2)
    assert bool(found.any(1).all())
    return found.int().argmax(1).tolist()


@pytest.mark.parametrize("init", INITS)
def test_shape_type_and_seed(init, setting, make_graph):
    for graph in sorts(make_graph, setting):
        x = initial_features(task_of(graph), init)
        assert x.shape == (NODES, graph.num_features)
        assert x.dtype == torch.float32
        assert x.is_contiguous()
        assert bool(x.isfinite().all())
        assert torch.equal(x, initial_features(task_of(dataclasses.replace(graph)), init))
        if init in ("sample", "noise"):
            assert not torch.equal(x, initial_features(task_of(graph, seed=1), init))


@pytest.mark.parametrize("init", ["sample", "k-center"])
def test_rows_are_nodes_of_their_own_class_each_once(init, setting, make_graph):
    for graph in sorts(make_graph, setting):
        task = task_of(graph)
        x = initial_features(task, init)
        for label in range(3):
            own = x[task.labels == label]
            assert len(own) == int(task.quota[label]) > 0
            chosen = is_row_of(own, members(task, label))
            if graph.num_features < 20:  # sparse rows may be equal
                assert len(set(chosen)) == len(own)


def test_k_center_covers_the_class(setting, make_graph):
    for graph in sorts(make_graph, setting):
        task = task_of(graph)
        x = initial_features(task, "k-center")
        for label in range(3):
            pool = members(task, label)
            chosen = k_center(pool.double().tolist(), int(task.quota[label]))
            assert torch.equal(x[task.labels == label], pool[chosen])


@pytest.mark.parametrize("init", ["means", "propagated-means"])
def test_means_are_those_of_k_means_in_the_class(init, setting, make_graph):
    for graph in sorts(make_graph, setting):
        task = task_of(graph)
        x = initial_features(task, init)
        for label in range(3):
            nodes = task.candidates(label)
            points = scipy_propagated(graph)[nodes] if init == "propagated-means" else members(task, label).double()
            found = KMeans(int(task.quota[label]), n_init=3, random_state=0).fit(points.float().double().numpy())
            centres = torch.from_numpy(found.cluster_centers_).float()
            torch.testing.assert_close(x[task.labels == label], centres, rtol=1e-4, atol=1e-5)


def test_one_node_a_class_is_the_mean_of_the_class(setting, make_graph):
    for graph in sorts(make_graph, setting):
        task = task_of(graph, nodes=3)
        means = torch.stack([members(task, label).mean(0) for label in range(3)])
        torch.testing.assert_close(initial_features(task, "means"), means)
        hat = scipy_propagated(graph)
        means = torch.stack([hat[task.candidates(label)].mean(0) for label in range(3)]).float()
        torch.testing.assert_close(initial_features(task, "propagated-means"), means, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("init", ["sample", "k-center", "means", "propagated-means"])
def test_as_many_as_there_are_takes_each_once(init, setting, make_graph):
    for graph in sorts(make_graph, setting):
        task = task_of(graph, nodes=int(graph.train_mask.sum()))
        x = initial_features(task, init)
        source = scipy_propagated(graph).float() if init == "propagated-means" else dense(task.train.inputs.x)
        for label in range(3):
            own, pool = x[task.labels == label], source[task.candidates(label)]
            assert len(own) == len(pool)
            distances = torch.cdist(own, pool, compute_mode="donot_use_mm_for_euclid_dist")
            matched = scipy.optimize.linear_sum_assignment(distances.numpy())
            assert float(distances[matched].max()) < 1e-5


def test_noise_has_the_scale_of_the_features(setting, make_graph):
    for scale in (1e-4, 1.0, 1e3):
        graph = make_graph(setting, sizes=(300, 300, 300), features=50)
        graph = dataclasses.replace(graph, x=graph.x * scale)
        task = task_of(graph, nodes=300)
        expected = float(dense(graph.x)[graph.train_mask].square().mean().sqrt())
        assert root_mean_square(take_rows(task.train.inputs.x, task.train.nodes)) == pytest.approx(expected, rel=1e-5)
        x = initial_features(task, "noise")
        assert float(x.square().mean().sqrt()) == pytest.approx(expected, rel=0.05)
        assert abs(float(x.mean())) < 0.05 * expected


def test_scale_of_sparse_features_counts_their_zeros(setting, make_graph):
    graph = make_graph(setting, features=60, density=0.05)
    assert isinstance(graph.x, SparseMatrix)
    expected = float(graph.x.to_dense()[graph.train_mask].square().mean().sqrt())
    task = task_of(graph)
    assert root_mean_square(take_rows(task.train.inputs.x, task.train.nodes)) == pytest.approx(expected, rel=1e-5)


def test_equal_points_are_repeated_and_nothing_is_made_up():
    points = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).repeat(5, 1)
    centres = class_means(points, 5, 0)
    assert centres.shape == (5, 2)
    assert sorted(set(map(tuple, centres.tolist()))) == [(1.0, 2.0), (3.0, 4.0)]
    exactly = class_means(points, 2, 0)
    assert sorted(map(tuple, exactly.tolist())) == [(1.0, 2.0), (3.0, 4.0)]


def test_k_means_does_not_depend_on_threads():
    """Threads would add in whichever order they finish, and the last bits would differ from run to run."""
    points = torch.randn(
        3000, 20, generator=generator(0, "points")
    ).double()  # rounding to float32 would hide most of it
    found = []
    for threads in (1, 2, 2, 4):
        with threadpool_limits(threads):
            found.append(class_means(points, 8, 0))
    assert all(torch.equal(found[0], other) for other in found)


def test_nothing_of_the_graph_is_in_what_is_not_propagated(make_graph):
    graph = make_graph()
    other = dataclasses.replace(graph, adjacency=make_graph(seed=3).adjacency)
    for init in INITS:
        same = torch.equal(initial_features(task_of(graph), init), initial_features(task_of(other), init))
        assert same == (init != "propagated-means")
