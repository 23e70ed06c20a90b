"""The source of a condensed graph is read as it was: with the recorded transform, and to the same tensors."""

from __future__ import annotations

import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

import gcond
from gcond.condensed.origin import load_origin, transform_difference
from gcond.errors import GcondError, GcondWarning
from gcond.graph.feature_kinds import KINDS
from gcond.linalg.sparse import dense


def write(folder, graph, factor=1.0):
    """``graph`` as a person keeps it: two tables."""
    split = [
        next((part for part in ("train", "val", "test") if graph.mask(part)[node]), "")
        for node in range(graph.num_nodes)
    ]
    label = [None if y < 0 else int(y) for y in graph.y.tolist()]
    x = (dense(graph.x).abs() * factor).tolist()
    parquet.write_table(pa.table({"label": label, "split": split, "x": x}), folder / "nodes.parquet")
    source, target = graph.adjacency.edge_index.tolist()
    parquet.write_table(pa.table({"source": source, "target": target}), folder / "edges.parquet")
    return folder


@pytest.fixture
def club(tmp_path, make_graph):
    return write(tmp_path, make_graph(sizes=(60, 60, 60)), 1e-6)


@pytest.mark.parametrize("features", [None, *KINDS])
def test_the_same_tensors_as_when_it_was_made(features, setting, club):
    graph = gcond.load(club, setting=setting, features=features)
    if features is None:
        assert graph.transform.kind != "none"  # too small to be learned from
    else:
        assert graph.transform.kind == features
    small = gcond.condense(graph, method="random", nodes=9)
    again = load_origin(small.provenance, club)
    assert again.sha256 == graph.sha256 == small.provenance.source["sha256"]
    assert again.transform == graph.transform
    assert transform_difference(small.provenance, again) == ""


def test_statistics_are_not_fitted_anew(club, tmp_path, make_graph):
    small = gcond.condense(club, method="random", nodes=9, features="standardise")
    other = tmp_path / "other"
    other.mkdir()
    write(other, make_graph(sizes=(60, 60, 60), seed=1), 3.0)
    graph = load_origin(small.provenance, other)
    assert graph.transform.mean == tuple(small.provenance.transform["mean"])
    assert graph.x.abs().mean() > 100  # three million times what it was fitted to


def test_given_goes_before_recorded(club):
    small = gcond.condense(club, method="random", nodes=9, features="tf-idf")
    graph = load_origin(small.provenance, club, features="unit-rows", setting="inductive")
    assert (graph.transform.kind, graph.setting) == ("unit-rows", "inductive")
    said = "its features are unit-rows, and those it was made from were tf-idf"
    assert transform_difference(small.provenance, graph) == said


def test_files_of_gcond_are_transformed_once(club, tmp_path):
    raw, made = gcond.load(club, features="none"), gcond.load(club, features="unit-rows")
    raw.save(tmp_path / "raw.safetensors")
    made.save(tmp_path / "made.safetensors")
    small = gcond.condense(made, method="random", nodes=9)
    for name in ("raw", "made"):
        assert load_origin(small.provenance, tmp_path / f"{name}.safetensors").sha256 == made.sha256
    small = gcond.condense(raw, method="random", nodes=9)
    assert load_origin(small.provenance, tmp_path / "made.safetensors").sha256 == made.sha256  # and it is warned of


def test_evaluate_reads_the_source_so_and_warns_of_another(club):
    small = gcond.condense(club, method="random", nodes=9, features="standardise")
    quick = {"runs": 1, "epochs": 5, "device": "cpu"}
    graph = gcond.load(club, features="standardise")
    by_path, by_graph = (gcond.evaluate(small, on=on, **quick)[0] for on in (club, graph))
    assert by_path.runs == by_graph.runs
    assert by_path.source == graph.sha256
    with pytest.warns(GcondWarning, match="its features are none, and those it was made from were standardise"):
        gcond.evaluate(small, on=gcond.load(club, features="none"), **quick)
    (whole,) = gcond.evaluate(str(club), features="standardise", **quick)
    assert whole.source == graph.sha256
    with pytest.raises(GcondError, match="features= is for a whole graph"):
        gcond.evaluate(small, on=club, features="none", **quick)


def test_compare_and_condense_take_features(club):
    found = gcond.compare(
        club, methods="random", nodes=9, features="unit-rows", seeds=1, runs=1, epochs=2, device="cpu"
    )
    assert found.source.sha256 == gcond.load(club, features="unit-rows").sha256


def test_growing_says_that_the_features_differ(club):
    small = gcond.condense(
        club, method="gcond-x", nodes=6, features="unit-rows", epochs=1, probe_every=0, init="sample"
    )
    grown = gcond.grow(small, on=club, nodes=9)
    assert torch.equal(grown.x[:6], small.x)
    with pytest.raises(GcondError, match="its features are none, and those it was made from were unit-rows"):
        gcond.grow(small, on=gcond.load(club, features="none"), nodes=9)
