"""OGB and GraphSAINT folders, named or by path, go to a store piece by piece, and come back as they load."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import scipy.sparse

import gcond
from data.test_ogb import write
from data.test_pack_tables import assert_same_graph
from gcond.data import array_stream, edge_sorting, graph_stream, out_of_core, packing, store_packing
from gcond.data.catalogue import DATASETS
from gcond.errors import GcondError
from reference.damage import sentence as refusal

N, D = 60, 5
STREAM = np.random.default_rng(0)
X = STREAM.normal(1, 2, (N, D)).round(4).astype(np.float32)
Y = np.arange(N) % 3
EDGES = STREAM.integers(0, N, (2, 150))
PARTS = {"train": range(30), "valid": range(30, 45), "test": range(45, N)}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(array_stream, "BLOCK", 100)
    monkeypatch.setattr(store_packing, "ROWS", 28)
    monkeypatch.setattr(edge_sorting, "ROWS", 7)
    monkeypatch.setattr(out_of_core, "BATCH", 11)


def with_split(place, by):
    for part, ids in PARTS.items():
        write(place / "split" / by / f"{part}.csv.gz", [[i] for i in ids])
    return place


def ogb_text(place, by="time"):
    """ogbn-arxiv and ogbn-products."""
    write(place / "raw" / "node-feat.csv.gz", X.tolist())
    write(place / "raw" / "node-label.csv.gz", [[int(label)] for label in Y])
    write(place / "raw" / "edge.csv.gz", EDGES.T.tolist())
    write(place / "raw" / "num-node-list.csv.gz", [[N]])
    write(place / "raw" / "num-edge-list.csv.gz", [[EDGES.shape[1]]])
    return with_split(place, by)


def ogb_binary(place, by="time", *, save=np.savez):
    """ogbn-papers100M: most nodes have no label, which is NaN there."""
    (place / "raw").mkdir(parents=True)
    y = Y.astype(np.float32)[:, None].copy()
    y[45:50] = np.nan
    save(
        place / "raw" / "data.npz",
        edge_index=EDGES.astype(np.int64),
        node_feat=X,
        node_year=np.full((N, 1), 2015),
        num_nodes_list=np.array([N]),
        num_edges_list=np.array([EDGES.shape[1]]),
    )
    save(place / "raw" / "node-label.npz", node_label=y)
    with_split(place, by)
    write(place / "split" / by / "test.csv.gz", [[i] for i in range(50, N)])
    return place


def ogb_compressed(place, by="time"):
    return ogb_binary(place, by, save=np.savez_compressed)


def ogb_unpacked(place, by="time"):
    """The features beside the archive, where they can be read without unpacking."""
    ogb_binary(place, by)
    with np.load(place / "raw" / "data.npz") as archive:
        arrays = dict(archive)
    np.save(place / "raw" / "node_feat.npy", arrays.pop("node_feat"))
    np.savez(place / "raw" / "data.npz", **arrays)
    return place


def graphsaint(place):
    """Flickr and Reddit."""
    place.mkdir(parents=True)
    both = scipy.sparse.csr_matrix((np.ones(EDGES.shape[1]), EDGES), shape=(N, N))
    scipy.sparse.save_npz(place / "adj_full.npz", (both + both.T).astype(bool).tocsr())
    np.save(place / "feats.npy", X.astype(np.float64))
    (place / "class_map.json").write_text(json.dumps({str(i): int(label) for i, label in enumerate(Y)}))
    roles = {"tr": "train", "va": "valid", "te": "test"}
    (place / "role.json").write_text(json.dumps({role: list(PARTS[part]) for role, part in roles.items()}))
    return place


NAMED = {
    "ogbn-arxiv": ("ogbn_arxiv", ogb_text),
    "ogbn-products": ("ogbn_products", lambda place: ogb_text(place, "sales_ranking")),
    "ogbn-papers100m": ("ogbn_papers100M", ogb_binary),
    "flickr": ("Flickr/raw", graphsaint),
    "reddit": ("Reddit2/raw", graphsaint),
}
FORMS = [ogb_text, ogb_binary, ogb_compressed, ogb_unpacked, graphsaint]


@pytest.fixture
def streaming_alone(monkeypatch):
    """A world in which nothing is loaded whole on the way into a store."""
    monkeypatch.setattr(graph_stream.GraphStream, "load", lambda *_: pytest.fail("it was held"))
    monkeypatch.setattr("gcond.data.loading.load_as", lambda *_: pytest.fail("it was held"))
    return monkeypatch


@pytest.mark.parametrize("name", NAMED)
def test_every_large_set_by_name_goes_to_the_store_without_being_held(name, tmp_path, request):
    folder, make = NAMED[name]
    make(tmp_path / "data" / folder)
    assert name in DATASETS
    expected = gcond.load(name, data_dir=tmp_path / "data", features="none")
    request.getfixturevalue("streaming_alone")
    gcond.pack(name, tmp_path / "g.gcond", data_dir=tmp_path / "data")
    request.getfixturevalue("streaming_alone").undo()
    assert_same_graph(gcond.load(tmp_path / "g.gcond", features="none"), expected)
    assert gcond.load(tmp_path / "g.gcond").transform.kind == "standardise"


@pytest.mark.parametrize("make", FORMS)
@pytest.mark.parametrize("directed", [False, True])
def test_every_form_by_its_folder_comes_back_as_it_loads(make, directed, tmp_path):
    folder = make(tmp_path / "own")
    options = {"setting": "transductive", "directed": directed}
    expected = gcond.load(folder, features="none", **options)
    gcond.pack(folder, tmp_path / "own.gcond", **options)
    assert_same_graph(gcond.load(tmp_path / "own.gcond", features="none"), expected)
    there = gcond.load(tmp_path / "own.gcond", memory_limit="1MB")
    assert there.transform.kind == "standardise"
    assert there.transform.mean == pytest.approx(gcond.load(folder, **options).transform.mean)


def replace_array(path, **changes):
    with np.load(path) as archive:
        arrays = dict(archive) | changes
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})


def cut(path):
    path.write_bytes(path.read_bytes()[:-30])


BROKEN = {
    "an edge to nowhere": lambda raw: replace_array(raw / "data.npz", edge_index=np.array([[0, 1], [1, N]])),
    "edges of floats": lambda raw: replace_array(raw / "data.npz", edge_index=np.ones((2, 2))),
    "edges of one row": lambda raw: replace_array(raw / "data.npz", edge_index=np.ones((1, 2), int)),
    "no features": lambda raw: replace_array(raw / "data.npz", node_feat=None),
    "infinite features": lambda raw: replace_array(raw / "data.npz", node_feat=np.full((N, D), np.inf)),
    "features by column": lambda raw: replace_array(raw / "data.npz", node_feat=np.asfortranarray(X)),
    "objects": lambda raw: replace_array(raw / "data.npz", node_feat=np.array([object()])),
    "too few labels": lambda raw: replace_array(raw / "node-label.npz", node_label=np.ones((3, 1))),
    "labels of text": lambda raw: replace_array(raw / "node-label.npz", node_label=np.array([["a"]] * N)),
    "half a label": lambda raw: replace_array(raw / "node-label.npz", node_label=np.full((N, 1), 0.5)),
    "a class of -3": lambda raw: replace_array(raw / "node-label.npz", node_label=np.full((N, 1), -3)),
    "no label": lambda raw: replace_array(raw / "node-label.npz", node_label=np.full((N, 1), np.nan)),
    "cut archive": lambda raw: cut(raw / "data.npz"),
    "foreign archive": lambda raw: (raw / "data.npz").write_bytes(b"PK"),
    "no archive of labels": lambda raw: (raw / "node-label.npz").unlink(),
    "overlapping parts": lambda raw: write(raw.parent / "split" / "time" / "test.csv.gz", [[0], [1], [50]]),
    "no split": lambda raw: shutil.rmtree(raw.parent / "split"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_with_a_binary_folder_is_said_alike_on_both_ways(what, tmp_path):
    folder = ogb_binary(tmp_path / "own")
    BROKEN[what](folder / "raw")
    expected = refusal(gcond.load, folder)
    assert expected is not None
    assert "\n" not in expected
    assert refusal(lambda place: gcond.pack(place, tmp_path / "own.gcond"), folder) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def test_features_of_one_value_make_no_matrix_by_column(tmp_path):
    """A matrix of one column is both by row and by column."""
    folder = ogb_binary(tmp_path / "own")
    replace_array(folder / "raw" / "data.npz", node_feat=np.asfortranarray(X[:, :1]))
    assert gcond.load(folder).num_features == 1


def test_a_folder_that_is_none_of_these(tmp_path):
    (tmp_path / "own").mkdir()
    with pytest.raises(GcondError, match="holds no graph that gcond reads"):
        gcond.pack(tmp_path / "own", tmp_path / "own.gcond")
    graph = gcond.load("synthetic:tiny")
    gcond.pack(graph, tmp_path / "tiny.gcond")
    with pytest.raises(GcondError, match="is a packed store already: give the source that it was packed from, or copy"):
        gcond.pack(tmp_path / "tiny.gcond", tmp_path / "again.gcond")
    with pytest.raises(GcondError, match=r"end it with \.gcond"):
        gcond.pack(graph, tmp_path / "tiny")
    assert packing.pack is gcond.pack
