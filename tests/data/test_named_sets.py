"""The named sets against PyG's own readers and against the figures that papers print."""

from __future__ import annotations

import io
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.preprocessing import normalize
from torch_geometric.datasets import Amazon, CitationFull, HeterophilousGraphDataset, Planetoid
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import remove_self_loops, to_undirected

import gcond
from gcond.data.catalogue import DATASETS, catalogue
from gcond.data.planetoid import NumbersOnly
from gcond.errors import GcondError
from gcond.linalg.sparse import SparseMatrix

HERE = [dataset.name for dataset in DATASETS.values() if dataset.raw]


def edges_of(graph):
    return torch.stack([graph.adjacency.indices.long(), graph.adjacency.row_index])


def as_set(edge_index):
    return set(map(tuple, edge_index.T.tolist()))


def dense(x):
    return x.to_dense() if isinstance(x, SparseMatrix) else x


@pytest.mark.parametrize("name", HERE)
def test_figures_are_the_printed_ones(name, real_data):
    graph, printed = gcond.load(name, data_dir=real_data), DATASETS[name]
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (
        printed.nodes,
        printed.features,
        printed.classes,
    )
    assert graph.statistics.listed_edges == printed.edges
    assert tuple(int(graph.mask(part).sum()) for part in ("train", "val", "test")) == printed.split
    assert graph.setting == printed.setting
    assert graph.name == name


@pytest.mark.parametrize("title", ["Cora", "CiteSeer", "PubMed"])
def test_planetoid_equals_pyg(title, real_data, tmp_path):
    shutil.copytree(real_data / "planetoid" / title / "raw", tmp_path / title / "raw")
    theirs = Planetoid(tmp_path, title, transform=NormalizeFeatures())[0]
    ours = gcond.load(title.lower(), data_dir=real_data)
    torch.testing.assert_close(dense(ours.x), theirs.x)
    assert torch.equal(ours.y, theirs.y)
    for part in ("train", "val", "test"):
        assert torch.equal(ours.mask(part), theirs[f"{part}_mask"])
    assert as_set(edges_of(ours)) == as_set(theirs.edge_index)
    assert ours.transform.kind == "row-normalise"
    assert torch.equal(ours.adjacency.values, torch.ones(ours.adjacency.nnz))


def edge_keys(edge_index, n):
    """Edges as sorted numbers: target · n + source."""
    return torch.sort(edge_index[1] * n + edge_index[0]).values


