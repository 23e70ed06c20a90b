"""OGB folders: ogbn-arxiv as tiny files of the same form."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import gcond
from gcond.errors import GcondError

N = 12
X = np.random.default_rng(0).normal(1, 2, (N, 5)).round(6)


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(",".join(map(str, row)) + "\n" for row in rows)
    path.write_bytes(gzip.compress(lines.encode()))


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "ogbn_arxiv"
    write(place / "raw" / "node-feat.csv.gz", X.tolist())
    write(place / "raw" / "node-label.csv.gz", [[i % 3] for i in range(N)])
    write(place / "raw" / "edge.csv.gz", [[i, (i + 1) % N] for i in range(N)])
    for part, ids in (("train", range(6)), ("valid", range(6, 9)), ("test", range(9, 12))):
        write(place / "split" / "time" / f"{part}.csv.gz", [[i] for i in ids])
    return place


def test_reads_what_is_written(folder, tmp_path):
    graph = gcond.load("ogbn-arxiv", data_dir=tmp_path)
    assert graph.name == "ogbn-arxiv"
    assert graph.setting == "transductive"
    assert graph.y.tolist() == [i % 3 for i in range(N)]
    assert graph.train_mask.nonzero().flatten().tolist() == list(range(6))
    assert graph.test_mask.nonzero().flatten().tolist() == [9, 10, 11]
    assert graph.listed_edges == N
    assert graph.num_edges == N  # made undirected
    np.testing.assert_allclose(graph.x.numpy(), StandardScaler().fit(X[:6]).transform(X), rtol=1e-4, atol=1e-5)
    assert graph.transform.kind == "standardise"
    assert "by time" in graph.notes[0]
    assert gcond.load(folder).sha256 == graph.sha256


def test_direction_is_source_then_target(folder):
    dense = gcond.load(folder, directed=True).adjacency.to_dense()
    assert dense[1, 0] == 1
    assert dense[0, 1] == 0


def test_whole_numbers_before_fractions_are_still_features(folder):
    whole = [[1] * 5] * (N - 1) + [[0.5] * 5]
    write(folder / "raw" / "node-feat.csv.gz", whole)
    assert gcond.load(folder).num_features == 5


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("raw/edge.csv.gz", [[0, 1, 2]], "has 3 columns, and 2 are needed"),
        ("raw/edge.csv.gz", [[0, 1], [2]], "not a table of numbers"),
        ("raw/edge.csv.gz", [["a", "b"]], "not a table of numbers"),
        ("raw/edge.csv.gz", [[0, N]], f"names node {N}"),
        ("raw/edge.csv.gz", [[0, ""]], "not a table|empty fields"),
        ("raw/node-label.csv.gz", [[0]] * N, "no training node|class"),
        ("raw/node-label.csv.gz", [], "is empty"),
        ("raw/node-label.csv.gz", [[i % 3] for i in range(N + 1)], "has 12 rows, and node-label.csv.gz has 13"),
        ("raw/node-feat.csv.gz", [[1.0]] * (N + 1), "has more rows"),
        ("raw/node-feat.csv.gz", [["nan"]] * N, "not finite|empty fields|not a table"),
        ("raw/node-feat.csv.gz", [["1e300"]] * N, "not finite|not a table"),
        ("split/time/train.csv.gz", [[N]], "from 0 to 11"),
        ("split/time/valid.csv.gz", [[-1]], "from 0 to 11"),
        ("split/time/test.csv.gz", [[0]], "both train and test"),
    ],
)
def test_refusals(name, rows, message, folder):
    if name == "raw/node-label.csv.gz" and rows == [[0]] * N:
        rows = [[0]] * 6 + [[1]] * 6
    write(folder / name, rows)
    with pytest.raises(GcondError, match=message):
        gcond.load(folder)


@pytest.mark.parametrize("content", [b"", b"plain,text\n", b"\x1f\x8b", b"\x1f\x8b\x08garbage-garbage"])
@pytest.mark.parametrize("name", ["raw/edge.csv.gz", "raw/node-feat.csv.gz", "split/time/test.csv.gz"])
def test_foreign_bytes(name, content, folder):
    (folder / name).write_bytes(content)
    with pytest.raises(GcondError, match=r"damaged|empty"):
        gcond.load(folder)


@pytest.mark.parametrize("name", ["raw/edge.csv.gz", "raw/node-label.csv.gz", "split/time/valid.csv.gz"])
def test_missing_file_is_named(name, folder):
    (folder / name).unlink()
    with pytest.raises(GcondError, match=name.rpartition("/")[2]):
        gcond.load(folder)


def test_two_splits_are_one_too_many(folder):
    write(folder / "split" / "random" / "train.csv.gz", [[0]])
    with pytest.raises(GcondError, match="must hold one folder"):
        gcond.load(folder)
