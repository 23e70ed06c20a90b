"""What ``load`` takes, and what it says to everything else."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import gcond
from gcond.errors import GcondError
from gcond.graph.source_graph import SourceGraph


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("coar", "did you mean 'cora'"),
        ("Citesear", "did you mean 'citeseer'"),
        ("synthetic", "did you mean"),
        ("no-such-thing", "choose one of cora, .* or give a path"),
        ("./nowhere", "no file or folder './nowhere'"),
        ("some/where", "no file or folder"),
        ("graph.npz", "no file or folder"),
        ("", "source is empty"),
        (7, "a int is not a graph"),
        (None, "a NoneType is not a graph"),
        (networkx.path_graph(3), "a Graph of networkx .* give torch_geometric.utils.from_networkx"),
    ],
)
def test_unknown_sources(source, message, offline):
    with pytest.raises(GcondError, match=message):
        gcond.load(source)


def test_unknown_setting():
    with pytest.raises(GcondError, match="did you mean 'inductive'"):
        gcond.load("synthetic:tiny", setting="inductiv")


@pytest.mark.parametrize(
    ("name", "message"), [("a.txt", "no graph that gcond reads"), ("nodes.csv", "give its folder")]
)
def test_files_of_other_kinds(name, message, tmp_path):
    (tmp_path / name).write_text("x")
    with pytest.raises(GcondError, match=message):
        gcond.load(tmp_path / name)


def test_folder_of_something_else(tmp_path):
    with pytest.raises(GcondError, match=r"nodes\.parquet"):
        gcond.load(tmp_path)


def test_saved_graph_comes_back(tmp_path, make_graph):
    for graph in (
        make_graph(weighted=True),
        make_graph(density=0.05),
        make_graph(directed=True),
        make_graph("inductive"),
    ):
        graph.save(tmp_path / "g.safetensors")
        again = gcond.load(tmp_path / "g.safetensors")
        assert again.sha256 == graph.sha256
        assert (again.name, again.setting, again.directed) == (graph.name, graph.setting, graph.directed)
        assert gcond.load(str(tmp_path / "g.safetensors"), setting="inductive").setting == "inductive"


def test_condensed_graph_is_no_source(tmp_path, make_graph):
    gcond.condense(make_graph(), method="random", nodes=6).save(tmp_path / "c.safetensors")
    with pytest.raises(GcondError, match="holds a condensed graph, and a source graph is needed"):
        gcond.load(tmp_path / "c.safetensors")


@pytest.mark.parametrize("key", ["shape", "setting", "class_names", "transform", "notes", "num_classes"])
def test_foreign_metadata_is_refused(key, tmp_path, make_graph):
    import json

    from safetensors.torch import load_file, save_file

    path = tmp_path / "g.safetensors"
    make_graph().save(path)
    from gcond.runtime.tensor_file import read_tensors

    metadata = read_tensors(path)[1] | {key: 3.5}
    save_file(load_file(path), path, {"gcond": json.dumps(metadata)})
    with pytest.raises(GcondError):
        gcond.load(path)


def test_objects_pass_through(make_graph):
    graph = make_graph()
    assert gcond.load(graph) is graph
    assert gcond.load(graph, setting="inductive").setting == "inductive"
    with pytest.raises(GcondError, match="already made undirected"):
        gcond.load(graph, directed=True)
    from_pyg = gcond.load(graph.to_pyg())
    assert torch.equal(from_pyg.y, graph.y)
    assert torch.equal(from_pyg.adjacency.indices, graph.adjacency.indices)


@pytest.mark.parametrize("seed", ["a", 1.5, None, True])
def test_seed_is_a_whole_number(seed, make_graph):
    for source in ("synthetic:tiny", make_graph(), make_graph().to_pyg()):
        with pytest.raises(GcondError, match=rf"seed={seed!r} "):
            gcond.load(source, seed=seed)


def test_seed_may_be_of_numpy():
    assert gcond.load("synthetic:tiny", seed=np.int64(3)).sha256 == gcond.load("synthetic:tiny", seed=3).sha256


@pytest.mark.parametrize("directed", ["yes", 1, None])
def test_directed_is_yes_or_no(directed, make_graph):
    for source in ("synthetic:tiny", make_graph()):
        with pytest.raises(GcondError, match=r"directed=.* is not usable: it must be True or False"):
            gcond.load(source, directed=directed)


def without_masks(n=240):
    """A ring of three classes, 80 nodes each, with ten more that have no label."""
    y = torch.cat([torch.arange(n) % 3, torch.full((10,), -1)])
    ring = torch.arange(n + 10)
    return Data(x=torch.eye(n + 10), y=y, edge_index=torch.stack([ring, ring.roll(1)]))


def test_pyg_data_without_masks_gets_the_split_of_folders(tmp_path):
    data = without_masks()
    graph = gcond.load(data, seed=4)
    assert [int(graph.mask(part).sum()) for part in ("train", "val", "test")] == [60, 90, 90]
    assert graph.class_counts().tolist() == [20, 20, 20]
    assert "drawn with seed 4" in graph.notes[0]
    assert "train_mask" not in data  # the caller's own is left as it is
    assert not torch.equal(gcond.load(data, seed=5).train_mask, graph.train_mask)

    rows = "".join(f"{label if label >= 0 else ''},{at}\n" for at, label in enumerate(data.y.tolist()))
    (tmp_path / "nodes.csv").write_text("label,x\n" + rows)
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    folder = gcond.load(tmp_path, seed=4)
    for part in ("train", "val", "test"):
        assert torch.equal(folder.mask(part), graph.mask(part))
    assert folder.notes[0] == graph.notes[0]


def test_pyg_data_with_some_of_the_masks_is_refused():
    data = without_masks()
    with pytest.raises(GcondError, match="has no train_mask, val_mask, test_mask"):
        SourceGraph.from_pyg(data)
    data.train_mask = data.y >= 0
    with pytest.raises(GcondError, match="has no val_mask, test_mask"):
        gcond.load(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": None}, "the PyG Data has no y"),
        ({"y": torch.tensor([0, 1])}, "class 0 has 1 labelled node"),
        ({"y": torch.zeros(9, dtype=torch.long)}, "there are 9 labels for 250 nodes"),
        ({"y": torch.full((250,), -1)}, "no node is labelled"),
        ({"y": torch.full((250,), -7)}, "label -7 is out of range"),
        ({"y": torch.full((250,), 10**12)}, "there are 1000000000001 classes"),
        ({"y": np.zeros(250)}, "y is a numpy.ndarray: give a torch tensor"),
        ({"x": np.eye(250)}, "x is a numpy.ndarray: give a torch tensor"),
        ({"edge_index": [[0], [1]]}, "edge_index is a list: give a torch tensor"),
    ],
)
def test_pyg_data_without_masks_is_checked_all_the_same(changes, message):
    data = without_masks()
    for key, value in changes.items():
        data[key] = value
    with pytest.raises(GcondError, match=message):
        gcond.load(data)


def test_something_with_edges_that_is_no_data():
    class Edges:
        edge_index = torch.zeros(2, 0)

    with pytest.raises(GcondError, match="a Edges is not a graph"):
        gcond.load(Edges())


def test_name_wins_over_a_file_of_that_name_but_a_path_does_not(tmp_path, monkeypatch, offline):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cora").mkdir()
    np.save(tmp_path / "cora" / "other.npy", np.ones(1))
    with pytest.raises(GcondError, match="cannot get 'cora'"):
        gcond.load("cora")
    with pytest.raises(GcondError, match="holds no graph"):
        gcond.load("./cora")