@pytest.mark.parametrize(
    ("name", "folder", "make"),
    [
        ("amazon-photo", "amazon/Photo", lambda root: Amazon(root, "Photo")),
        ("dblp", "citationfull/dblp", lambda root: CitationFull(root, "dblp")),
    ],
)
def test_npz_sets_equal_pyg(name, folder, make, real_data, tmp_path):
    shutil.copytree(real_data / folder / "raw", tmp_path / folder.partition("/")[2] / "raw")
    theirs = NormalizeFeatures()(make(tmp_path)[0])
    ours = gcond.load(name, data_dir=real_data)
    torch.testing.assert_close(dense(ours.x), theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(edge_keys(edges_of(ours), ours.num_nodes), edge_keys(theirs.edge_index, ours.num_nodes))


@pytest.mark.parametrize("name", ["amazon-computers", "coauthor-cs", "coauthor-physics"])
def test_wide_npz_sets_equal_scipy(name, real_data):
    """Where PyG's dense features would take a gigabyte, SciPy and scikit-learn say what is right."""
    raw = np.load(real_data / DATASETS[name].raw[0].path)
    x = scipy.sparse.csr_matrix((raw["attr_data"], raw["attr_indices"], raw["attr_indptr"]), raw["attr_shape"])
    expected = normalize((x > 0).astype(np.float32), norm="l1")
    adjacency = scipy.sparse.csr_matrix((raw["adj_data"], raw["adj_indices"], raw["adj_indptr"]), raw["adj_shape"])
    edges = torch.from_numpy(np.stack(adjacency.nonzero()).astype(np.int64))
    edges = to_undirected(remove_self_loops(edges)[0])
    ours = gcond.load(name, data_dir=real_data)
    x = ours.x.to_scipy() if isinstance(ours.x, SparseMatrix) else scipy.sparse.csr_matrix(ours.x.numpy())
    assert abs(x - expected).max() < 1e-6
    assert ours.y.tolist() == raw["labels"].tolist()
    assert torch.equal(edge_keys(edges_of(ours), ours.num_nodes), edge_keys(edges, ours.num_nodes))


def test_tolokers_equals_pyg_and_the_seed_numbers_the_split(real_data, tmp_path):
    shutil.copytree(real_data / "heterophilous" / "tolokers" / "raw", tmp_path / "tolokers" / "raw")
    theirs = HeterophilousGraphDataset(tmp_path, "tolokers")[0]
    for seed, number in ((0, 0), (13, 3)):
        ours = gcond.load("tolokers", data_dir=real_data, seed=seed)
        assert torch.equal(ours.x, theirs.x)
        assert torch.equal(ours.y, theirs.y)
        assert torch.equal(ours.train_mask, theirs.train_mask[:, number])
        assert torch.equal(ours.test_mask, theirs.test_mask[:, number])
        assert ours.adjacency.nnz == theirs.edge_index.shape[1]
        assert f"number {number} of the 10" in ours.notes[0]


def test_drawn_split_has_20_and_30_a_class_and_follows_the_seed(real_data):
    first, again, other = (gcond.load("coauthor-cs", data_dir=real_data, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.bincount(first.y[first.train_mask]), torch.full((15,), 20))
    assert torch.equal(torch.bincount(first.y[first.val_mask]), torch.full((15,), 30))
    assert bool((first.train_mask | first.val_mask | first.test_mask).all())
    assert torch.equal(first.train_mask, again.train_mask)
    assert not torch.equal(first.train_mask, other.train_mask)
    assert "seed 1" in other.notes[0]


def test_any_set_can_be_inductive_or_directed(real_data):
    graph = gcond.load("cora", setting="inductive", data_dir=real_data)
    assert graph.setting == "inductive"
    assert graph.view("train").inputs.num_nodes == 140
    one_way = gcond.load("amazon-photo", data_dir=real_data, directed=True)
    assert one_way.adjacency.nnz < 2 * 119081


def test_names_are_forgiving_about_case(real_data):
    assert gcond.load("Amazon_Photo", data_dir=real_data).name == "amazon-photo"


def test_catalogue_needs_no_torch_and_finds_the_files(real_data):
    rows = {row["name"]: row for row in catalogue(real_data)}
    assert set(rows) > {"cora", "ogbn-arxiv", "reddit", "synthetic:arxiv"}
    assert rows["cora"]["where"] == str(real_data / "planetoid" / "Cora" / "raw")
    assert "adj_full.npz" in rows["flickr"]["where"]
    for real, double in (("ogbn-arxiv", "synthetic:arxiv"), ("reddit", "synthetic:reddit")):
        for key in ("nodes", "edges", "features", "classes", "train", "val", "test", "setting"):
            assert rows[real][key] == rows[double][key]
    code = "import sys; from gcond.data import catalogue; catalogue(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "place"), [("ogbn-arxiv", "ogbn_arxiv"), ("flickr", "Flickr/raw"), ("reddit", "Reddit2")]
)
def test_sets_without_checksum_say_what_to_put_where(name, place, offline, tmp_path):
    for given in (None, tmp_path):
        with pytest.raises(GcondError, match=f"into DIR/{place}") as error:
            gcond.load(name, data_dir=given)
        assert "https://" in str(error.value)
        assert "\n" not in str(error.value)


class Evil:
    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize("thing", [Evil(), io.StringIO, subprocess.run])
def test_unpickler_admits_only_numbers(thing, capsys):
    with pytest.raises(pickle.UnpicklingError, match="not allowed"):
        NumbersOnly(io.BytesIO(pickle.dumps(thing)), encoding="latin1").load()
    assert capsys.readouterr().out == ""
