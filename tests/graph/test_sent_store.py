"""A store that is sent gives the same bytes; how much of it is anywhere at once."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gcond
from gcond.errors import GcondError
from gcond.graph import sent_store
from gcond.graph.column_work import Hops, SmoothedRows, Smoothing, SumOfHops
from gcond.graph.sent_arrays import Pieces
from gcond.graph.stored_graph import on_engine
from gcond.linalg.tall import row_blocks
from gcond.runtime.engines import LocalEngine
from gcond.runtime.engines.engine import ObjectStore
from graph.elsewhere import Elsewhere
from streamed import packed, small_pieces

SHAPES = [{}, {"weighted": True}, {"weighted": True, "directed": True}, {"features": 60, "density": 0.05}]


@pytest.fixture(autouse=True)
def many_pieces(monkeypatch):
    monkeypatch.setattr(sent_store, "PIECE_BYTES", 600)


def whole(matrix):
    return torch.cat([rows for _, rows in row_blocks(matrix)])


def forget(graph):
    for path in (graph.arrays.folder / "derived").glob("*.npy"):
        path.unlink()


@given(st.integers(0, 40), st.integers(1, 12), st.data())
def test_pieces_read_as_the_array_does(length, step, data):
    array = np.arange(length)
    pieces = Pieces(tuple(array[slice(*span)] for span in Pieces.spans(length, step)), step, length)
    start = data.draw(st.integers(0, length))
    stop = data.draw(st.integers(start, length))
    assert len(pieces) == length
    found = pieces[start:stop]
    assert np.array_equal(found, array[start:stop])
    assert found.flags.writeable


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["gcn", "mean", "laplacian"])
@pytest.mark.filterwarnings("error::UserWarning")
def test_what_is_sent_gives_the_same_bytes(shape, form, make_graph, tmp_path):
    graph = packed(make_graph(**shape), tmp_path)
    works = [Hops(2), SumOfHops(3), Smoothing(0.2, 4), SmoothedRows((0.1, 1.0), 3, torch.tensor([5, 0, 7]))]
    with small_pieces(columns=2):
        inputs = on_engine(graph, Elsewhere(), send_store=True).inputs
        for work in works:
            here = whole(graph.inputs.spread(graph.stored, work, form))
            forget(graph)
            assert torch.equal(whole(inputs.spread(inputs.stored, work, form)), here)


def test_a_kept_product_is_known_by_the_same_sums(make_graph, tmp_path):
    graph = packed(make_graph(), tmp_path)

    def kept(inputs):
        file = inputs.kept("gcn", 2)
        return file.path.read_bytes(), file.path.with_suffix(".json").read_text().partition("pieces")[2]

    with small_pieces(columns=2):
        here = kept(graph.inputs)
        forget(graph)
        assert kept(on_engine(graph, Elsewhere(), send_store=True).inputs) == here


def test_the_adjacency_is_put_once_for_a_command_and_no_more_columns_than_are_worked_on(make_graph, tmp_path):
    graph = packed(make_graph(features=16), tmp_path)
    with small_pieces(columns=2):
        expected = gcond.condense(graph, nodes=9, method="clusters", teacher="ridge")
        forget(graph)
        engine = Elsewhere()
        found = gcond.condense(graph, nodes=9, method="clusters", teacher="ridge", engine=engine, send_store=True)
    assert found.sha256 == expected.sha256
    arrays = graph.arrays
    # Each is cut into as few pieces as its size allows; what else was put was put as a group of columns.
    pieces = sum(-(-len(array) // (600 // array.itemsize)) for array in (arrays.indptr, arrays.indices, arrays.scale))
    groups = len(engine.put_once) - pieces
    assert groups >= 2 * 16 // 2  # several products
    assert engine.most_alive == pieces + engine.workers
    gc.collect()  # inputs are rings of references
    assert engine.alive == 0


def test_tasks_are_sent_no_path(make_graph, tmp_path):
    graph = packed(make_graph(), tmp_path)
    engine = Elsewhere()
    with small_pieces(columns=2):
        on_engine(graph, engine, send_store=True).inputs.kept("gcn", 1)
    assert str(graph.arrays.folder).encode() in pickle.dumps(graph.arrays)
    assert engine.sent
    assert not any(str(tmp_path).encode() in content for content in engine.sent)


def test_groups_are_as_wide_as_the_smallest_object_store_allows(make_graph, tmp_path):
    graph = packed(make_graph(features=16), tmp_path)
    arrays = graph.arrays
    adjacency, column = arrays.indptr.nbytes + arrays.indices.nbytes + arrays.scale.nbytes, 8 * arrays.num_nodes

    def width(columns, tasks):
        size = int((adjacency + columns * column) / sent_store.USABLE) + 1
        engine = Elsewhere([ObjectStore(10**9, 2), ObjectStore(size, tasks)])
        return on_engine(graph, engine, send_store=True).streaming.sent.width(16)

    assert width(16, 4) == 16  # all of them at once
    assert width(15, 4) == 3
    assert width(4, 4) == 1
    with pytest.raises(GcondError, match=r"to send .* a column for each of 4 tasks takes .*: start Ray there"):
        width(3, 4)
    with pytest.raises(GcondError, match=r"has 0 MB: .* and leave send_store=True out"):
        width(-1, 1)


def test_an_object_store_that_is_too_small_is_refused_before_anything_is_put(make_graph, tmp_path):
    graph = packed(make_graph(), tmp_path)
    engine = Elsewhere([ObjectStore(1000, 2)])
    with pytest.raises(GcondError, match="machine's object store"):
        on_engine(graph, engine, send_store=True).inputs.kept("gcn", 1)
    assert not engine.put_once
    assert not list(graph.arrays.folder.glob("derived/*.part"))


def test_only_an_engine_of_a_cluster_sends(make_graph, tmp_path):
    graph = packed(make_graph(), tmp_path)
    with pytest.raises(GcondError, match=r"send_store=True is for machines of a Ray cluster: use open_engine\('ray'\)"):
        on_engine(graph, LocalEngine(2), send_store=True)
    with pytest.raises(GcondError, match=r"send_store=True is for an engine: give one"):
        gcond.condense(graph, nodes=9, method="clusters", send_store=True)
