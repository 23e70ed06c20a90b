"""Tables that were packed give the graph that they give when they are read at once, and the same refusals."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gcond
from data.drawn_tables import Tables, tables
from gcond.data import edge_sorting, out_of_core, store_packing, store_writing, table_file, table_packing
from gcond.linalg.sparse import SparseMatrix

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
