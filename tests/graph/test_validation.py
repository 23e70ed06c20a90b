"""Every refusal of a raw graph, with its sentence, and every repair."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

from gcond.errors import GcondError
from gcond.graph import validation as checks
from gcond.graph.source_graph import SourceGraph
from gcond.linalg.sparse import SparseMatrix


def raw(**changes):
    """A path 0-1-2-3 with two classes, as raw tensors; features dense."""
    values = {
        "name": "path",
        "x": torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]),
        "edge_index": torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]),
        "y": torch.tensor([0, 1, 0, 1]),
        "train": torch.tensor([True, True, False, False]),
        "val": torch.tensor([False, False, True, False]),
        "test": torch.tensor([False, False, False, True]),
    }
    return values | changes


def build(**changes):
    return SourceGraph.build(**raw(**changes))


def sparse(rows, columns, values, shape):
    return SparseMatrix.from_scipy(scipy.sparse.csr_matrix((np.array(values), (rows, columns)), shape=shape))


NONE = torch.zeros(4, dtype=torch.bool)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"setting": "seductive"}, "unknown setting 'seductive': choose transductive or inductive"),
        # features
        ({"x": torch.ones(4)}, "features have shape [4]: they must be [nodes, features]"),
        ({"x": torch.ones(4, 0)}, "features have shape [4, 0]: there must be at least one node and one feature"),
        ({"x": torch.ones(0, 2)}, "features have shape [0, 2]: there must be at least one node and one feature"),
        (
            {"x": sparse([], [], [], (0, 3))},
            "features have shape [0, 3]: there must be at least one node and one feature",
        ),
        (
            {"x": torch.tensor([[1.0, 2], [3, torch.nan], [5, 6], [7, 8]])},
            "the feature of node 1, column 1 is nan: every feature must be a finite number",
        ),
        (
            {"x": torch.tensor([[1.0, 2], [3, 4], [-torch.inf, 6], [7, 8]])},
            "the feature of node 2, column 0 is -inf: every feature must be a finite number",
        ),
        (
            {"x": torch.tensor([[1.0, 2], [3, 4], [5, 1e300], [7, 8]], dtype=torch.float64)},
            "the feature of node 2, column 1 is inf: every feature must be a finite number",
        ),
        (
            {"x": sparse([3], [0], [np.nan], (4, 2))},
            "the feature of node 3, column 0 is nan: every feature must be a finite number",
        ),
        (
            {"x": sparse([0, 3], [1, 0], [1.0, 1e300], (4, 2))},
            "the feature of node 3, column 0 is inf: every feature must be a finite number",
        ),
        ({"x": torch.ones(4, 2, dtype=torch.complex64)}, "complex numbers are not usable here: give real ones"),
        # labels
        ({"y": torch.tensor([0, 1])}, "there are 2 labels for 4 nodes: there must be one class id per node"),
        ({"y": torch.zeros(4, 2)}, "labels have shape [4, 2]: there must be one class id per node"),
        (
            {"y": torch.tensor([0, 1.5, 0, 1])},
            "labels are not whole numbers: each must be a class id, or -1 for unlabelled",
        ),
        (
            {"y": torch.tensor([0, torch.nan, 0, 1])},
            "labels are not whole numbers: each must be a class id, or -1 for unlabelled",
        ),
        (
            {"y": torch.zeros(4, dtype=torch.complex64)},
            "labels are complex numbers: each must be a class id, or -1 for unlabelled",
        ),
        ({"y": torch.tensor([0, 1, -2, 1])}, "label -2 is out of range: class ids start at 0, and -1 means unlabelled"),
        ({"y": torch.full((4,), -1)}, "no node is labelled: class ids start at 0"),
        ({"y": torch.tensor([0, 1, 2, 1]), "num_classes": 2}, "label 2 is out of range: there are 2 classes, 0 to 1"),
        (
            {"y": torch.tensor([0, 1, 2, 1]), "class_names": ("a", "b")},
            "label 2 is out of range: there are 2 classes, 0 to 1",
        ),
        (
            {"num_classes": 2, "class_names": ("a", "b", "c")},
            "there are 3 class names for 2 classes: give one name per class",
        ),
        (
            {"y": torch.tensor([0, 1, 10**12, 1])},
            "there are 1000000000001 classes for 4 nodes: every class needs a node, so number them from 0 on",
        ),
        (
            {"num_classes": 10**12},
            "there are 1000000000000 classes for 4 nodes: every class needs a node, so number them from 0 on",
        ),
        # masks
        (
            {"train": torch.ones(4, 3, dtype=torch.bool)},
            "the train mask has 3 columns: choose one split, for example mask[:, 0]",
        ),
        ({"val": NONE[:3]}, "the val mask has shape [3]: it must have one entry for each of 4 nodes"),
        ({"test": torch.tensor([0.5])}, "the test mask is float32: it must be a boolean mask or a list of node ids"),
        ({"test": torch.tensor([[1]])}, "the test mask is int64: it must be a boolean mask or a list of node ids"),
        ({"test": torch.tensor([3, 4])}, "the test nodes name node 4, but there are 4 nodes, 0 to 3"),
        ({"test": torch.tensor([3, -1])}, "the test nodes name node -1, but there are 4 nodes, 0 to 3"),
        ({"val": torch.tensor([1, 2])}, "1 nodes are both train and val: the masks must not overlap"),
        ({"test": torch.tensor([2, 3])}, "1 nodes are both val and test: the masks must not overlap"),
        (
            {"y": torch.tensor([0, 1, -1, 1])},
            "1 val nodes have no label: unlabelled nodes are allowed outside the masks only",
        ),
        ({"train": NONE}, "there is no training node: the train mask is empty"),
        ({"train": torch.tensor([0])}, "no training node of class 1: every class needs at least one"),
        (
            {"train": torch.tensor([0]), "class_names": ("cats", "dogs")},
            "no training node of class 'dogs': every class needs at least one",
        ),
        (
            {"num_classes": 4},
            "no training node of class 2, 3: every class needs at least one",
        ),
        # edges
        (
            {"edge_index": torch.zeros(6, 3, dtype=torch.long)},
            "edge_index has shape [6, 3]: it must be [2, edges], sources above targets",
        ),
        (
            {"edge_index": torch.zeros(2, dtype=torch.long)},
            "edge_index has shape [2]: it must be [2, edges], sources above targets",
        ),
        ({"edge_index": torch.zeros(2, 3)}, "edge_index is float32: node ids must be integers"),
        ({"edge_index": torch.zeros(2, 3, dtype=torch.bool)}, "edge_index is bool: node ids must be integers"),
        ({"edge_index": torch.tensor([[0, 4], [1, 1]])}, "an edge names node 4, but there are 4 nodes, 0 to 3"),
        ({"edge_index": torch.tensor([[0, 1], [1, -1]])}, "an edge names node -1, but there are 4 nodes, 0 to 3"),
        ({"edge_weight": torch.ones(5)}, "there are 5 edge weights for 6 edges: give one per edge"),
        (
            {"edge_weight": torch.tensor([1, 1, torch.nan, 1, 1, 1])},
            "the weight of edge 2 is nan: every weight must be a finite number",
        ),
        (
            {"edge_weight": torch.tensor([1.0, 1, 1, -0.5, 1, 1])},
            "edge 3 has weight -0.5: weights must not be negative",
        ),
        ({"edge_weight": torch.ones(6, dtype=torch.complex64)}, "complex numbers are not usable here: give real ones"),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(GcondError) as caught:
        build(**changes)
    assert str(caught.value) == message


def test_what_is_accepted_is_taken_as_it_is():
    graph = build()
    assert graph.notes == ()
    assert graph.num_classes == 2
    assert graph.x.dtype == torch.float32
    assert torch.equal(graph.adjacency.to_dense(), torch.diag(torch.ones(3), 1) + torch.diag(torch.ones(3), -1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool])
def test_features_of_any_real_type_become_float32(dtype):
    graph = build(x=raw()["x"].to(dtype))
    assert graph.x.dtype == torch.float32
    assert torch.equal(graph.x, raw()["x"].to(dtype).float())


@pytest.mark.parametrize("y", [torch.tensor([[0], [1], [0], [1]]), torch.tensor([0.0, 1.0, 0.0, 1.0])])
def test_labels_in_other_forms(y):
    assert build(y=y).y.tolist() == [0, 1, 0, 1]
    assert build(y=y).y.dtype == torch.int64


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16])
def test_masks_and_node_ids_are_the_same(dtype):
    by_ids = build(train=torch.tensor([1, 0], dtype=dtype), val=torch.tensor([2], dtype=dtype))
    assert torch.equal(by_ids.train_mask, raw()["train"])
    assert by_ids.sha256 == build().sha256


def test_many_classes_without_a_training_node_are_counted():
    y, train = torch.arange(9), torch.zeros(9, dtype=torch.bool)
    train[:2] = True
    parts = {"train": train, "val": torch.tensor([]), "test": torch.tensor([])}
    with pytest.raises(GcondError, match="no training node of class 2, 3, 4, 5, 6 and 2 more: every class"):
        checks.masks(parts, y, 9, ())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"y": torch.tensor([[0], [1], [0], [1]])},
        {"x": sparse([0, 1, 2, 3], [0, 1, 2, 3], np.ones(4, np.float32), (4, 40))},
        {"edge_weight": torch.tensor([1.0, 1, 2, 2, 3, 3])},
        {"train": torch.tensor([1, 1, 0, 0], dtype=torch.uint8)},
    ],
)
def test_what_the_caller_changes_later_does_not_reach_the_graph(changes):
    given = raw(**changes)
    graph = SourceGraph.build(**given)
    before = [tensor.clone() for tensor in graph._tensors().values()]
    for value in given.values():
        if isinstance(value, SparseMatrix):
            value.values.fill_(7)
            value.indices.fill_(0)
        elif isinstance(value, torch.Tensor):
            value.fill_(1)
    assert all(torch.equal(one, other) for one, other in zip(before, graph._tensors().values(), strict=True))


@pytest.mark.parametrize("x", [raw()["x"], sparse([0], [1], np.ones(1, np.float32), (4, 2))])
def test_features_that_are_handed_over_are_not_copied(x):
    kept = checks.features(x, copy=False)
    values = (part.values if isinstance(part, SparseMatrix) else part for part in (x, kept))
    assert len({part.data_ptr() for part in values}) == 1


def test_gradients_stay_outside():
    x = raw()["x"].requires_grad_()
    weight = torch.ones(6, requires_grad=True)
    y = torch.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    graph = build(x=x, edge_weight=weight, y=y)
    assert not graph.x.requires_grad
    assert not graph.adjacency.values.requires_grad
    assert graph.sha256 == build().sha256


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("x", "x"),
        ("y", "y"),
        ("edge_index", "edge_index"),
        ("edge_weight", "edge_weight"),
        ("train", "the train mask"),
        ("val", "the val mask"),
        ("test", "the test mask"),
    ],
)
def test_what_is_no_tensor_with_numbers_is_refused(key, what):
    tensor = raw(edge_weight=torch.ones(6))[key]
    refused = {
        "is a numpy.ndarray: give a torch tensor": tensor.numpy(),
        "is a list: give a torch tensor": tensor.tolist(),
        "is a str: give a torch tensor": "x",
        "is on the device 'meta', where tensors hold no numbers: give one with numbers": tensor.to("meta"),
    }
    if key != "x":
        layout = "is a tensor of layout sparse_coo: give a dense one, for example with to_dense()"
        refused[layout] = tensor.to_sparse()
    for message, value in refused.items():
        with pytest.raises(GcondError) as caught:
            build(**{key: value})
        assert str(caught.value) == f"{what} {message}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.bool])
@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse_coo, torch.Tensor.to_sparse_csr])
def test_sparse_features_of_torch_are_taken(convert, dtype):
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0], [7.0, 8.0]]).to(dtype)
    graph = build(x=convert(x))
    assert graph.sha256 == build(x=x).sha256
    if dtype.is_floating_point:
        assert build(x=convert(x).requires_grad_()).sha256 == graph.sha256


def test_repeated_entries_of_sparse_features_are_summed():
    x = torch.sparse_coo_tensor([[0, 0, 3], [1, 1, 0]], [1.0, 2.0, 4.0], (4, 2), check_invariants=True)
    expected = [[0, 3], [0, 0], [0, 0], [4, 0]]
    assert build(x=x).x.tolist() == expected
    x = torch.sparse_csr_tensor([0, 2, 2, 2, 3], [1, 1, 0], [1.0, 2.0, 4.0], (4, 2), check_invariants=False)
    assert build(x=x).x.tolist() == expected


def test_sparse_features_of_torch_that_are_no_matrix():
    off = {"check_invariants": False}
    outside = torch.sparse_coo_tensor([[0, 9], [0, 1]], [1.0, 2.0], (4, 2), **off)
    with pytest.raises(GcondError, match="an index of x is out of range: x is 4 by 2"):
        build(x=outside)
    outside = torch.sparse_csr_tensor([0, 1, 1, 1, 1], [9], [1.0], (4, 2), **off)
    with pytest.raises(GcondError, match="the arrays of 'x' do not fit together as a 4 by 2 matrix"):
        build(x=outside)
    with pytest.raises(GcondError, match="the feature of node 3, column 1 is nan"):
        build(x=torch.diag(torch.tensor([1.0, 1, 1, torch.nan]))[:, 2:].to_sparse_csr())
    with pytest.raises(GcondError, match="complex"):
        build(x=torch.eye(4, dtype=torch.complex64).to_sparse_csr())
    with pytest.raises(GcondError, match="complex"):
        build(x=torch.eye(4, dtype=torch.complex64).to_sparse_coo())
    with pytest.raises(GcondError, match=r"features have shape \[4, 2, 1\]"):
        build(x=torch.ones(4, 2, 1).to_sparse_coo())
    for x in (torch.eye(4).to_sparse_coo().to_sparse_csc(), torch.ones(4, 2).to_sparse(1)):
        with pytest.raises(GcondError, match=r"x is a tensor of layout sparse_.*: give a dense one"):
            build(x=x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_integer_masks_are_masks(dtype):
    given = {part: raw()[part].to(dtype) for part in ("train", "val", "test")}
    assert build(**given).sha256 == build().sha256
    assert not build(test=torch.zeros(4, dtype=dtype)).test_mask.any()


def test_node_ids_stay_ids():
    assert build(train=torch.tensor([0, 1])).train_mask.tolist() == [True, True, False, False]
    parts = {"train": torch.tensor([1, 0]), "val": torch.tensor([]), "test": torch.tensor([])}
    assert checks.masks(parts, torch.tensor([0, 1]), 2, ())["train"].tolist() == [True, True]  # both, of two nodes
    every = {"train": torch.tensor([2, 0, 1])} | {part: torch.tensor([]) for part in ("val", "test")}
    assert checks.masks(every, torch.tensor([0, 1, 0]), 2, ())["train"].all()


def test_an_empty_list_of_nodes_is_a_list():
    graph = build(val=torch.tensor([]), test=torch.tensor([], dtype=torch.long))
    assert not graph.val_mask.any()
    assert not graph.test_mask.any()
    with pytest.raises(GcondError, match=r"the val mask has shape \[0\]"):
        build(val=torch.zeros(0, dtype=torch.bool))


def test_repairs_are_made_and_said():
    edges = torch.tensor([[0, 1, 0, 0, 2, 3, 3], [1, 0, 1, 0, 2, 2, 1]])
    weight = torch.tensor([1.0, 1.0, 3.0, 9.0, 9.0, 2.0, 0.0])
    graph = build(edge_index=edges, edge_weight=weight)
    assert graph.notes == (
        "2 self-loops were dropped",
        "1 edge of weight 0 was dropped",
        "1 repeated edge was merged, the heaviest kept",
        "1 edge had no reverse and got one: the graph is used undirected",
        "1 edge weighed less than its reverse and got its weight",
    )
    expected = torch.zeros(4, 4)
    expected[0, 1] = expected[1, 0] = 3
    expected[2, 3] = expected[3, 2] = 2
    assert torch.equal(graph.adjacency.to_dense(), expected)
    assert graph.num_edges == 2


def test_a_pair_that_weighs_differently_both_ways_is_said():
    graph = build(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), edge_weight=torch.tensor([1.0, 3.0, 2.0, 2.0]))
    assert graph.notes == ("1 edge weighed less than its reverse and got its weight",)
    assert graph.adjacency.to_dense()[0, 1] == graph.adjacency.to_dense()[1, 0] == 3


def test_repairs_of_many_are_said_in_the_plural():
    edges = torch.tensor([[0, 1, 0, 0, 0, 2, 3, 0, 1, 1, 2, 2], [1, 0, 1, 1, 0, 2, 2, 2, 3, 2, 1, 0]])
    weight = torch.tensor([1.0, 5.0, 1.0, 1.0, 9.0, 9.0, 2.0, 0.0, 2.0, 1.0, 3.0, 0.0])
    assert build(edge_index=edges, edge_weight=weight).notes == (
        "2 self-loops were dropped",
        "2 edges of weight 0 were dropped",
        "2 repeated edges were merged, the heaviest kept",
        "2 edges had no reverse and got one: the graph is used undirected",
        "2 edges weighed less than their reverse and got its weight",
    )


def test_notes_of_the_caller_come_first():
    graph = build(edge_index=torch.tensor([[0, 0], [0, 1]]), notes=("read from a file",))
    assert graph.notes[0] == "read from a file"
    assert graph.notes[1] == "1 self-loop was dropped"


def test_directed_stays_directed():
    graph = build(edge_index=torch.tensor([[0, 1, 3, 3], [1, 2, 0, 3]]), directed=True)
    assert graph.notes == ("1 self-loop was dropped",)
    expected = torch.zeros(4, 4)
    expected[1, 0] = expected[2, 1] = expected[0, 3] = 1  # rows are targets
    assert torch.equal(graph.adjacency.to_dense(), expected)
    assert not graph.adjacency.symmetric
    assert graph.num_edges == 3
    assert torch.equal(graph.adjacency.T.to_dense(), expected.T)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64])
def test_node_ids_of_any_whole_type(dtype):
    assert build(edge_index=raw()["edge_index"].to(dtype)).sha256 == build().sha256


def test_no_edges_at_all():
    graph = build(edge_index=torch.empty(2, 0, dtype=torch.long))
    assert graph.num_edges == 0
    assert len(graph.sha256) == 64


@st.composite
def edge_lists(draw):
    n = draw(st.integers(1, 9))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30))
    weights = draw(st.lists(st.integers(1, 5), min_size=len(pairs), max_size=len(pairs)))
    return n, torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T, torch.tensor(weights, dtype=torch.float32)


@given(edge_lists())
def test_cleaning_is_that_of_pyg(case):
    n, edge_index, weight = case
    loopless, loopless_weight = remove_self_loops(edge_index, weight)
    expected, values = to_undirected(loopless, loopless_weight, num_nodes=n, reduce="max")
    matrix, repairs = checks.adjacency(edge_index, weight, n, directed=False)
    dense = torch.zeros(n, n)
    dense[expected[1], expected[0]] = values
    assert torch.equal(matrix.to_dense(), dense)
    assert matrix.nnz == expected.shape[1]
    given_edges = sorted((*edge.tolist(), float(w)) for edge, w in zip(edge_index.T, weight, strict=True))
    kept_edges = sorted((*edge.tolist(), float(w)) for edge, w in zip(expected.T, values, strict=True))
    assert (given_edges == kept_edges) == (not repairs)


@given(edge_lists())
def test_directed_cleaning_is_that_of_pyg(case):
    n, edge_index, weight = case
    expected, values = coalesce(*remove_self_loops(edge_index, weight), num_nodes=n, reduce="max")
    matrix, _ = checks.adjacency(edge_index, weight, n, directed=True)
    dense = torch.zeros(n, n)
    dense[expected[1], expected[0]] = values
    assert torch.equal(matrix.to_dense(), dense)


def csr(**changes):
    parts = {"indptr": torch.tensor([0, 1, 2]), "indices": torch.tensor([1, 0]), "values": torch.tensor([1.0, 2.0])}
    return checks.csr("the arrays of 'm'", **(parts | changes), shape=(2, 2))


def test_csr_of_arrays():
    assert csr().to_dense().tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": torch.tensor([0, 1])},
        {"indptr": torch.tensor([1, 1, 2])},
        {"indptr": torch.tensor([0, 3, 2])},
        {"indptr": torch.tensor([0, 1, 3])},
        {"indptr": torch.tensor([0.0, 1, 2])},
        {"indptr": torch.tensor([0, 1, 2], dtype=torch.uint32)},
        {"indptr": torch.tensor([0, 1, 2], dtype=torch.complex64)},
        {"indptr": torch.tensor([[0, 1, 2]])},
        {"indptr": torch.tensor(0)},
        {"indices": torch.tensor([1, 2])},
        {"indices": torch.tensor([-1, 0])},
        {"indices": torch.tensor([1])},
        {"indices": torch.tensor([1.0, 0])},
        {"indices": torch.tensor([1, 0], dtype=torch.uint64)},
        {"values": torch.ones(3)},
        {"values": torch.ones(2, 1)},
    ],
)
def test_arrays_that_are_no_matrix(changes):
    with pytest.raises(GcondError, match="the arrays of 'm' do not fit together as a 2 by 2 matrix"):
        csr(**changes)
