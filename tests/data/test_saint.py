"""GraphSAINT folders: Flickr and Reddit as tiny files of the same form."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.preprocessing import StandardScaler
from torch_geometric.datasets import Flickr

import gcond
from gcond.errors import GcondError

N = 12
ROLE = {"tr": list(range(6)), "va": [6, 7, 8], "te": [9, 10, 11]}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "Flickr" / "raw"
    place.mkdir(parents=True)
    ring = scipy.sparse.csr_matrix((np.ones(N, bool), (np.arange(N), (np.arange(N) + 1) % N)), shape=(N, N))
    scipy.sparse.save_npz(place / "adj_full.npz", (ring + ring.T).tocsr())
    np.save(place / "feats.npy", np.random.default_rng(0).normal(3, 5, (N, 4)))
    (place / "class_map.json").write_text(json.dumps({str(i): i % 3 for i in range(N)}))
    (place / "role.json").write_text(json.dumps(ROLE))
    return place


def test_equals_pyg_and_is_standardised_by_training_nodes(folder, tmp_path):
    graph = gcond.load("flickr", data_dir=tmp_path)
    theirs = Flickr(tmp_path / "Flickr")[0]
    assert graph.setting == "inductive"
    assert graph.y.tolist() == theirs.y.tolist()
    for part in ("train", "val", "test"):
        assert torch.equal(graph.mask(part), theirs[f"{part}_mask"])
    assert theirs.edge_index.shape[1] == 2 * N
    found = graph.statistics
    assert found.edges == found.listed_edges == N  # the file stores both directions
    assert found.density == pytest.approx(2 * N / N**2)
    dense = torch.zeros(N, N)
    dense[theirs.edge_index[1], theirs.edge_index[0]] = 1
    assert torch.equal(graph.adjacency.to_dense(), dense)
    raw = np.load(folder / "feats.npy")
    scaler = StandardScaler().fit(raw[:6])
    np.testing.assert_allclose(graph.x.numpy(), scaler.transform(raw), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(graph.transform.mean, scaler.mean_, rtol=1e-5)
    assert graph.transform.kind == "standardise"


def test_folder_by_path_and_setting(folder):
    assert gcond.load(folder).setting == "inductive"
    assert gcond.load(str(folder), setting="transductive").setting == "transductive"


def test_nodes_without_class_are_unlabelled(folder):
    (folder / "class_map.json").write_text(json.dumps({str(i): i % 3 for i in range(N - 1)}))
    (folder / "role.json").write_text(json.dumps(ROLE | {"te": [9, 10]}))
    assert gcond.load(folder).y[-1] == -1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("role.json", "{", "not JSON"),
        ("role.json", "[" * 100_000, "not JSON"),
        ("role.json", b"\xff\xfe\x00", "not JSON"),
        ("role.json", "[1]", "under 'tr', 'va' and 'te'"),
        ("role.json", '{"tr": [0], "va": [1]}', "under 'tr', 'va' and 'te'"),
        ("role.json", '{"tr": [0], "va": [1], "te": [12]}', "names node 12, but feats.npy has 12 nodes"),
        ("role.json", '{"tr": [0], "va": [-1], "te": [2]}', "names node -1"),
        ("role.json", '{"tr": [0], "va": [true], "te": [2]}', "names node True"),
        ("role.json", '{"tr": [0.5], "va": [1], "te": [2]}', "names node 0.5"),
        ("role.json", '{"tr": [], "va": [1], "te": [2]}', "no training node"),
        ("role.json", '{"tr": [0, 1, 2], "va": [1], "te": [2]}', "both train and val"),
        ("class_map.json", '{"0": [0, 1]}', "several classes"),
        ("class_map.json", '{"0": "red"}', "the class 'red'"),
        ("class_map.json", '{"0": NaN}', "the class nan"),
        ("class_map.json", '{"0": -1}', "the class -1"),
        ("class_map.json", '{"zero": 1}', "names node 'zero'"),
        ("class_map.json", "{}", "must map node ids"),
        ("feats.npy", b"\x93NUMPY", "damaged"),
        ("feats.npy", b"\x80\x04K\x01.", "damaged|pickle"),
        ("adj_full.npz", b"PK", "not an .npz"),
    ],
)
def test_refusals(name, content, message, folder):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(GcondError, match=message):
        gcond.load(folder)


@pytest.mark.parametrize("name", ["adj_full.npz", "feats.npy", "class_map.json", "role.json"])
def test_missing_file_is_named(name, folder):
    (folder / name).unlink()
    with pytest.raises(GcondError, match=f"no file .*{name}"):
        gcond.load(folder)


@pytest.mark.parametrize(
    ("feats", "message"),
    [
        (np.array([["a"]]), "matrix of numbers"),
        (np.ones(N), "matrix of numbers"),
        (np.ones((N, 0)), "matrix of numbers"),
        (np.array([[object()]]), "never opens"),
        (np.full((N, 2), np.inf), "not finite"),
        (np.full((N, 2), 1e300), "not finite"),
        (np.ones((N + 1, 2)), "both must agree"),
    ],
)
def test_bad_features(feats, message, folder):
    np.save(folder / "feats.npy", feats, allow_pickle=True)
    with pytest.raises(GcondError, match=message):
        gcond.load(folder)


def test_the_header_is_enough_to_refuse_what_cannot_fit(folder, monkeypatch):
    monkeypatch.setattr("gcond.data.size_check.available_bytes", lambda: 100)
    with pytest.raises(GcondError, match=r"feats\.npy' \(12 by 4\) needs"):
        gcond.load(folder)
