"""``load(features=…)``: by name, by choice, as recorded; from the raw features, and refused where there are none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gcond
from gcond.errors import GcondError
from gcond.graph.features import FeatureTransform
from gcond.graph.stored_graph import StoredGraph
from gcond.linalg.sparse import dense

WORDS = "synthetic:sparse,nodes=300,features=200"


@pytest.mark.parametrize("features", ["standardize", "", 7, True, torch.ones(2), ["none"]])
def test_unknown_features(features):
    with pytest.raises(GcondError, match=r"unknown features .*: choose one of auto, none"):
        gcond.load("synthetic:tiny", features=features)
    with pytest.raises(GcondError, match="did you mean 'standardise'"):
        gcond.load("synthetic:tiny", features="standardize")


def test_a_made_up_graph_keeps_its_own_unless_asked():
    usual, raw, weighed = (gcond.load(WORDS, features=kind) for kind in (None, "none", "tf-idf"))
    assert [graph.transform.kind for graph in (usual, raw, weighed)] == ["row-normalise", "none", "tf-idf"]
    assert set(dense(raw.x).unique().tolist()) == {0, 1}
    torch.testing.assert_close(dense(weighed.x).norm(dim=1), torch.ones(300))
    assert gcond.load(WORDS, features="row-normalise").sha256 == usual.sha256
    assert gcond.load(WORDS, features=FeatureTransform("row-normalise")).sha256 == usual.sha256
    assert gcond.load(WORDS, features=weighed.transform).sha256 == weighed.sha256


def test_transformed_features_are_not_transformed_again(make_graph):
    graph = gcond.load(make_graph(), features="standardise")
    assert gcond.load(graph, features="standardise") is graph
    assert gcond.load(graph, features=graph.transform) is graph
    for other in ("auto", "none", "unit-rows"):
        with pytest.raises(GcondError, match="already made standardise: load its raw data with features"):
            gcond.load(graph, features=other)
    with pytest.raises(GcondError, match="already made standardise with other statistics"):
        gcond.load(graph, features=FeatureTransform("standardise", (0.0,), (1.0,)))
    assert gcond.load(graph, features="structural").transform.kind == "structural"


@pytest.mark.parametrize("kind", ["tf-idf", "unit-columns"])
def test_statistics_of_all_nodes_do_not_become_inductive(kind):
    graph = gcond.load(WORDS, features=kind)
    with pytest.raises(GcondError, match="only training nodes may count: load its raw data"):
        gcond.load(graph, setting="inductive")
    inductive = gcond.load(WORDS, features=kind, setting="inductive")
    assert (inductive.transform == graph.transform) == (kind == "unit-columns")  # words are 1 or nothing either way
    assert inductive.with_setting("inductive").sha256 == inductive.sha256
    assert inductive.with_setting("transductive").transform == inductive.transform


@pytest.mark.parametrize("factors", [[1e30] * 6, [1, 1, 1e8, 1, 1, 1e-8]], ids=["huge", "mixed"])
def test_a_file_of_useless_scale_is_mended_though_little_can_be_learned(factors, tmp_path):
    stream = np.random.default_rng(0)
    y, edges = stream.integers(0, 3, 300), stream.integers(0, 300, (2, 900))
    x = stream.normal(size=(300, 6)) + np.eye(3).repeat(2, 1)[y]
    np.savez(tmp_path / "g.npz", x=(x * factors).astype("f4"), y=y, edge_index=edges)
    graph = gcond.load(tmp_path / "g.npz")
    assert graph.transform.kind != "none"
    gcond.pack(tmp_path / "g.npz", tmp_path / "store.gcond")
    there = gcond.load(tmp_path / "store.gcond", memory_limit="1MB")
    assert isinstance(there, StoredGraph)
    assert there.transform.kind == graph.transform.kind
    asked = gcond.load(tmp_path / "g.npz", features="none")
    assert "features='auto' chooses a transform" in asked.notes[-1]


def test_the_given_graph_is_left_alone(make_graph):
    graph = make_graph()
    before = graph.sha256
    for kind in ("standardise", "unit-rows", "unit-columns", "structural", "auto"):
        gcond.load(graph, features=kind)
    assert type(graph)(**{f.name: getattr(graph, f.name) for f in graph.__dataclass_fields__.values()}).sha256 == before
