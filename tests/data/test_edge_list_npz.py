"""``.npz`` files with the names that PyG users give their arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gcond
from gcond.errors import GcondError


@pytest.fixture
def arrays(make_graph):
    data = make_graph(seed=3).to_pyg()
    return {key: data[key].numpy() for key in ("x", "y", "edge_index", "train_mask", "val_mask", "test_mask")}


def saved(tmp_path, arrays, **changes):
    path = tmp_path / "mine.npz"
    kept = {**arrays, **changes}
    np.savez(path, **{key: value for key, value in kept.items() if value is not None})
    return path


def test_equals_the_graph_that_it_was_written_from(arrays, tmp_path, make_graph):
    graph = gcond.load(saved(tmp_path, arrays), features="none")
    assert graph.sha256 == make_graph(seed=3).sha256
    assert graph.name == "mine"
    assert "the split is the file's own" in graph.notes


def test_equals_pyg_s_own_data_of_the_same_arrays(arrays, tmp_path):
    from torch_geometric.data import Data

    weight = np.linspace(0.5, 2, arrays["edge_index"].shape[1], dtype=np.float64)
    path = saved(tmp_path, arrays, edge_weight=weight, x=arrays["x"].astype(np.float64), y=arrays["y"].astype(np.int16))
    data = Data(**{key: torch.from_numpy(value) for key, value in arrays.items()})
    data.edge_weight = torch.from_numpy(weight)
    assert gcond.load(path, features="none").sha256 == gcond.load(data).sha256


def test_masks_are_drawn_where_there_are_none(arrays, tmp_path):
    bare = dict.fromkeys(("train_mask", "val_mask", "test_mask"))
    graph = gcond.load(saved(tmp_path, arrays, **bare), features="none")
    assert any(note.startswith("the split was drawn") for note in graph.notes)
    assert not bool((graph.train_mask & graph.test_mask).any())


def test_without_x_there_are_structural_features(arrays, tmp_path):
    assert gcond.load(saved(tmp_path, arrays, x=None)).transform.kind == "structural"


def test_what_is_not_used_is_said(arrays, tmp_path):
    graph = gcond.load(saved(tmp_path, arrays, pos=np.zeros(3)), features="none")
    assert "not used of the file: pos" in graph.notes


def test_a_graph_to_predict_for_needs_no_labels(arrays, tmp_path):
    bare = dict.fromkeys(("y", "train_mask", "val_mask", "test_mask"))
    path = saved(tmp_path, arrays, **bare)
    with pytest.raises(GcondError, match="no array 'y'"):
        gcond.load(path)
    graph = gcond.load(path, features="none", labelled=False)
    assert graph.y.tolist() == [-1] * 80
    with pytest.raises(GcondError, match="neither x nor y"):
        gcond.load(saved(tmp_path, arrays, **bare, x=None), labelled=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": None}, "no array 'y'"),
        ({"edge_index": np.array([[0, 1], [1, 2], [2, 3]])}, r"\[2, edges\]"),
        ({"edge_index": np.array([[0.0], [1.0]])}, "whole numbers"),
        ({"edge_index": np.array([[0], [80]])}, "names node 80, but there are 80 nodes"),
        ({"x": np.full((80, 12), np.nan)}, "finite"),
        ({"x": np.zeros(80)}, r"\[nodes, features\]"),
        ({"x": np.array([["a"] * 12] * 80)}, "plain numbers"),
        ({"x": np.array([object()] * 80)}, "never opens"),
        ({"y": np.zeros(79, dtype=np.int64)}, "79 labels for 80 nodes"),
        ({"y": np.zeros(80) + 0.5}, "not whole numbers"),
        ({"edge_weight": np.ones(3)}, "3 edge weights"),
        ({"val_mask": None}, "val_mask"),
    ],
)
def test_refused(arrays, tmp_path, changes, words):
    with pytest.raises(GcondError, match=words):
        gcond.load(saved(tmp_path, arrays, **changes), features="none")


def test_arrays_that_contradict_each_other_are_refused_by_their_headers(arrays, tmp_path, monkeypatch):
    paths = {
        "3 labels for 80 nodes": {"y": np.zeros(3, dtype=np.int64)},
        "3 labels for 80 nodes: ": {"y": np.zeros((3, 1), dtype=np.int64)},
        r"\[2, edges\]": {"edge_index": arrays["edge_index"].T},
        "3 edge weights": {"edge_weight": np.ones(3)},
    }
    monkeypatch.setattr(np, "load", None)  # whoever unpacked one would trip over this
    for words, changes in paths.items():
        with pytest.raises(GcondError, match=words):
            gcond.load(saved(tmp_path, arrays, **changes))


@pytest.mark.parametrize("kept", ["x", "y"])
def test_without_edges_it_is_edges_that_are_missing(arrays, tmp_path, kept):
    np.savez(tmp_path / "g.npz", **{kept: arrays[kept]})
    with pytest.raises(GcondError, match=rf"has no array 'edge_index' \(it has {kept}\)"):
        gcond.load(tmp_path / "g.npz", labelled=kept == "y")


def test_sizes_are_looked_at_before_anything_is_read(arrays, tmp_path, monkeypatch):
    path = saved(tmp_path, arrays)
    monkeypatch.setattr("gcond.data.size_check.available_bytes", lambda: 1000)
    with pytest.raises(GcondError, match="GB of memory"):
        gcond.load(path)
