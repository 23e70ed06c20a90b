"""Predictions as tables: read back by other people's readers, whatever classes and nodes are called."""

from __future__ import annotations

import csv
import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from gcond.errors import GcondError
from gcond.graph.node_ids import NodeIds
from gcond.training import predictions
from gcond.training.predictions import Predictions, probability_columns

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)


def made(ids, class_names, labels=None, seed=0):
    n, classes = len(ids), len(class_names)
    probabilities = torch.rand(n, classes, generator=torch.Generator().manual_seed(seed)).softmax(1)
    return Predictions(
        nodes=torch.arange(n),
        probabilities=probabilities,
        ids=NodeIds.of(ids, n),
        class_names=tuple(class_names),
        labels=torch.tensor(labels if labels is not None else [-1] * n),
        label_names=tuple(class_names),
        computed_on="a graph",
    )


@given(
    st.lists(NAMES, min_size=1, max_size=6, unique=True),
    st.lists(NAMES, min_size=1, max_size=5, unique=True),
)
def test_any_names_survive_both_forms(tmp_path_factory, ids, class_names):
    folder = tmp_path_factory.mktemp("p")
    found = made(ids, class_names, [0, -1, *[len(class_names) - 1] * len(ids)][: len(ids)])
    found.save(folder / "p.parquet", labels=True)
    found.save(folder / "p.csv", labels=True)
    table = parquet.read_table(folder / "p.parquet")
    with open(folder / "p.csv", newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file, strict=True))
    columns = ["id", "class", "label", *probability_columns(tuple(class_names))]
    assert table.column_names == header == columns
    assert len(set(columns)) == len(columns)
    assert table["id"].to_pylist() == [row[0] for row in rows] == ids
    assert table["class"].to_pylist() == [row[1] for row in rows] == found.names
    known = [None if each < 0 else class_names[each] for each in found.labels.tolist()]
    assert table["label"].to_pylist() == known
    assert [row[2] for row in rows] == [each or "" for each in known]
    expected = found.probabilities.numpy()
    assert np.array_equal(np.stack([table[name].to_numpy() for name in columns[3:]], 1), expected)
    assert np.array_equal(np.array([[float(cell) for cell in row[3:]] for row in rows], np.float32), expected)


def test_row_groups_and_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "ROWS_TOGETHER", 7)
    told = []
    found = made([f"n{at}" for at in range(20)], ["a", "b"])
    found.save(
        tmp_path / "p.parquet", on_progress=lambda what, done, total, detail="": told.append((what, done, total))
    )
    file = parquet.ParquetFile(tmp_path / "p.parquet")
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [7, 7, 6]
    assert told == [("writing", done, 20) for done in (7, 14, 20)]
    assert file.read().equals(found.to_table())


def test_columns_have_no_line_breaks_and_all_differ():
    assert probability_columns(("a\nb", "a b", "a\tb", "ü,\"'")) == [
        "probability_a b",
        "probability_a b (2)",
        "probability_a b (3)",
        "probability_ü,\"'",
    ]


@pytest.mark.parametrize("name", ["p.txt", "p", "p.CSV", "p.parquet.gz"])
def test_a_name_that_says_no_form(tmp_path, name):
    with pytest.raises(GcondError, match=r"\.parquet or \.csv"):
        made(["a"], ["x"]).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "p.csv"
    path.write_text("precious")
    found = made(["a", "b"], ["x"])
    monkeypatch.setattr(Predictions, "_rows", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(GcondError, match="the disk is full"):
        found.save(path)
    assert path.read_text() == "precious"
    assert [each.name for each in tmp_path.iterdir()] == ["p.csv"]


def test_accuracy_counts_labelled_nodes_among_those_asked_for():
    found = made(list("abcd"), ["x", "y"])
    right = found.classes.tolist()
    labels = torch.tensor([right[0], 1 - right[1], -1, right[3]])
    found = dataclasses.replace(found, labels=labels)
    assert found.accuracy() == pytest.approx(2 / 3)
    assert found.accuracy(torch.tensor([True, False, True, False])) == 1
    assert found.accuracy(torch.tensor([False, False, True, False])) is None
    assert found.counts() == {"x": right.count(0), "y": right.count(1)}
