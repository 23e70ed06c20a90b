"""Tables that were packed give the graph that they give when they are read at once, and the same refusals."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gcond
from data.drawn_tables import Tables, tables
from data.test_own_tables import BAD_CSV, BAD_EDGES, BAD_LISTS, BAD_NODES, EDGES, NODES
from gcond.data import edge_sorting, out_of_core, store_packing, store_writing, table_file, table_packing
from gcond.linalg.sparse import SparseMatrix
from reference.damage import sentence as refusal

SIZES = {
    (table_file, "BLOCK"): st.sampled_from([1, 60, 300, 2**24]),
    (edge_sorting, "ROWS"): st.sampled_from([1, 3, 2**20]),
    (store_packing, "ROWS"): st.sampled_from([4, 12, 2**20]),
    (table_packing, "ROWS"): st.sampled_from([4, 12, 2**20]),
    (store_writing, "BLOCK"): st.sampled_from([1, 16, 2**22]),
    (out_of_core, "BATCH"): st.sampled_from([1, 7, 2**20]),
}


def same_matrix(one, other):
    assert type(one) is type(other)
    if isinstance(one, SparseMatrix):
        assert one.shape == other.shape
        assert one.symmetric == other.symmetric
        return all(same_matrix(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "values"))
    assert one.dtype == other.dtype
    return torch.equal(one, other)


def assert_same_graph(found, expected):
    """Every field, and every byte of the tensors."""
    for field in dataclasses.fields(expected):
        here, there = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(there, torch.Tensor | SparseMatrix):
            assert same_matrix(here, there), field.name
        else:
            assert here == there, field.name
    assert found.sha256 == expected.sha256


@settings(max_examples=60)
@given(drawn=tables(), data=st.data(), directed=st.booleans())
def test_a_packed_graph_is_the_graph_of_its_tables(drawn: Tables, data, directed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    drawn.write(folder / "own")
    options = {"directed": directed, "seed": 3}
    expected = gcond.load(folder / "own", features="none", **options)
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), values in SIZES.items():
            patch.setattr(module, name, data.draw(values, label=f"{module.__name__}.{name}"))
        gcond.pack(folder / "own", folder / "own.gcond", **options)
    found = gcond.load(folder / "own.gcond", features="none")
    assert_same_graph(found, expected)
    assert sorted(path.name for path in folder.iterdir()) == ["own", "own.gcond"]


# ------------------------------------------------------------------------------------------------- the same refusals


def refused_alike(folder, sizes=()):
    """The sentence of both ways in, which must be one."""
    expected = refusal(gcond.load, folder)
    assert expected is not None
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in sizes:
            patch.setattr(module, name, value)
        assert refusal(lambda place: gcond.pack(place, f"{place}.gcond"), folder) == expected
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]
    return expected


SMALL = ((table_file, "BLOCK", 1), (store_packing, "ROWS", 8), (table_packing, "ROWS", 8), (out_of_core, "BATCH", 1))
WAYS = pytest.mark.parametrize("sizes", [(), SMALL], ids=["at once", "in blocks"])


def written(folder, kind, nodes, edges, pieces=1):
    nodes = {key: value for key, value in (NODES | nodes).items() if value is not None}
    tables = [each if isinstance(each, pa.Table) else pa.table(each) for each in (nodes, edges)]
    return Tables(*tables, kind, pieces, pieces, False).write(folder / "own")


@WAYS
@pytest.mark.parametrize("kind", [".csv", ".parquet"])
@pytest.mark.parametrize(("changes", "message"), BAD_NODES)
def test_bad_nodes_have_the_same_sentence(changes, message, kind, sizes, tmp_path):
    assert re.search(message, refused_alike(written(tmp_path, kind, changes, EDGES), sizes))


@WAYS
@pytest.mark.parametrize("kind", [".csv", ".parquet"])
@pytest.mark.parametrize(("edges", "message"), BAD_EDGES)
def test_bad_edges_have_the_same_sentence(edges, message, kind, sizes, tmp_path):
    assert re.search(message, refused_alike(written(tmp_path, kind, {}, edges), sizes))


@pytest.mark.parametrize("ids", [[10, 20, 30, 40, 50, 60], [0, 1, 2, 3, 4, 5], ["0", "1", "2", "3", "4", "5"]])
@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({"source": [0, 1, 7], "target": [1, 2, 3]}, "row . of .* names the source"),
        ({"source": [0, 10, 1], "target": [10, -3, 3]}, "row . of .* names the"),
        ({"source": [None, 10, 1], "target": [10, 10, 3]}, "row 1 of .* names the source ''|row . of"),
        ({"source": [10.0, 0.0, 1.0], "target": [10, 10, 3]}, "holds double: use whole numbers or text"),
    ],
)
def test_ends_that_are_no_ids_have_the_same_sentence(ids, edges, message, tmp_path):
    assert re.search(message, refused_alike(written(tmp_path, ".parquet", {"id": ids}, edges)))


@pytest.mark.parametrize("end", [6, -1])
def test_ends_that_are_no_row_numbers_have_the_same_sentence(end, tmp_path):
    folder = written(tmp_path, ".parquet", {"id": None}, {"source": [0, end], "target": [1, 2]})
    assert f"an edge names node {end}, but there are 6 nodes, 0 to 5" in refused_alike(folder)


@WAYS
@pytest.mark.parametrize(("x", "message"), BAD_LISTS)
def test_bad_lists_have_the_same_sentence(x, message, sizes, tmp_path):
    lists = {"age": None, "weight": None, "x": x}
    assert re.search(message, refused_alike(written(tmp_path, ".parquet", lists, EDGES), sizes))


SPARSE = pa.array([[0], [1, 3], [], [0], [2], [0]], pa.list_(pa.int32()))


@WAYS
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"feature_index": pa.array([[0], [-1], [], [], [], []])},
            "the feature -1: features are numbered from 0",
        ),
        ({"feature_index": pa.array([[0], [2**31], [], [], [], []])}, "names the feature 2147483648"),
        ({"feature_index": pa.array([[0.5], [1.0], [], [], [], []])}, "must list columns, whole numbers from 0"),
        ({"feature_index": pa.array([[0], None, [], [], [], []])}, "is empty in row 2: every node needs its features"),
        ({"feature_index": pa.array([[0], [None], [], [], [], []])}, "has an entry that is empty or nan in row 2"),
        (
            {"feature_index": SPARSE, "feature_value": pa.array([[1.0]] * 6)},
            "1 numbers in row 2 and .* has 2",
        ),
        (
            {"feature_index": SPARSE, "feature_value": pa.array([[1.0], [1.0, np.inf], [], [1.0], [1.0], [1.0]])},
            "the feature of node 1, column 3 is inf: every feature must be a finite number",
        ),
        ({"feature_index": SPARSE, "age": pa.array(range(6))}, "has the list column 'feature_index' beside other"),
    ],
)
def test_bad_sparse_features_have_the_same_sentence(columns, message, sizes, tmp_path):
    nodes = {"age": None, "weight": None} | columns
    assert re.search(message, refused_alike(written(tmp_path, ".parquet", nodes, EDGES), sizes))


@pytest.mark.parametrize(("nodes", "message"), BAD_CSV)
def test_bad_text_files_have_the_same_sentence(nodes, message, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "nodes.csv").write_text(nodes)
    (tmp_path / "own" / "edges.csv").write_text("source,target\n0,1\n")
    assert re.search(message, refused_alike(tmp_path / "own"))


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_what_differs_between_files_has_the_same_sentence(kind, tmp_path):
    folder = written(tmp_path, kind, {}, EDGES, pieces=2)
    (folder / f"nodes-1{kind}").rename(folder / f"nodes-2{kind}")
    other = Tables(pa.table(NODES).drop_columns("age"), pa.table(EDGES | {"weight": [1.0] * 3}), kind, 1, 1, False)
    other.write(tmp_path / "other")
    (tmp_path / "other" / f"nodes{kind}").rename(folder / f"nodes-3{kind}")
    aside = (tmp_path / "other" / f"edges{kind}").rename(tmp_path / f"edges-3{kind}")
    (tmp_path / "other").rmdir()
    aside.rename(folder / f"edges-3{kind}")
    assert "has the column 'age' and" in refused_alike(folder)
    (folder / f"nodes-3{kind}").unlink()
    assert "has no column 'weight'" in refused_alike(folder)
    (folder / f"edges-3{kind}").unlink()
    first = folder / f"edges-0{kind}"
    first.write_bytes(first.read_bytes()[:-4])
    assert re.search("damaged" if kind == ".parquet" else r"row 1 of .*edges-\*\.csv' names", refused_alike(folder))


def test_missing_tables_and_missing_labels_have_the_same_sentence(tmp_path):
    folder = written(tmp_path, ".csv", {}, EDGES)
    (folder / "edges.csv").rename(folder / "aside")
    assert "has no edges.parquet or edges.csv" in refused_alike(folder)
    (folder / "nodes.csv").rename(folder / "edges.csv")
    assert "has no nodes.parquet or nodes.csv" in refused_alike(folder)


def test_wide_lists_that_encode_well_are_read_in_blocks(tmp_path):
    """In the file a thousand ones and zeros are a few bytes, in memory they are not."""
    x = np.zeros((3_000, 1_000), dtype=np.float32)
    x[:, ::50] = 1
    table = pa.table(
        {"x": pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 1_000).cast(pa.list_(pa.float32()))}
    )
    pa.parquet.write_table(table, tmp_path / "nodes.parquet")
    files = table_file.find_table(tmp_path, "nodes")
    assert (tmp_path / "nodes.parquet").stat().st_size < x.nbytes / 50
    assert files.unpacked_bytes >= x.nbytes
