"""Every method on a graph that is streamed from its store makes what it makes of the same graph in memory."""

from __future__ import annotations

import pytest
import torch

import gcond
from gcond import methods
from gcond.errors import GcondError
from streamed import packed, small_pieces, streamed

SHAPES = {
    "dense": {},
    "weighted": {"weighted": True},
    "sparse features": {"features": 60, "density": 0.05},
}
SHORT = {"epochs": 2, "outer": 2, "inner": 2, "probe_every": 0, "teacher": "ridge"}
OPTIONS = {
    "clusters": {"teacher": "ridge"},
    "dc-graph": {key: value for key, value in SHORT.items() if key != "teacher"},
    "gcond": SHORT,
    "gcond-x": SHORT,
    "herding": {"epochs": 10, "hidden": 16, "dropout": 0.0},
    "k-center": {"epochs": 10, "hidden": 16, "dropout": 0.0},
    "random": {},
}
IN_MEMORY_ALONE = {"coarsening"}


@pytest.fixture(autouse=True, params=[None, 3], ids=["wide groups", "three columns at a time"])
def pieces(request):
    with small_pieces(columns=request.param):
        yield


def test_every_method_is_here():
    assert set(methods.available()) == set(OPTIONS) | IN_MEMORY_ALONE


def assert_same(there, here):
    """The same to float tolerance; what is counted and chosen, exactly."""
    assert there.x.shape == here.x.shape
    for name in ("source_index", "cluster"):
        one, other = getattr(there, name), getattr(here, name)
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, other), name
    assert torch.allclose(there.x, here.x, atol=2e-5, rtol=1e-3)
    assert torch.allclose(there.y.float(), here.y.float(), atol=1e-5)
    assert torch.equal(there.edge_index, here.edge_index)
    assert torch.allclose(there.edge_weight, here.edge_weight, atol=1e-4)
    for key in ("sha256", "nodes", "edges", "features", "bytes"):
        assert there.provenance.source[key] == here.provenance.source[key]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", OPTIONS)
def test_a_method_from_the_store_makes_what_it_makes_in_memory(method, shape, make_graph, tmp_path):
    graph = make_graph(**SHAPES[shape])
    there = packed(graph, tmp_path)
    made = [gcond.condense(each, nodes=9, method=method, seed=1, **OPTIONS[method]) for each in (there, graph)]
    assert_same(*made)
    if method == "random":
        assert made[0].sha256 == made[1].sha256
    again = gcond.condense(streamed(there.arrays.folder), nodes=9, method=method, seed=1, **OPTIONS[method])
    assert again.sha256 == made[0].sha256  # with what was kept beside the store, the same bytes


@pytest.mark.parametrize("method", ["herding", "k-center"])
def test_dropout_falls_on_the_same_rows(method, make_graph, tmp_path):
    graph = make_graph()
    there = packed(graph, tmp_path)
    assert_same(*(gcond.condense(each, nodes=9, method=method, epochs=10, hidden=16) for each in (there, graph)))


def test_probes_and_what_they_choose_are_those_in_memory(make_graph, tmp_path):
    graph = make_graph()
    options = SHORT | {"epochs": 3, "probe_every": 1}
    made = [gcond.condense(each, nodes=9, method="gcond-x", **options) for each in (packed(graph, tmp_path), graph)]
    assert_same(*made)
    there, here = (one.provenance.history for one in made)
    assert len(here["probe"]) > 1
    assert there["probe"] == pytest.approx(here["probe"], abs=0.051)  # one of twenty nodes
    assert there["probe_epoch"] == here["probe_epoch"]


def test_directed_graphs_are_condensed_from_the_store_too(make_graph, tmp_path):
    graph = make_graph(directed=True, weighted=True)
    there = packed(graph, tmp_path)
    made = [gcond.condense(each, nodes=9, method="clusters", teacher="ridge") for each in (there, graph)]
    assert_same(*made)
    assert made[0].provenance.directed


@pytest.mark.parametrize("method", sorted(IN_MEMORY_ALONE))
def test_what_needs_the_graph_in_memory_says_how_much_that_is(method, make_graph, tmp_path):
    there = packed(make_graph(), tmp_path)
    with pytest.raises(GcondError, match=rf"{method} needs .* in memory.*: use memory_limit='\d+MB' or more") as error:
        gcond.condense(there, nodes=9, method=method)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_propagation_from_the_store_is_that_in_memory(shape, hops, make_graph, tmp_path):
    graph = make_graph(**SHAPES[shape])
    there = packed(graph, tmp_path)
    out = {"here": tmp_path / "here.npy", "there": tmp_path / "there.npy"}
    here = gcond.propagate(graph, hops=hops, out=out["here"])
    found = gcond.propagate(there, hops=hops, out=out["there"])
    assert torch.allclose(found, here, atol=1e-6)
    assert torch.equal(gcond.propagate(there, hops=hops), found)
    assert out["there"].stat().st_size == out["here"].stat().st_size
    if hops == 0:
        assert out["there"].read_bytes() == out["here"].read_bytes()
    with pytest.raises(GcondError, match="hops=-1 is not usable"):
        gcond.propagate(there, hops=-1)
