"""A graph that stays in its packed store is the same graph."""

from __future__ import annotations

import dataclasses
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

import gcond
from gcond.data.store_reading import open_store
from gcond.data.store_writing import write_store
from gcond.errors import GcondError
from gcond.graph import feature_choice, feature_treatment, streamed_operator
from gcond.graph.column_work import Hops, SmoothedRows, Smoothing, SumOfHops
from gcond.graph.feature_treatment import treated
from gcond.graph.features import FeatureTransform
from gcond.graph.stored_features import StoredFeatures
from gcond.graph.stored_graph import StoredGraph, on_engine, watched
from gcond.graph.stored_inputs import SLACK, StoredInputs, Streaming, require_column
from gcond.linalg import tall
from gcond.linalg.sparse import SparseMatrix, dense
from gcond.linalg.tall import row_blocks
from gcond.runtime.engines import open_engine
from gcond.runtime.engines.engine import Outcome
from gcond.runtime.memory import held_bytes

SHAPES = [{}, {"weighted": True}, {"weighted": True, "directed": True}, {"features": 60, "density": 0.05}]
FORMS = ("gcn", "mean", "laplacian")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(tall, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(streamed_operator, "BLOCK_ENTRIES", 100)


@pytest.fixture
def stored(tmp_path):
    def make(graph, memory=10**10):
        write_store(tmp_path / "g.gcond", graph)
        arrays = open_store(tmp_path / "g.gcond")
        return StoredGraph.of(arrays, Streaming(memory), name=graph.name, setting=None)

    return make


def whole(matrix):
    return torch.cat([rows for _, rows in row_blocks(matrix)])


@pytest.mark.parametrize("shape", SHAPES)
def test_it_has_the_fingerprint_the_counts_and_the_labels_of_the_graph_in_memory(shape, make_graph, stored):
    graph = make_graph(**shape)
    found = stored(graph)
    assert found.sha256 == graph.sha256
    assert found.nbytes == graph.nbytes
    assert dataclasses.replace(found.statistics, homophily=0) == dataclasses.replace(graph.statistics, homophily=0)
    assert found.statistics.homophily == pytest.approx(graph.statistics.homophily)
    for part in ("train", "val", "test"):
        assert torch.equal(found.view(part).nodes, graph.view(part).nodes)
        assert torch.equal(found.view(part).y, graph.view(part).y)


FILLED = {"dense": {"density": 1.0}, "mostly zeros": {"features": 60, "density": 0.05}}


@pytest.mark.parametrize("packed", ["as dense", "as sparse"])
@pytest.mark.parametrize("shape", FILLED)
@pytest.mark.parametrize("kind", ["none", "row-normalise", "unit-columns", "standardise"])
def test_features_are_sparse_or_dense_as_in_memory_in_whatever_form_they_were_packed(
    packed, shape, kind, make_graph, tmp_path
):
    graph = make_graph(**FILLED[shape])
    raw = dense(graph.x)
    if packed == "as sparse":
        raw = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(raw.numpy()))
    write_store(tmp_path / "g.gcond", graph, raw=raw)
    here = gcond.load(tmp_path / "g.gcond", features=kind)
    there = gcond.load(tmp_path / "g.gcond", features=kind, memory_limit="1MB")
    assert isinstance(there, StoredGraph)
    assert there.stored.is_sparse == isinstance(here.x, SparseMatrix)
    assert there.nbytes == here.nbytes
    everyone = torch.arange(graph.num_nodes)
    assert torch.allclose(dense(there.stored.matrix(everyone)), dense(here.x), atol=1e-5)
    assert type(there.stored.matrix(everyone)) is type(here.x)
    if kind in ("none", "row-normalise"):  # the others have statistics, which are sums in another order
        assert there.sha256 == here.sha256


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_products_with_columns_are_those_in_memory(shape, form, make_graph, stored):
    graph = make_graph(**shape)
    inputs, plain = stored(graph).inputs, graph.view("train").inputs
    x = dense(graph.x)
    for work in (Hops(2), SumOfHops(3), Smoothing(0.2, 4), SmoothedRows((0.1, 1.0), 3, torch.tensor([5, 0, 7]))):
        assert torch.allclose(whole(inputs.spread(inputs.stored, work, form)), plain.spread(x, work, form), atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_some_nodes_see_is_exact(shape, make_graph, stored):
    graph = make_graph(**shape)
    for form in FORMS:
        found, expected = (each.view("val").propagated(2, form) for each in (stored_once(graph, stored), graph))
        assert torch.allclose(found, expected, atol=1e-5)


def stored_once(graph, stored, kept={}):  # noqa: B006 (a store is written once per graph)
    if graph.sha256 not in kept or not kept[graph.sha256].arrays.folder.exists():
        kept[graph.sha256] = stored(graph)
    return kept[graph.sha256]


@pytest.mark.parametrize("shape", SHAPES[:2] + SHAPES[3:])
def test_clusters_from_the_store_are_those_in_memory(shape, make_graph, stored):
    graph = make_graph(**shape)
    there, here = (gcond.condense(each, nodes=9, method="clusters", teacher="ridge") for each in (stored(graph), graph))
    assert torch.equal(there.cluster, here.cluster)
    assert torch.allclose(there.x, here.x, atol=1e-5)
    assert torch.allclose(there.y.float(), here.y.float(), atol=1e-5)
    assert there.provenance.source["sha256"] == here.provenance.source["sha256"]


def test_a_selection_from_the_store_is_the_one_in_memory(make_graph, stored):
    graph = make_graph()
    there, here = (gcond.condense(each, nodes=9, method="random") for each in (stored(graph), graph))
    assert there.sha256 == here.sha256


def test_what_was_propagated_is_kept_and_found(make_graph, stored, monkeypatch):
    graph = stored(make_graph())
    kept = graph.inputs.kept("gcn", 2)
    monkeypatch.setattr(Hops, "__call__", lambda *_: pytest.fail("it was there"))
    again = graph.with_streaming(Streaming(10**10)).inputs.kept("gcn", 2)
    assert torch.equal(whole(kept), whole(again))


def test_scratch_files_are_gone_with_the_inputs(make_graph, stored):
    graph = stored(make_graph())
    inputs = graph.with_streaming(Streaming(10**10)).inputs
    folder = inputs.spread(inputs.stored, SumOfHops(1)).path.parent
    assert folder.exists()
    del inputs
    assert not folder.exists()


def test_a_limit_that_one_column_breaks_is_refused_with_what_it_needs(make_graph, stored):
    graph = stored(make_graph(), memory=10**6)
    with pytest.raises(GcondError, match=r"one column at a time takes \d+ MB: use memory_limit='\d+MB' or more"):
        graph.inputs.kept("gcn", 1)
    with pytest.raises(GcondError, match=r"nodes .* would have to be in memory at once"):
        graph.view("val").focus(2, 1)


def test_a_limit_that_is_too_small_is_refused_before_work_with_one_that_is_not():
    with pytest.raises(
        GcondError, match=r"one column at a time takes \d+ MB: use memory_limit='\d+MB' or more"
    ) as error:
        require_column(1000, 10**6)
    require_column(1000, int(re.findall(r"'(\d+)MB'", str(error.value))[0]) * 10**6)


def test_what_was_promised_at_the_start_may_take_half_of_the_slack(make_graph, stored):
    graph = stored(make_graph())
    inputs, nodes = graph.inputs, graph.view("val").nodes
    inputs.promise(nodes, 2, 1)
    little = graph.with_streaming(Streaming(held_bytes() + SLACK * 3 // 4)).inputs
    with pytest.raises(GcondError, match="would have to be in memory at once"):
        little.promise(nodes, 2, 1)
    little._promised = inputs._promised
    little.around(nodes, 2, 1)
    with pytest.raises(GcondError, match="would have to be in memory at once"):
        little.around(nodes[1:], 2, 1)


def test_load_streams_what_does_not_fit(make_graph, tmp_path):
    write_store(tmp_path / "g.gcond", make_graph())
    assert not isinstance(gcond.load(tmp_path / "g.gcond"), StoredGraph)
    assert isinstance(gcond.load(tmp_path / "g.gcond", memory_limit="1MB"), StoredGraph)
    with pytest.raises(GcondError, match="transductive"):
        gcond.load(tmp_path / "g.gcond", memory_limit="1MB", setting="inductive")
    with pytest.raises(GcondError, match="pack it with `gcond pack`"):
        gcond.load("synthetic:tiny", memory_limit="1MB")


FEATURES = pytest.mark.parametrize("features", [None, "none", "tf-idf", "standardise", "unit-rows", "auto"])


@FEATURES
@pytest.mark.parametrize("usual", ["auto", "row-normalise", "none"])
@pytest.mark.parametrize("shape", SHAPES[:1] + SHAPES[3:])
def test_features_are_treated_on_disk_as_in_memory(usual, features, shape, make_graph, tmp_path):
    graph = make_graph(**shape)
    write_store(tmp_path / "g.gcond", graph, raw=positive(graph.x), usual=usual)
    here = gcond.load(tmp_path / "g.gcond", features=features)
    there = gcond.load(tmp_path / "g.gcond", features=features, memory_limit="1MB")
    assert isinstance(there, StoredGraph)
    assert there.transform.kind == here.transform.kind
    assert there.notes == here.notes
    for key, value in here.transform.to_json().items():
        assert value == pytest.approx(there.transform.to_json()[key]), key
    everyone = torch.arange(graph.num_nodes)
    assert torch.allclose(there.stored[everyone], dense(here.x), atol=1e-5)
    if here.transform == there.transform:
        assert there.sha256 == here.sha256


def positive(x):
    return x.with_values(x.values.abs(), symmetric=False) if isinstance(x, SparseMatrix) else x.abs()


def test_features_that_were_transformed_before_they_were_packed_stay(make_graph, tmp_path):
    graph = gcond.load(make_graph(), features="standardise")
    write_store(tmp_path / "g.gcond", graph)
    there = gcond.load(tmp_path / "g.gcond", memory_limit="1MB")
    assert isinstance(there, StoredGraph)
    assert there.transform == graph.transform
    assert there.sha256 == graph.sha256
    assert gcond.load(tmp_path / "g.gcond", features="standardise", memory_limit="1MB").sha256 == graph.sha256
    with pytest.raises(GcondError, match="were already made standardise: load its raw data with features='unit-rows'"):
        gcond.load(tmp_path / "g.gcond", features="unit-rows", memory_limit="1MB")


def test_structural_features_stay_and_are_not_made_on_disk(make_graph, tmp_path):
    graph = gcond.load(make_graph(), features="structural")
    write_store(tmp_path / "s.gcond", graph)
    there = gcond.load(tmp_path / "s.gcond", memory_limit="1MB", features="structural")
    assert there.sha256 == graph.sha256
    write_store(tmp_path / "g.gcond", make_graph())
    with pytest.raises(GcondError, match=r"structural features needs .* in memory, .* or the features that it has"):
        gcond.load(tmp_path / "g.gcond", memory_limit="1MB", features="structural")


def test_it_goes_to_other_processes_by_its_paths(make_graph, stored):
    graph = stored(make_graph(features=30))
    sent = pickle.dumps(graph)
    assert torch.equal(whole(pickle.loads(sent).inputs.kept("gcn", 1)), whole(graph.inputs.kept("gcn", 1)))
    write_store(graph.arrays.folder, make_graph(features=30, seed=1), force=True)
    with pytest.raises(GcondError, match="a worker has another store at"):
        pickle.loads(sent)
    (graph.arrays.folder / "store.json").unlink()
    with pytest.raises(GcondError, match="at the same path on every machine"):
        pickle.loads(sent)


def test_methods_that_need_the_graph_in_memory_say_so(make_graph, stored):
    graph = stored(make_graph())
    with pytest.raises(
        GcondError,
        match=r"coarsening needs .* in memory, .*: use memory_limit='\d+MB' or more, or",
    ):
        gcond.condense(graph, nodes=9, method="coarsening")
    with pytest.raises(GcondError, match="an engine is for a packed store"):
        on_engine(make_graph(), None)


@pytest.mark.slow
def test_an_engine_gives_the_same_bytes(make_graph, stored):
    graph = stored(make_graph())
    alone = whole(graph.inputs.spread(graph.stored, Hops(2), "mean"))
    with open_engine("ray", workers=2) as engine:
        there = gcond.condense(graph, nodes=9, method="clusters", teacher="ridge", engine=engine)
        inputs = on_engine(graph, engine).inputs
        assert torch.equal(
            whole(inputs.spread(graph.stored, SumOfHops(0), "mean")), dense(graph.stored.rows(0, graph.num_nodes))
        )
        assert torch.equal(whole(inputs.spread(inputs.stored, Hops(2), "mean")), alone)
    here = gcond.condense(graph, nodes=9, method="clusters", teacher="ridge")
    assert there.sha256 == here.sha256


@pytest.mark.parametrize("shape", SHAPES)
def test_features_that_go_through_in_several_groups_are_turned_once_and_give_the_same(
    shape, make_graph, stored, monkeypatch
):
    graph = make_graph(**shape)
    inputs, x = stored(graph).inputs, dense(graph.x)
    monkeypatch.setattr(StoredInputs, "width", lambda self, work: 1)
    monkeypatch.setattr(StoredFeatures, "columns", lambda *_: pytest.fail("every group would read all rows"))
    for work in (Hops(2), SumOfHops(3), Smoothing(0.2, 4)):
        expected = graph.view("train").inputs.spread(x, work)
        assert torch.allclose(whole(inputs.spread(inputs.stored, work)), expected, atol=1e-5)


def test_tasks_read_another_file_than_they_write(make_graph, stored, monkeypatch):
    """One that dies in the middle is done again, from columns that must still be what they were."""
    graph = stored(make_graph())
    monkeypatch.setattr(StoredInputs, "width", lambda self, work: 1)
    alone = whole(graph.inputs.spread(graph.stored, SumOfHops(2)))

    class Twice:
        workers = 2

        def map(self, function, shared, jobs):
            for job in jobs:
                function(shared, job, lambda fraction: None)
                yield Outcome(job, function(shared, job, lambda fraction: None))

    inputs = on_engine(graph, Twice()).inputs
    found = inputs.spread(inputs.stored, SumOfHops(2))
    assert torch.equal(whole(found), alone)
    assert [path.name for path in found.path.parent.glob("*.npy")] == [found.path.name]


@pytest.mark.parametrize(
    "work", [Hops(2), SumOfHops(3), Smoothing(0.2, 4), SmoothedRows((0.1, 1.0), 3, torch.tensor([5, 0, 7]))]
)
def test_whoever_watches_hears_of_every_entry_and_every_row(work, make_graph, stored, monkeypatch):
    monkeypatch.setattr(StoredInputs, "width", lambda self, work: 4)
    heard = []
    graph = watched(stored(make_graph()), lambda what, done, total, detail="": heard.append((what, done, total)))
    made = graph.inputs.spread(graph.stored, work)
    products = [(done, total) for what, done, total in heard if what == f"{work} of the graph"]
    assert products == sorted(products)
    groups = -(-graph.num_features // 4)
    assert products[-1] == (groups * work.products * len(graph.arrays.indices),) * 2
    if work.keeps_rows:
        heard.clear()
        whole(made)
        assert heard[-1][1:] == (graph.num_nodes, graph.num_nodes)


def test_the_fingerprint_is_kept_in_the_store(make_graph, stored, monkeypatch):
    graph = stored(make_graph())
    found = graph.sha256
    (kept,) = (graph.arrays.folder / "derived").glob("sha256-*.txt")
    kept.write_text("damaged")
    assert dataclasses.replace(graph).sha256 == found == kept.read_text()
    monkeypatch.setattr(StoredGraph, "_fingerprint", lambda self: pytest.fail("it was there"))
    assert dataclasses.replace(graph).sha256 == found
    other = dataclasses.replace(graph, transform=FeatureTransform("unit-rows"))
    with pytest.raises(pytest.fail.Exception):  # another graph has another
        _ = other.sha256


@pytest.mark.parametrize("shape", SHAPES)
def test_the_transform_is_chosen_from_blocks_as_in_memory_and_kept(shape, make_graph, stored, monkeypatch):
    monkeypatch.setattr(feature_choice, "BLOCK_BYTES", 500)
    graph = make_graph(**shape)
    here, there = treated(graph, "auto"), treated(stored(graph), "auto")
    assert there.transform.kind == here.transform.kind
    assert there.notes[-1] == here.notes[-1]
    monkeypatch.setattr(feature_treatment, "choose_transform", lambda *_: pytest.fail("it was there"))
    again = treated(there.with_transform(FeatureTransform()), "auto")
    assert again.transform == there.transform
    (kept,) = (there.arrays.folder / "derived").glob("features-*.json")
    kept.write_text('{"transform": {"kind": "foreign"}}')
    with pytest.raises(pytest.fail.Exception):  # what is damaged is chosen again
        treated(there.with_transform(FeatureTransform()), "auto")


@given(data=st.data(), rows=st.integers(1, 60), step=st.integers(1, 70))
def test_rows_are_read_alone_or_in_blocks(data, rows, step, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "x.npy"
    matrix = np.arange(3 * rows, dtype="<f4").reshape(rows, 3)
    np.save(path, matrix)
    wanted = np.array(sorted(data.draw(st.lists(st.integers(0, rows - 1)))), dtype=np.int64)
    found = streamed_operator.read_rows(np.load(path, mmap_mode="r"), wanted, step)
    assert np.array_equal(found, matrix[wanted])
