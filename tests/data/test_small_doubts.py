"""What can be read and is of little use is said; what people call otherwise is understood; bombs do not go off."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
import torch

import gcond
from gcond.graph.doubts import is_constant
from gcond.graph.features import compact
from gcond.linalg.sparse import SparseMatrix

EDGES = np.stack([np.arange(59), np.arange(1, 60)])
Y = np.arange(60) % 3


def arrays(**changes):
    x = np.random.default_rng(0).random((60, 4)).astype("f4")
    return {"x": x, "y": Y, "edge_index": EDGES, **changes}


def written(path, **changes):
    np.savez(path, **arrays(**changes))
    return path


# --- doubts
def test_one_class_is_said(tmp_path):
    graph = gcond.load(written(tmp_path / "g.npz", y=np.zeros(60, dtype=int)))
    assert any("there is one class only" in note for note in graph.notes)
    assert not any("one class only" in note for note in gcond.load(written(tmp_path / "h.npz")).notes)


@pytest.mark.parametrize("features", ["none", None])
def test_constant_features_are_said(tmp_path, features):
    graph = gcond.load(written(tmp_path / "g.npz", x=np.ones((60, 4), "f4")), features=features)
    assert sum("all nodes have the same features" in note for note in graph.notes) == 1
    assert (graph.transform.kind == "structural") is (features is None)  # without a word of the person's
    graph.save(tmp_path / "g.safetensors")
    assert gcond.load(tmp_path / "g.safetensors").notes == graph.notes  # and not twice


def test_a_scale_of_no_use_is_said_of_files_too(tmp_path):
    path = written(tmp_path / "g.npz", x=arrays()["x"] * np.float32(1e-7))
    graph = gcond.load(path, features="none")
    assert sum("too small" in note for note in graph.notes) == 1  # who asks for it has it so, and knows
    graph.save(tmp_path / "g.safetensors")
    for _ in range(2):
        again = gcond.load(tmp_path / "g.safetensors")
        assert sum("too small to be fitted" in note for note in again.notes) == 1
        again.save(tmp_path / "g.safetensors")
    assert gcond.load(again) is again
    assert not any("too small" in note for note in gcond.load(path).notes)  # a transform was looked for


def test_constant_rows_of_sparse_features():
    rows = torch.zeros(50, 40)
    assert is_constant(rows)
    rows[:, 3] = 2
    sparse = compact(rows)
    assert isinstance(sparse, SparseMatrix)
    assert is_constant(sparse)
    rows[7, 3] = 1
    assert not is_constant(compact(rows))
    rows[7] = 0
    rows[7, 4] = 2
    assert not is_constant(compact(rows))
    assert not is_constant(rows)


# --- names of the parts
@pytest.mark.parametrize("name", ["val", "valid", "validation", "dev"])
def test_a_split_by_other_names(tmp_path, name):
    masks = {part: Y * 0 + (np.arange(60) // 20 == place) for place, part in enumerate(("train", "val", "test"))}
    masks = {part: mask.astype(bool) for part, mask in masks.items()}
    own = {"train_mask": masks["train"], f"{name}_mask": masks["val"], "test_mask": masks["test"]}
    graph = gcond.load(written(tmp_path / "g.npz", **own))
    assert np.array_equal(graph.val_mask.numpy(), masks["val"])
    folder = tmp_path / "tables"
    folder.mkdir()
    part = ["Training" if masks["train"][i] else name.upper() if masks["val"][i] else "test" for i in range(60)]
    lines = [f"{i},{Y[i]},{part[i]},{i / 7}" for i in range(60)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,split,f", *lines]) + "\n")
    (folder / "edges.csv").write_text("source,target\n0,1\n")
    assert torch.equal(gcond.load(folder).val_mask, graph.val_mask)
    geometric = pytest.importorskip("torch_geometric.data")
    tensors = {key: torch.from_numpy(value) for key, value in arrays(**own).items()}
    data = geometric.Data(**tensors)
    assert torch.equal(gcond.load(data).val_mask, graph.val_mask)
    assert name == "val" or data.get("val_mask") is None  # the caller's own is left alone


# --- graphs without features, and from elsewhere
def test_a_graph_without_features_gets_some_and_says_so(tmp_path):
    bare = arrays()
    del bare["x"]
    np.savez(tmp_path / "g.npz", **bare)
    graph = gcond.load(tmp_path / "g.npz")
    assert any("there are no features, so" in note and "structural" in note for note in graph.notes)


def test_a_networkx_graph_is_told_what_it_needs_and_not_what_it_may_have():
    networkx = pytest.importorskip("networkx")
    utils = pytest.importorskip("torch_geometric.utils")
    data = utils.from_networkx(networkx.karate_club_graph())
    with pytest.raises(gcond.GcondError, match=r"has no y: it needs edge_index and y, .* can do without all else"):
        gcond.load(data)
    data.y = torch.arange(34) % 2
    graph = gcond.load(data)
    assert graph.num_nodes == 34
    assert any("the split was drawn" in note for note in graph.notes)
    data.train_mask = torch.arange(34) < 10
    with pytest.raises(gcond.GcondError, match="has no val_mask, test_mask: give all three masks"):
        gcond.load(data)


# --- bombs
def bomb(path, claimed, held):
    """An archive whose features are zeros, of which the header claims more bytes than there are."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in {"y": Y, "edge_index": EDGES}.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", content.getvalue())
        header = io.BytesIO()
        about = {"descr": "<f4", "fortran_order": False, "shape": (60, claimed // 240)}
        np.lib.format.write_array_header_1_0(header, about)
        archive.writestr("x.npy", header.getvalue() + bytes(held))
    return path


def test_a_bomb_is_refused_by_what_it_claims(tmp_path, monkeypatch):
    """Nothing of it is read: reading would take the ten gigabytes."""
    path = bomb(tmp_path / "bomb.npz", 240 * 4 * 10**7, 10**6)
    monkeypatch.setattr(np, "load", None)
    with pytest.raises(gcond.GcondError, match=r"'x' in '.*' claims 9,600,000,000 bytes and has 1,000,000"):
        gcond.load(path)


def test_an_archive_larger_than_memory_is_refused_by_its_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(np, "load", None)
    monkeypatch.setattr("gcond.data.size_check.available_bytes", lambda: 10**6)
    with pytest.raises(gcond.GcondError, match="GB of memory"):
        gcond.load(bomb(tmp_path / "large.npz", 240 * 10**4, 240 * 10**4))
