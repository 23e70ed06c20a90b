"""A person's own ``.npz``, and everything that can be wrong with it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

import gcond
from gcond.errors import GcondError

N = 9


def arrays(**changes):
    """A ring of nine nodes in three classes, in the gnn-benchmark layout; ``None`` leaves an array out."""
    ring = scipy.sparse.csr_matrix((np.ones(N), (np.arange(N), (np.arange(N) + 1) % N)), shape=(N, N))
    attributes = scipy.sparse.csr_matrix(np.arange(N * 4).reshape(N, 4) % 5 * 0.5)
    values = {"labels": np.arange(N) % 3}
    for prefix, matrix in (("adj", ring), ("attr", attributes)):
        for part in ("data", "indices", "indptr", "shape"):
            values[f"{prefix}_{part}"] = np.array(getattr(matrix, part))
    return {key: value for key, value in (values | changes).items() if value is not None}


@pytest.fixture
def save(tmp_path):
    def write(**changes):
        np.savez(tmp_path / "mine.npz", **arrays(**changes))
        return tmp_path / "mine.npz"

    return write


def test_reads_the_layout_and_leaves_features_alone(save):
    graph = gcond.load(save())
    x = graph.x if isinstance(graph.x, torch.Tensor) else graph.x.to_dense()
    np.testing.assert_array_equal(x.numpy(), np.arange(N * 4).reshape(N, 4) % 5 * 0.5)
    assert graph.name == "mine"
    assert graph.num_edges == N
    assert graph.transform.kind == "none"
    assert graph.y.tolist() == [0, 1, 2] * 3
    assert "drawn with seed 0" in graph.notes[0]


def test_rows_of_the_matrix_are_sources(save):
    graph = gcond.load(save(), directed=True)
    assert graph.adjacency.to_dense()[1, 0] == 1  # the edge from node 0 to node 1: row is the target
    assert graph.adjacency.to_dense()[0, 1] == 0


def test_repeated_edges_are_merged_as_everywhere_and_said(save):
    indptr = np.minimum(np.arange(N + 1) * 3, 3)  # 0-1 three times
    path = save(adj_data=np.array([2.0, 5.0, 1.0]), adj_indices=np.array([1, 1, 1]), adj_indptr=indptr)
    graph = gcond.load(path)
    assert graph.adjacency.to_dense()[1, 0] == 5
    assert "2 repeated edges were merged, the heaviest kept" in graph.notes


def test_repeated_attributes_are_summed_as_scipy_does(save):
    indptr = np.arange(N + 1) * 2
    graph = gcond.load(
        save(attr_data=np.ones(2 * N), attr_indices=np.full(2 * N, 3), attr_indptr=indptr), features="none"
    )
    x = graph.x if isinstance(graph.x, torch.Tensor) else graph.x.to_dense()
    assert x.tolist() == [[0, 0, 0, 2]] * N


def test_dense_attributes_weights_and_own_split(save):
    masks = {part: np.arange(N) // 3 == at for at, part in enumerate(("train", "val", "test"))}
    none = dict.fromkeys(("attr_data", "attr_indices", "attr_indptr", "attr_shape"))
    dense = np.arange(N * 2, dtype=">f8").reshape(N, 2) + 1
    path = save(
        **none,
        attr_matrix=dense,
        adj_data=np.full(N, 2.5),
        train_mask=masks["train"],
        val=np.array([3, 4, 5]),
        test_mask=masks["test"],
    )
    graph = gcond.load(path, setting="inductive")
    np.testing.assert_array_equal(graph.x.numpy(), dense)
    assert set(graph.adjacency.values.tolist()) == {2.5}
    assert graph.val_mask.tolist() == masks["val"].tolist()
    assert graph.setting == "inductive"
    assert "the file's own" in graph.notes[0]


def test_layout_of_the_heterophilous_sets(tmp_path):
    masks = {
        f"{part}_masks": np.tile(np.arange(N) // 3 == at, (2, 1)) for at, part in enumerate(("train", "val", "test"))
    }
    ring = np.stack([np.arange(N), (np.arange(N) + 1) % N], 1)
    np.savez(tmp_path / "h.npz", node_features=np.eye(N), node_labels=np.arange(N) % 3, edges=ring, **masks)
    graph = gcond.load(tmp_path / "h.npz", seed=3)
    assert graph.num_edges == N
    assert "number 1 of the 2" in graph.notes[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "has no array 'labels'"),
        ({"adj_indptr": None}, "has no array 'adj_indptr'"),
        ({"attr_data": None}, "has no array 'attr_data'"),
        ({"labels": np.array(list("abcabcabc"), dtype=object)}, "'labels' .* is an object array, stored as a pickle"),
        ({"labels": np.array(list("abcabcabc"))}, "plain numbers"),
        ({"labels": np.eye(N)}, "labels have shape"),
        (
            {"labels": np.array([0] * 8 + [10**12]), "train": [0], "val": [1], "test": [2]},
            "1000000000001 classes for 9",
        ),
        ({"labels": np.arange(N) + 0.5}, "not whole numbers"),
        ({"labels": np.arange(N - 1) % 2}, "8 labels for 9 nodes"),
        ({"labels": np.full(N, -2)}, "out of range"),
        ({"labels": np.array([0, 1] + [2] * 7)}, "class 0 has 1 labelled node,"),
        ({"labels": np.full(N, 2**64 - 1, dtype=np.uint64)}, "whole numbers go up to"),
        ({"adj_indices": np.arange(N) + 5}, "do not fit together"),
        ({"adj_indices": np.arange(N) + 0.5}, "whole numbers are needed"),
        ({"adj_indptr": np.arange(N)}, "one entry more than the 9 rows"),
        ({"adj_indptr": np.arange(N + 1)[::-1].copy()}, "do not fit together"),
        ({"adj_shape": np.array([N, N + 1])}, "must be square"),
        ({"adj_shape": np.array([N])}, "two positive numbers"),
        ({"adj_data": -np.ones(N)}, "must not be negative"),
        ({"adj_data": np.ones(N) * 1j}, "plain numbers"),
        ({"attr_matrix": np.full((N, 2), np.nan)}, "must be a finite number"),
        ({"attr_matrix": np.full((N, 2), 1e300)}, "must be a finite number"),
        ({"attr_matrix": np.ones(N)}, r"must be \[nodes, features\]"),
        ({"attr_matrix": np.ones((N, 0))}, "at least one"),
        ({"attr_matrix": np.ones((N + 1, 2))}, "9 labels for 10 nodes"),
        ({"attr_matrix": np.array(1.0)}, r"must be \[nodes, features\]"),
        ({"train_mask": np.ones(N, bool)}, "without 'val_mask'"),
        ({"train": [0], "val": [1], "test": [0.5]}, "mask"),
        ({"train": np.ones(N, bool), "val": np.ones(N, bool), "test": [1]}, "both train and val"),
    ],
)
def test_refusals(changes, message, save):
    with pytest.raises(GcondError, match=message):
        gcond.load(save(**changes))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04K\x01.", b"text", b"\x93NUMPY\x01\x00"])
def test_foreign_bytes(content, tmp_path):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(GcondError, match=r"damaged, cut short or not an \.npz"):
        gcond.load(tmp_path / "x.npz")


def test_more_than_fits_is_refused_before_it_is_read(save, monkeypatch):
    path = save()
    monkeypatch.setattr("gcond.data.size_check.available_bytes", lambda: 100)
    with pytest.raises(GcondError, match="GB of memory"):
        gcond.load(path)


def test_a_file_without_attributes_gets_structural_features(save):
    none = dict.fromkeys(("attr_data", "attr_indices", "attr_indptr", "attr_shape"))
    graph = gcond.load(save(**none))
    assert graph.transform.kind == "structural"
    with pytest.raises(GcondError, match="has no array 'attr_data'"):
        gcond.load(save(**(none | {"attr_shape": [N, 4]})))
