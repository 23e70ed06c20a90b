from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from gcond.condensed import Compaction, CondensedGraph
from gcond.methods import compact as compaction
from gcond.runtime.tensor_file import read_tensors
from gcond.training import Recipe


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(compaction, "RECIPE", Recipe(epochs=10, validate_every=5))


def test_chosen_by_validation(gcond, workspace):
    found = gcond("compact", workspace.small, "--on", workspace.source, "-o", "out/c.safetensors", "--json")
    assert found.code == 0, found.err
    said = json.loads(found.out)
    small, made = CondensedGraph.load(workspace.small), CondensedGraph.load("out/c.safetensors")
    assert said["sha256"] == made.sha256
    assert said["bytes"]["before"] == small.nbytes
    assert said["bytes"]["after"] == made.nbytes < small.nbytes
    assert said["bytes"]["file"] == (workspace.out / "c.safetensors").stat().st_size
    assert 0 < said["bytes"]["source_share"] < 1
    taken = {key: said["compaction"][key] for key in ("bits", "step") if key in said["compaction"]}
    assert any(taken.items() <= cut.items() for cut in said["compaction"]["ladder"])
    assert "validation accuracy" in " ".join(gcond("inspect", "out/c.safetensors").out.split())


def test_given_by_a_person(gcond, workspace):
    found = gcond("compact", workspace.small, "--entries", 3, "--bits", 16)
    assert found.code == 0, found.err
    made = CondensedGraph.load("small-compact.safetensors")
    assert made.compaction == Compaction(3, 16)
    assert "3 entries a row, 16 bits each" in " ".join(found.out.split())
    assert "of the source's" in found.out


def test_inspect_says_bytes_before_and_after(gcond, workspace):
    gcond("compact", workspace.small, "--entries", 3, "-o", "out/c.safetensors")
    said = json.loads(gcond("inspect", "out/c.safetensors", "--json").out)
    made = CondensedGraph.load("out/c.safetensors")
    size = (workspace.out / "c.safetensors").stat().st_size
    assert said["bytes"] == {
        "before": CondensedGraph.load(workspace.small).nbytes,
        "after": made.nbytes,
        "source_share": made.nbytes / made.provenance.source["bytes"],
        "file": size,
    }
    assert said["compaction"]["entries"] == 3
    shown = " ".join(gcond("inspect", "out/c.safetensors", "--on", workspace.source).out.split())
    assert "before," in shown
    assert "% of the source's; the whole file" in shown
    plain = json.loads(gcond("inspect", workspace.small, "--json").out)["bytes"]
    assert plain["before"] == plain["after"]


def test_condense_compact(gcond, workspace):
    words = ["condense", workspace.source, "--nodes", 6, "--compact", "-o", "out/c.safetensors", "--json"]
    # At this rate one step is seen through the cut: where it is not, the first choice stays.
    quick = ["--set", "epochs=1", "outer=1", "inner=1", "hidden=8", "probe_every=0", "lr_features=1"]
    found = gcond(*words, "--method", "gcond-x", *quick)
    assert found.code == 0, found.err
    said = json.loads(found.out)
    made = CondensedGraph.load("out/c.safetensors")
    assert said["compaction"]["bytes_after"] == made.nbytes
    assert said["compaction"]["start"]["ladder"]
    assert said["settings"]["entries"] == (made.compaction.entries or 0)


def test_a_compact_file_is_little_more_than_what_training_needs(gcond, workspace):
    gcond("compact", workspace.small, "--entries", 3, "-o", "out/c.safetensors")
    gcond("compact", workspace.small, "--entries", 3, "--keep-digests", "-o", "out/k.safetensors")
    without, kept = (read_tensors(f"out/{name}.safetensors")[0] for name in "ck")
    digests = {name for name in kept if name.startswith("source.")}
    assert digests == {"source.edges", "source.features", "source.labels"}
    assert without.keys() == kept.keys() - digests
    words = ["condense", workspace.source, "--nodes", 6, "--method", "random"]
    assert "--keep-digests is for --compact" in gcond(*words, "--keep-digests").err
    found = gcond(*words, "--compact", "--keep-digests", "-o", "out/r.safetensors")
    assert "; the whole file" in " ".join(found.out.split())
    assert CondensedGraph.load("out/r.safetensors").digests is not None


def test_ids_that_are_dropped_are_mentioned(gcond, workspace):
    small = CondensedGraph.load(workspace.small)
    told = "ids of the source's nodes are dropped"
    assert told not in " ".join(gcond("compact", workspace.small, "--entries", 3).out.split())
    digests = dataclasses.replace(small.digests, ids=torch.arange(len(small.digests)))
    dataclasses.replace(small, digests=digests).save("named.safetensors")
    assert told in " ".join(gcond("compact", "named.safetensors", "--entries", 3).out.split())


def test_scores_go_into_the_compact_file(gcond, workspace):
    gcond("compact", workspace.small, "--entries", 3, "-o", "out/c.safetensors")
    before = CondensedGraph.load("out/c.safetensors")
    found = gcond("evaluate", "out/c.safetensors", "--on", workspace.source, "--runs", 1, "--set", "epochs=5")
    assert found.code == 0, found.err
    after = CondensedGraph.load("out/c.safetensors")
    assert (after.sha256, after.compaction) == (before.sha256, before.compaction)
    assert len(after.provenance.scores) == 1


def test_a_graph_of_unknown_origin(gcond, workspace):
    graph = CondensedGraph.load(workspace.small)
    CondensedGraph(graph.x, graph.y, graph.edge_index, graph.edge_weight).save("bare.safetensors")
    found = gcond("compact", "bare.safetensors", "--entries", 3, "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["bytes"]["source_share"] is None
    assert torch.count_nonzero(CondensedGraph.load("bare-compact.safetensors").x, dim=1).max() <= 3
    assert "3 entries a row" in " ".join(gcond("inspect", "bare-compact.safetensors").out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "judged on the source graph: give --on SOURCE, or say it yourself, as --entries 100 does"),
        (["--entries", "0"], "is no number of entries per row: give 1 or more"),
        (["--bits", "5"], "--bits"),
        (["--entries", "2", "--tolerance", "0.1"], "--tolerance is for cuts that are chosen"),
        (["--on", "tiny.safetensors", "--tolerance", "2"], "is no share of accuracy"),
        (["--entries", "2", "-o", "small.safetensors"], "give another name with -o"),
    ],
)
def test_refusals(gcond, workspace, words, message):
    before = workspace.contents()
    found = gcond("compact", workspace.small, *words)
    assert found.code == 2
    assert message in found.err
    assert len(found.err.strip().splitlines()) == 1
    assert workspace.contents() == before
