from __future__ import annotations

import json

import pytest

from gcond.condensed import CondensedGraph
from gcond.evaluation import recommend as module
from gcond.methods.condense import condense

QUICK = ("--runs", 2, "--set", "epochs=5", "--grid", "dropout=0,0.5", "hidden=8,256")


@pytest.fixture
def larger(workspace):
    from gcond.graph.source_graph import SourceGraph

    condense(SourceGraph.load(workspace.source), method="random", nodes=9).save("larger.safetensors")
    return "larger.safetensors"


def test_from_recommend_to_inspect_to_evaluate(gcond, workspace, larger):
    found = gcond("recommend", workspace.small, larger, "--on", workspace.source, *QUICK, "--json")
    assert found.code == 0, found.err
    said = json.loads(found.out)
    assert said["files"] == [str(workspace.small), larger]
    assert said["recommendation"]["tried"] == len(said["tried"]) >= 3
    assert said["tried"][0]["changes"] == {}
    kept = [CondensedGraph.load(file).provenance.recommendations for file in said["files"]]
    assert kept[0] == kept[1]
    assert kept[0][0].val_mean == said["recommendation"]["val_mean"]

    shown = json.loads(gcond("inspect", larger, "--json").out)
    assert shown["recommendations"] == [said["recommendation"]]
    text = " ".join(gcond("inspect", larger).out.split())
    assert "recommended gcn:" in text
    assert "the fixed recipe with epochs=5" in text
    assert f"{said['recommendation']['tried']} recipes tried on 2 graphs" in text

    words = ("--runs", 1, "--recipe", "recommended", "--json")
    scored = gcond("evaluate", larger, "--on", workspace.source, *words)
    assert scored.code == 0, scored.err
    recipe = json.loads(scored.out)["recipe"]
    assert recipe == said["recommendation"]["recipe"]
    (score,) = CondensedGraph.load(larger).provenance.scores
    assert score.settings == said["recommendation"]["settings"]
    assert CondensedGraph.load(larger).provenance.recommendations == kept[0], "scores leave it there"


def test_the_table_shows_what_was_tried(gcond, workspace):
    found = gcond("recommend", workspace.small, "--on", workspace.source, *QUICK)
    assert found.code == 0, found.err
    for words in ("dropout=0.5", "hidden=8", "gain", "noise", "--recipe recommended"):
        assert words in found.out


def test_set_goes_on_top_of_the_recommendation(gcond, workspace):
    assert gcond("recommend", workspace.small, "--on", workspace.source, *QUICK).code == 0
    words = ("--on", workspace.source, "--recipe", "recommended", "--runs", 1, "--set", "hidden=4", "lr=0.5", "--json")
    found = gcond("evaluate", workspace.small, *words)
    assert found.code == 0, found.err
    said = json.loads(found.out)
    assert said["results"][0]["settings"]["hidden"] == 4
    assert (said["recipe"]["lr"], said["recipe"]["epochs"]) == (0.5, 5)


def test_the_whole_graph_by_the_same_recipe(gcond, workspace):
    assert gcond("recommend", workspace.small, "--on", workspace.source, *QUICK).code == 0
    found = gcond("evaluate", "--whole", workspace.source, "--recipe", workspace.small, "--runs", 1, "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["recipe"]["epochs"] == 5


def test_a_run_folder(gcond, workspace, monkeypatch):
    words = ("recommend", workspace.small, "--on", workspace.source, *QUICK, "-o", "out/run", "--json")
    first = json.loads(gcond(*words).out)
    monkeypatch.setattr("gcond.jobs.training_job.fit", None)
    assert json.loads(gcond(*words).out) == first


def test_a_file_that_changed_meanwhile_is_left_alone(gcond, workspace, larger, monkeypatch):
    real = module.recommend

    def slow(*args, **options):
        found = real(*args, **options)
        CondensedGraph.load(larger).save(workspace.small)
        return found

    monkeypatch.setattr(module, "recommend", slow)
    found = gcond("recommend", workspace.small, "--on", workspace.source, *QUICK)
    assert found.code == 0
    assert "changed meanwhile" in found.err
    assert CondensedGraph.load(workspace.small).provenance.recommendations == ()


def test_condense_recommend(gcond, workspace, monkeypatch):
    monkeypatch.setattr(module, "usual_grid", lambda start: {"dropout": [0.5]})
    words = ["condense", workspace.source, "--nodes", 6, "--method", "random", "-o", "out/c.safetensors"]
    found = gcond(*words, "--recommend", "--json")
    assert found.code == 0, found.err
    (kept,) = CondensedGraph.load("out/c.safetensors").provenance.recommendations
    assert json.loads(found.out)["recommendations"][0]["val_mean"] == kept.val_mean
    assert kept.tried == 2
    assert "--recipe recommended" in gcond(*words, "--recommend", "--force").out
    assert gcond(*words, "--force").code == 0
    assert CondensedGraph.load("out/c.safetensors").provenance.recommendations == ()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["recommend", "--on", "SOURCE"], "needs a file"),
        (["recommend", "SMALL"], "--on"),
        (["recommend", "SMALL", "SMALL", "--on", "SOURCE"], "give each once"),
        (["recommend", "SMALL", "--on", "SOURCE", "--runs", "1"], "use --runs 2 or more"),
        (["recommend", "SMALL", "--on", "SOURCE", "--grid", "droput=0,0.5"], "did you mean 'dropout'"),
        (["recommend", "SMALL", "--on", "SOURCE", "--set", "epochz=1"], "did you mean 'epochs'"),
        (["recommend", "SMALL", "--on", "SOURCE", "--model", "gnc"], "unknown model 'gnc'"),
        (["recommend", "SOURCE", "--on", "SOURCE"], "a condensed graph is needed here"),
        (["recommend", "SMALL", "--on", "SOURCE", "--setting", "inductive"], "no option '--setting'"),
        (["evaluate", "SMALL", "--on", "SOURCE", "--recipe", "recommended"], "gcond recommend SMALL --on SOURCE"),
        (
            ["evaluate", "SMALL", "--on", "SOURCE", "--recipe", "cora"],
            "--recipe cora is no way to train: it is 'recommended'",
        ),
        (["evaluate", "--whole", "SOURCE", "--recipe", "SMALL"], "has no recommended recipe for gcn"),
        (["evaluate", "--whole", "SOURCE", "--recipe", "recommended"], "use --recipe FILE"),
        (["condense", "SOURCE", "--nodes", "6", "--recommend", "--within", "9s"], "leave --recommend out"),
    ],
)
def test_refusals(gcond, workspace, words, message):
    places = {"SMALL": str(workspace.small), "SOURCE": str(workspace.source)}
    before = workspace.contents()
    found = gcond(*[places.get(word, word) for word in words])
    assert found.code == 2
    assert message.replace("SMALL", places["SMALL"]) in found.err
    assert len(found.err.strip().splitlines()) == 1
    assert workspace.contents() == before
