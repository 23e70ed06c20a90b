"""What ``load`` takes, and what it says to everything else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gcond
from gcond.errors import GcondError


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
    from gcond.storage import read_tensors

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


def test_name_wins_over_a_file_of_that_name_but_a_path_does_not(tmp_path, monkeypatch, offline):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cora").mkdir()
    np.save(tmp_path / "cora" / "other.npy", np.ones(1))
    with pytest.raises(GcondError, match="cannot get 'cora'"):
        gcond.load("cora")
    with pytest.raises(GcondError, match="holds no graph"):
        gcond.load("./cora")
