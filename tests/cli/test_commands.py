"""The commands at work on a tiny graph, end to end."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from cli.workspace import build_tiny
from gcond import __version__, methods, models
from gcond.cli.evaluate import changed, shared_recipe
from gcond.cli.inspect import distinctions
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.config.setting_texts import explain
from gcond.evaluation.evaluate import Score, evaluate
from gcond.graph.inputs import Inputs
from gcond.graph.source_graph import SourceGraph
from gcond.methods.condense import condense
from gcond.methods.random import Random
from gcond.models.gcn import GCN
from gcond.models.sgc import SGC
from gcond.training.recipe import Recipe

QUICK = ("--runs", 2, "--set", "epochs=5")
KINDS = ("selected", "merged", "learned")


def parsed(outcome):
    """The one JSON object on stdout of a command that succeeded."""
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("\n") == 1
    return json.loads(outcome.out)


def test_from_condense_to_inspect_to_evaluate_and_back(workspace, gcond):
    made = parsed(gcond("condense", workspace.source, "--ratio", "10%", "--method", "random", "--seed", 3, "--json"))
    assert set(made) == {"out", "method", "nodes", "edges", "seconds", "cpu_seconds", "peak_rss_mb", "settings"}
    assert (made["out"], made["method"], made["nodes"]) == ("tiny-random-6.safetensors", "random", 6)
    small = CondensedGraph.load(made["out"])
    assert made["edges"] == small.num_edges // 2
    assert small.provenance.seed == 3

    before = parsed(gcond("inspect", made["out"], "--json"))
    assert (before["kind"], before["method"], before["seed"], before["scores"]) == ("condensed", "random", 3, [])
    assert before["reduction"]["nodes"] == pytest.approx(0.9)
    assert before["source_statistics"]["nodes"] == 60

    found = parsed(gcond("evaluate", made["out"], "--on", workspace.source, "--models", "gcn,sgc", *QUICK, "--json"))
    assert list(found) == ["source", "condensed", "same_source", "method", "nodes", "recipe", "results"]
    assert (found["source"], found["condensed"]) == ("tiny", made["out"])
    assert (found["method"], found["nodes"]) == ("random", 6)
    assert found["recipe"]["epochs"] == 5
    assert [set(result) for result in found["results"]] == [
        {"model", "mean", "std", "runs", "val_mean", "settings"}
        | {"macro_f1", "macro_f1_std", "balanced_accuracy", "balanced_accuracy_std", "class_accuracy"}
    ] * 2
    assert [result["model"] for result in found["results"]] == ["gcn", "sgc"]

    after = parsed(gcond("inspect", made["out"], "--on", workspace.source, "--json"))
    assert [score["runs"] for score in after["scores"]] == [result["runs"] for result in found["results"]]
    source = SourceGraph.load(workspace.source)
    assert after["source_statistics"]["homophily"] == pytest.approx(1.0)
    assert after["source_statistics"]["bytes"] == source.nbytes
    assert CondensedGraph.load(made["out"]).sha256 == small.sha256


def test_evaluate_says_what_the_library_measures(workspace, gcond):
    found = parsed(gcond("evaluate", workspace.small, "--on", workspace.source, "--seed", 4, *QUICK, "--json"))
    small, source = CondensedGraph.load(workspace.small), SourceGraph.load(workspace.source)
    (score,) = evaluate(small, on=source, models=["gcn"], runs=2, seed=4, recipe={"epochs": 5})
    (result,) = found["results"]
    assert result["runs"] == list(score.runs)
    assert result["mean"] == pytest.approx(np.mean(score.runs))
    assert result["std"] == pytest.approx(np.std(score.runs, ddof=1))
    assert 0 <= result["mean"] <= 1


def test_scores_are_shown_to_people_and_recorded_once(workspace, gcond):
    for _ in range(2):
        shown = gcond("evaluate", workspace.small, "--on", workspace.source, *QUICK)
        assert shown.code == 0
        assert "gcn" in shown.out
        assert "±" in shown.out
    assert len(CondensedGraph.load(workspace.small).provenance.scores) == 1
    assert "±" in gcond("inspect", workspace.small).out


def test_no_record_leaves_the_file_alone(workspace, gcond):
    before = workspace.contents()
    assert gcond("evaluate", workspace.small, "--on", workspace.source, *QUICK, "--no-record").code == 0
    assert workspace.contents() == before


def test_the_whole_graph(workspace, gcond):
    before = workspace.contents()
    found = parsed(gcond("evaluate", "--whole", workspace.source, *QUICK, "--json"))
    assert (found["condensed"], found["method"], found["nodes"]) == (None, None, 60)
    assert workspace.contents() == before


def test_every_model_by_name_or_by_all(workspace, gcond):
    argv = ("evaluate", workspace.small, "--on", workspace.source, "--runs", 1, "--set", "epochs=2", "--json")
    found = parsed(gcond(*argv, "--models", "all"))
    assert [result["model"] for result in found["results"]] == sorted(models.available())
    again = parsed(gcond(*argv, "--models", ", ".join(models.available())))
    by_name = {result["model"]: result["runs"] for result in found["results"]}
    assert {result["model"]: result["runs"] for result in again["results"]} == by_name


@pytest.mark.parametrize("names", ["gcn,all", "all,gcn", " all , all"])
def test_all_means_all_beside_other_names(names, workspace, gcond, monkeypatch):
    seen = []

    def record(*args, models, **options):
        seen.extend(model.name for model in models)
        return evaluate(*args, models=models[:1], **options)

    monkeypatch.setattr("gcond.evaluation.evaluate.evaluate", record)
    assert gcond("evaluate", workspace.small, "--on", workspace.source, "--models", names, *QUICK).code == 0
    assert seen == sorted(models.available())


def test_a_model_named_twice_is_scored_once(workspace, gcond):
    argv = ("evaluate", workspace.small, "--on", workspace.source, "--models", "sgc,gcn,sgc", *QUICK, "--json")
    assert [result["model"] for result in parsed(gcond(*argv))["results"]] == ["sgc", "gcn"]


def test_settings_reach_the_recipe_and_the_models(workspace, gcond):
    argv = ("evaluate", workspace.small, "--on", workspace.source, "--models", "gcn,sgc", "--runs", 2)
    argv += ("--set", "hidden=16", "--set", "layers=3", "--set", "epochs=5")
    found = parsed(gcond(*argv, "--json"))
    small, source = CondensedGraph.load(workspace.small), SourceGraph.load(workspace.source)
    networks = [GCN(hidden=16, layers=3), SGC(hidden=16, layers=3)]
    expected = evaluate(small, on=source, models=networks, runs=2, recipe={"epochs": 5})
    assert [result["runs"] for result in found["results"]] == [list(score.runs) for score in expected]
    assert [result["settings"] for result in found["results"]] == [{"hidden": 16, "layers": 3, "epochs": 5}] * 2
    assert found["recipe"]["epochs"] == 5
    shown = gcond(*argv)
    assert shown.out.count("layers=3, hidden=16, epochs=5") == 2
    recorded = CondensedGraph.load(workspace.small).provenance.scores
    assert [(score.settings["hidden"], score.settings["layers"]) for score in recorded] == [(16, 3), (16, 3)]


def test_a_key_belongs_to_the_recipe_or_to_a_model_but_not_to_both():
    training = {field.name for field in dataclasses.fields(Recipe)}
    for cls in models.available().values():
        assert not training & {field.name for field in dataclasses.fields(cls)}


@pytest.mark.parametrize("name", sorted(models.available()))
def test_usual_settings_are_no_change(name):
    cls = models.find(name)
    settings, recipe = dataclasses.asdict(cls()), dataclasses.asdict(Recipe(**cls.recipe))
    usual = Score(name, settings, recipe, mean=0.5, std=0.0, runs=(0.5,), val_mean=0.5, cpu_seconds=1.0)
    assert changed(usual) == {}
    other = dataclasses.replace(usual, recipe=recipe | {"epochs": 7}, settings=settings | {"hidden": 9})
    assert changed(other) == {"hidden": 9, "epochs": 7}


def test_one_run_is_shown_without_a_deviation(workspace, gcond):
    argv = ("evaluate", workspace.small, "--on", workspace.source, "--runs", 1, "--set", "epochs=5")
    shown = gcond(*argv)
    assert shown.code == 0
    assert "±" not in shown.out
    assert "±" not in gcond("inspect", workspace.small).out
    assert parsed(gcond(*argv, "--json"))["results"][0]["std"] == 0


def test_rows_of_one_model_can_be_told_apart(workspace, gcond):
    for more in ((), ("--set", "hidden=16"), ("--set", "dropout=0.5")):
        assert gcond("evaluate", workspace.small, "--on", workspace.source, *QUICK, *more).code == 0
    rows = [line for line in gcond("inspect", workspace.small).out.splitlines() if line.split()[:1] == ["gcn"]]
    assert [row.split("hidden=")[1].strip() for row in rows] == [
        "256, dropout=0.0, epochs=5",
        "16, dropout=0.0, epochs=5",
        "256, dropout=0.5, epochs=5",
    ]


def test_distinctions_of_scores():
    def score(model, source="a" * 64, **settings):
        return Score(model, settings, {}, 0.8, 0.0, (0.8,), val_mean=0.8, cpu_seconds=1.0, source=source)

    unknown = [score("later", width=3), score("later", width=4), score("latest", width=3)]
    assert distinctions(unknown) == [{"width": 3}, {"width": 4}, {}]
    assert distinctions([score("gcn", hidden=16), score("sgc", hidden=256)]) == [{"hidden": 16}, {}]
    assert distinctions([score("gcn"), score("gcn", "b" * 64)]) == [{"source": "a" * 12}, {"source": "b" * 12}]


def test_trials_are_resumed(workspace, gcond, monkeypatch):
    argv = ("evaluate", workspace.small, "--on", workspace.source, *QUICK, "-o", "run", "--json")
    first = parsed(gcond(*argv))
    assert len((workspace.folder / "run" / "trials.jsonl").read_text().splitlines()) == 2

    def never(*_, **__):
        raise AssertionError("a finished trial was trained again")

    monkeypatch.setattr("gcond.jobs.training_job.fit", never)
    assert parsed(gcond(*argv)) == first


def test_the_setting_of_the_condensed_graph_is_the_one_it_is_tested_in(workspace, gcond):
    out = workspace.out / "inductive.safetensors"
    argv = ("condense", workspace.source, "--nodes", 6, "--method", "random", "--setting", "inductive", "-o", out)
    assert gcond(*argv).code == 0
    assert CondensedGraph.load(out).provenance.budget["ratio"] == pytest.approx(6 / 30)
    outcome = gcond("evaluate", out, "--on", workspace.source, *QUICK)
    assert outcome.code == 0
    assert "warning" not in outcome.err
    outcome = gcond("evaluate", out, "--on", workspace.source, *QUICK, "--setting", "transductive")
    assert "not the graph this was made from" in outcome.err


def test_inspect_compares_in_the_setting_it_is_given(workspace, gcond):
    argv = ("inspect", workspace.small, "--on", workspace.source)
    assert "warning" not in gcond(*argv).err
    assert "warning" not in gcond(*argv, "--setting", "transductive").err
    assert "not the graph this was made from" in gcond(*argv, "--setting", "inductive").err


def test_a_ratio_beyond_the_labelled_nodes_is_said_to_be_cut(workspace, gcond):
    argv = ("condense", workspace.source, "--method", "random", "--force", "--ratio")
    cut = gcond(*argv, "75%")
    assert cut.code == 0
    assert "note: tiny: ratio 75% of 60 nodes is 45 nodes, cut to the 30 labelled ones\n" in cut.err
    assert CondensedGraph.load("tiny-random-30.safetensors").num_nodes == 30
    assert gcond(*argv, "75%", "--quiet").err == ""
    assert "cut to" not in gcond(*argv, "50%").err
    assert "cut to" not in gcond(*argv, "75%", "--setting", "inductive").err


@pytest.mark.parametrize("command", ["evaluate", "inspect"])
def test_another_source_of_the_same_shape_is_warned_about(command, workspace, gcond):
    other = build_tiny(name="other", extra_edges=[(0, 1), (1, 0)])
    other.save(workspace.folder / "other.safetensors")
    argv = [command, workspace.small, "--on", "other.safetensors", *(QUICK if command == "evaluate" else ())]
    before = workspace.contents()
    outcome = gcond(*argv)
    assert outcome.code == 0
    assert ("not recorded" in outcome.err) == (command == "evaluate")
    assert workspace.contents() == before
    assert outcome.err.startswith("warning: ")
    assert "'other'" in outcome.err
    assert gcond(*argv, "--quiet").err == outcome.err.splitlines(keepends=True)[0]  # a note goes, a warning stays
    assert parsed(gcond(*argv, "--json"))["same_source"] is False
    argv[3] = str(workspace.source)
    assert parsed(gcond(*argv, "--json"))["same_source"] is True


def test_a_recorded_score_names_its_source_and_seed(workspace, gcond):
    assert gcond("evaluate", workspace.small, "--on", workspace.source, "--seed", 4, *QUICK).code == 0
    (score,) = CondensedGraph.load(workspace.small).provenance.scores
    assert (score.source, score.seed) == (SourceGraph.load(workspace.source).sha256, 4)


def test_a_file_that_changed_meanwhile_gets_no_scores(workspace, gcond, monkeypatch):
    """Another process may have put another graph in its place while this one was training."""
    other = condense(build_tiny(), method="random", nodes=6, seed=9)

    def slow(*args, **options):
        scores = evaluate(*args, **options)
        other.save(workspace.small)
        return scores

    monkeypatch.setattr("gcond.evaluation.evaluate.evaluate", slow)
    outcome = gcond("evaluate", workspace.small, "--on", workspace.source, *QUICK)
    assert outcome.code == 0
    assert "±" in outcome.out
    assert "changed while it was evaluated, so the scores are not recorded" in outcome.err
    assert CondensedGraph.load(workspace.small).provenance.scores == ()


def test_a_link_to_a_condensed_file_stays_one_and_its_file_gets_the_scores(workspace, gcond):
    link = workspace.out / "link.safetensors"
    link.symlink_to(workspace.small)
    assert gcond("evaluate", link, "--on", workspace.source, *QUICK).code == 0
    assert link.is_symlink()
    assert len(CondensedGraph.load(workspace.small).provenance.scores) == 1


def write_tables(folder, graph):
    """The nodes of ``graph`` with their features, and fifty one-way edges, as a person keeps them."""
    folder.mkdir()
    parts = {part: graph.mask(part) for part in ("train", "val", "test")}
    rows = [
        f"{node},{graph.y[node]},{next(part for part, mask in parts.items() if mask[node])},"
        + ",".join(f"{value:.3g}" for value in graph.x[node].tolist())
        for node in range(graph.num_nodes)
    ]
    columns = ",".join(f"f{column}" for column in range(graph.num_features))
    (folder / "nodes.csv").write_text("\n".join([f"id,label,split,{columns}", *rows]) + "\n")
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"{i},{i + 3}\n" for i in range(50)))
    return folder


@pytest.mark.parametrize("command", ["evaluate", "inspect", "nas"])
def test_features_of_the_condensed_graph_are_the_ones_it_is_tested_on(command, workspace, gcond):
    graph = build_tiny()
    folder = write_tables(workspace.folder / "mine", dataclasses.replace(graph, x=graph.x * 1e-6))
    out = workspace.out / "small.safetensors"
    made = gcond("condense", folder, "--nodes", 6, "--method", "random", "-o", out)
    assert made.code == 0
    assert "by validation accuracy of a small network: none " in made.err
    kind = CondensedGraph.load(out).provenance.transform["kind"]
    assert kind != "none"
    search = ("--model", "gcn", "--grid", "hidden=4,8", "--runs", 1, "--set", "epochs=5", "-o", workspace.out / "nas")
    more = {"evaluate": QUICK, "nas": search}.get(command, ())
    outcome = gcond(command, out, "--on", folder, *more)
    assert outcome.code == 0, outcome.err
    assert "warning" not in outcome.err
    assert "by validation accuracy" not in outcome.err  # it was chosen before
    if command == "inspect":
        assert kind in outcome.out
    if command != "nas":  # whose folder is of another graph now
        other = gcond(command, out, "--on", folder, "--features", "none", *more)
        assert other.code == 0
        assert f"its features are none, and those it was made from were {kind}" in other.err
        assert other.err.count("its features are none") == 1
        quiet = gcond(command, out, "--on", folder, "--features", "none", *more, "--quiet").err
        assert quiet.startswith("warning: ")
        assert quiet.count("\n") == 1


def test_features_by_name(workspace, gcond):
    source = workspace.source
    whole = parsed(gcond("evaluate", "--whole", source, "--features", "unit-rows", *QUICK, "--json"))
    assert whole["results"][0]["runs"]
    propagated = gcond("propagate", source, "--hops", 0, "--features", "unit-rows", "-o", "x.npy", "--json")
    assert parsed(propagated)["shape"] == [60, 8]
    np.testing.assert_allclose(np.linalg.norm(np.load("x.npy"), axis=1), 1, rtol=1e-6)
    compared = gcond(
        "compare", source, "--nodes", 6, "--methods", "random", "--seeds", 1, "--runs", 1, "--train", "epochs=2",
        "--features", "structural", "-o", "compared", "--json",
    )  # fmt: skip
    assert parsed(compared)["source"]["features"] > 8
    assert "auto, chosen by validation accuracy" in " ".join(gcond("condense", "--help").out.replace("│", " ").split())


@pytest.mark.parametrize("command", ["evaluate", "inspect"])
def test_directions_of_the_condensed_graph_are_the_ones_it_is_tested_in(command, workspace, gcond):
    folder = write_tables(workspace.folder / "mine", build_tiny())
    out = workspace.out / "directed.safetensors"
    argv = ("condense", folder, "--nodes", 6, "--method", "random", "--directed", "-o", out)
    assert gcond(*argv).code == 0
    assert CondensedGraph.load(out).provenance.directed
    outcome = gcond(command, out, "--on", folder, *(QUICK if command == "evaluate" else ()))
    assert outcome.code == 0
    assert "warning" not in outcome.err
    if command == "inspect":
        assert "transductive, directed" in outcome.out


def test_notes_of_the_loader_are_said_unless_quiet(workspace, gcond):
    build_tiny(name="messy", extra_edges=[(4, 4), (5, 5)]).save(workspace.folder / "messy.safetensors")
    argv = ("condense", "messy.safetensors", "--nodes", 6, "--method", "random", "--force")
    loud, quiet, machine = gcond(*argv), gcond(*argv, "--quiet"), gcond(*argv, "--json")
    assert "note: messy: 2 self-loops were dropped\n" in loud.err
    assert quiet.err == ""
    assert "messy-random-6.safetensors" in quiet.out
    assert "self-loops" in machine.err
    parsed(machine)


def test_force_replaces_and_the_same_seed_gives_the_same_graph(workspace, gcond):
    argv = ("condense", workspace.source, "--nodes", 6, "--method", "random", "-o", "again.safetensors")
    assert gcond(*argv).code == 0
    first = CondensedGraph.load("again.safetensors").sha256
    assert gcond(*argv).code == 2
    assert gcond(*argv, "--force").code == 0
    assert CondensedGraph.load("again.safetensors").sha256 == first
    assert gcond(*argv, "--force", "--seed", 1).code == 0
    assert CondensedGraph.load("again.safetensors").sha256 != first


def test_settings_reach_the_method_in_both_spellings(workspace, gcond):
    argv = ("condense", workspace.source, "--nodes", 6, "--method", "herding", "--json")
    together = parsed(gcond(*argv, "-o", "a.safetensors", "--set", "epochs=3", "hidden=4"))
    apart = parsed(gcond(*argv, "-o", "b.safetensors", "--set", "epochs=3", "--set", "hidden=4"))
    assert together["settings"] == apart["settings"]
    assert (together["settings"]["epochs"], together["settings"]["hidden"]) == (3, 4)


def test_inspect_a_source(workspace, gcond):
    found = parsed(gcond("inspect", workspace.source, "--json"))
    assert (found["kind"], found["name"], found["setting"]) == ("source", "tiny", "transductive")
    assert found["split"] == {"train": 30, "val": 15, "test": 15}
    assert found["sha256"] == SourceGraph.load(workspace.source).sha256
    shown = gcond("inspect", workspace.source).out
    assert "tiny" in shown
    assert "30 train, 15 val, 15 test" in shown


def test_inspect_says_where_a_graph_comes_from(workspace, gcond):
    shown = gcond("inspect", workspace.small).out
    provenance = CondensedGraph.load(workspace.small).provenance
    for word in (
        "random",
        "seed 0",
        __version__,
        "transductive",
        provenance.source["sha256"][:12],
        "90.0 % fewer nodes",
        "wall time",
        "CPU time",
    ):
        assert word in shown


def test_inspect_and_evaluate_a_graph_without_provenance(workspace, gcond):
    plain = CondensedGraph(torch.ones(3, 8), torch.arange(3), torch.empty(2, 0, dtype=torch.long), torch.empty(0))
    plain.save("plain.safetensors")
    found = parsed(gcond("inspect", "plain.safetensors", "--json"))
    assert (found["method"], found["source_statistics"], found["reduction"]) == (None, None, {})
    assert gcond("inspect", "plain.safetensors").code == 0
    outcome = gcond("evaluate", "plain.safetensors", "--on", workspace.source, *QUICK)
    assert outcome.code == 0
    assert "not recorded" in outcome.err


def test_propagate(workspace, gcond):
    found = parsed(gcond("propagate", workspace.source, "--hops", 3, "-o", "h.npy", "--json"))
    graph = SourceGraph.load(workspace.source)
    inputs = Inputs(graph.x, graph.adjacency)
    expected = graph.x
    for _ in range(3):
        expected = inputs.gcn @ expected
    np.testing.assert_allclose(np.load("h.npy"), expected.numpy(), rtol=1e-5)
    assert (found["out"], found["hops"], found["shape"], found["dtype"]) == ("h.npy", 3, [60, 8], "float32")
    assert "60 nodes" in gcond("propagate", workspace.source, "-o", "h.npy", "--force").out


def test_propagation_runs_where_it_is_told_to(workspace, gcond, monkeypatch):
    """On a device that only has shapes, since a GPU is not everywhere."""
    seen = []

    def propagate(adjacency, x, **options):
        seen.append((adjacency.device.type, tuple(adjacency.shape), tuple(x.shape), options["hops"]))
        return torch.zeros(60, 8)

    monkeypatch.setattr(
        "gcond.runtime.device.choose_device", lambda name: torch.device("meta" if name == "auto" else name)
    )
    monkeypatch.setattr("gcond.graph.propagation.propagate", propagate)
    for device in ("auto", "cpu"):
        outcome = gcond("propagate", workspace.source, "-o", "h.npy", "--device", device)
        assert outcome.code == 0, outcome.err
    assert seen == [("meta", (60, 60), (60, 8), 2), ("cpu", (60, 60), (60, 8), 2)]


def test_lists_of_what_there_is(workspace, gcond):
    ways = parsed(gcond("methods", "--json"))["methods"]
    assert {way["name"] for way in ways} == set(methods.available())
    networks = parsed(gcond("models", "--json"))["models"]
    assert {network["name"] for network in networks} == set(models.available())
    datasets = parsed(gcond("datasets", "--json"))["datasets"]
    cora = next(dataset for dataset in datasets if dataset["name"] == "cora")
    assert (cora["nodes"], cora["classes"]) == (2708, 7)
    for name, entries in (("methods", ways), ("models", networks), ("datasets", datasets)):
        shown = gcond(name).out
        assert all(entry["name"] in shown for entry in entries)


@pytest.mark.parametrize(
    ("command", "name", "cls"),
    [("methods", name, cls) for name, cls in methods.available().items()]
    + [("models", name, cls) for name, cls in models.available().items()],
)
def test_every_setting_is_explained(command, name, cls, workspace, gcond):
    said = parsed(gcond(command, name, "--json"))
    assert (said["name"], said["citation"]) == (name, cls.citation)
    settings = explain(cls)
    assert [one["text"] for one in said["settings"]] == [one.text for one in settings]
    shown = gcond(command, name).out
    assert cls.citation in shown
    assert all(one.name in shown and one.text.replace("``", "") in shown for one in settings)


def test_lists_say_how_to_see_more(workspace, gcond):
    assert "gcond methods NAME" in gcond("methods").out
    assert "gcond models NAME" in gcond("models").out
    assert "did you mean 'gcond'?" in gcond("methods", "gcnd").err


@pytest.mark.parametrize("command", ["methods", "models", "datasets"])
def test_lists_fit_a_narrow_window(command, workspace, gcond, monkeypatch):
    entries = parsed(gcond(command, "--json"))[command]
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    lines = gcond(command).out.splitlines()
    if command == "datasets":
        end = next(place for place, line in enumerate(lines) if place > 3 and not line.strip())
        lines, below = lines[:end], lines[end + 1 :]
        for words, entry in zip(map(str.split, lines[3:]), entries, strict=True):
            assert (words[0], len(words)) == (entry["name"], 8)
            shown = words[1].replace(",", "")
            if shown.endswith("M"):
                assert float(shown[:-1]) == round(entry["nodes"] / 10**6, 1) >= 1
            else:
                assert int(shown) == entry["nodes"]
        assert [line.split(maxsplit=2) for line in below] == [[e["name"], e["setting"], e["where"]] for e in entries]
    assert max(map(len, lines)) <= 80
    first = [words[0] for words in map(str.split, lines) if words]
    assert all(entry["name"] in first for entry in entries)


@pytest.mark.parametrize("command", ["methods", "models", "datasets"])
def test_a_quiet_command_says_nothing_on_stderr(command, workspace, gcond):
    assert gcond(command, "--quiet").err == ""


def test_threads_and_device_are_applied(workspace, gcond, monkeypatch):
    seen = []
    monkeypatch.setattr("torch.set_num_threads", seen.append)
    assert gcond("methods", "--threads", 2, "--device", "cpu").code == 0
    assert seen[0] == 2


def test_more_threads_than_cores_are_warned_of(gcond, monkeypatch):
    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    monkeypatch.setattr("gcond.runtime.threads.cores", lambda: 2)
    assert gcond("methods", "--threads", 2).err == ""
    assert "--threads 1000 is more than the 2" in gcond("methods", "--threads", 1000).err


def test_what_was_chosen_is_shown(workspace, gcond):
    assert (
        gcond("condense", workspace.source, "--nodes", 6, "--method", "clusters", "-o", "chosen.safetensors").code == 0
    )
    chosen = CondensedGraph.load("chosen.safetensors").provenance.choices
    shown = " ".join(gcond("inspect", "chosen.safetensors").out.split())
    assert f"chosen mass={chosen['mass']}, spread={chosen['spread']}, weight={chosen['weight']}" in shown


def test_version(gcond):
    assert gcond("--version").out == f"gcond {__version__}\n"


def test_the_recipe_tells_models_apart_where_they_differ():
    def score(model, **recipe):
        return Score(model, {}, recipe, 0.5, 0.0, (0.5,), 0.5, 1.0, "ab", 0)

    assert shared_recipe([score("gcn", epochs=600, lr=0.1)]) == {"epochs": 600, "lr": 0.1}
    both = [score("gcn", epochs=600, lr=0.1), score("gat", epochs=3000, lr=0.1)]
    assert shared_recipe(both) == {"epochs": {"gcn": 600, "gat": 3000}, "lr": 0.1}


def test_the_demo_compares_every_method_with_the_whole_graph(workspace, gcond, monkeypatch):
    """The real demo takes its graph and settings as they are; here all are small. It is a run folder as any other."""
    monkeypatch.setattr("gcond.cli.demo.DATASET", str(workspace.source))
    monkeypatch.setattr("gcond.cli.demo.LEARNED", {"epochs": 1, "outer": 1, "inner": 1, "probe_every": 0})
    monkeypatch.setattr("gcond.cli.demo.NODES", 6)
    monkeypatch.setattr("gcond.cli.demo.RUNS", 2)
    monkeypatch.setattr("gcond.cli.demo.RECIPE", {"epochs": 3})
    found = parsed(gcond("demo", "--workers", 1, "--json"))
    whole, *lines = found["lines"]
    assert whole["method"] == "whole"
    assert {line["method"] for line in lines} == set(methods.available())
    assert [line["kind"] for line in lines] == sorted((line["kind"] for line in lines), key=KINDS.index)
    for line in lines:
        assert CondensedGraph.load(workspace.folder / "gcond-demo" / line["graphs"][0]).num_nodes == 6
        assert line["kept"] == pytest.approx(line["mean"] / whole["mean"])
    shown = gcond("demo", "--workers", 1).out
    assert "whole graph" in shown
    following = [line.strip() for line in shown.splitlines() if line.startswith("  gcond report")]
    assert gcond(*following[0].split()[1:], "-o", "demo.html").code == 0
    assert "gcond-x" in (workspace.folder / "demo.html").read_text()


def test_evaluate_has_every_metric_in_its_table_and_json(gcond, workspace):
    done = gcond("evaluate", "small.safetensors", "--on", "tiny.safetensors", "--runs", "2", "--set", "epochs=4")
    for part in ("macro-F1 %", "balanced %", "worst class %", "by class, %", "class 2"):
        assert part in done.out
    done = gcond(
        "evaluate", "small.safetensors", "--on", "tiny.safetensors", "--runs", "2", "--set", "epochs=4", "--json",
        "--metric", "balanced-accuracy",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads(done.out)
    (result,) = found["results"]
    assert found["recipe"]["metric"] == "balanced-accuracy"
    assert len(result["class_accuracy"]) == 3
    # As many test nodes in each class: balanced accuracy is accuracy, and the mean of the classes' own.
    assert result["balanced_accuracy"] == pytest.approx(result["mean"])
    assert result["balanced_accuracy"] == pytest.approx(sum(result["class_accuracy"]) / 3)
    assert result["balanced_accuracy_std"] == pytest.approx(result["std"])
    assert {"macro_f1", "macro_f1_std"} <= result.keys()


def test_condense_by_a_metric(gcond, workspace):
    options = ("--nodes", "6", "--method", "clusters", "--metric", "macro-f1", "--json")
    done = gcond("condense", "tiny.safetensors", "-o", "by-f1.safetensors", *options)
    assert done.code == 0, done.err
    assert json.loads(done.out)["settings"]["metric"] == "macro-f1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("condense", "tiny.safetensors", "--nodes", "6", "--method", "random", "--metric", "macro-f1"), "nothing"),
        (("condense", "tiny.safetensors", "--nodes", "6", "--metric", "f1"), "macro-f1"),
        (("evaluate", "small.safetensors", "--on", "tiny.safetensors", "--metric", "auc"), "macro-f1"),
        (
            ("evaluate", "--whole", "tiny.safetensors", "--metric", "macro-f1", "--set", "metric=accuracy"),
            "given twice",
        ),
        (("compare", "tiny.safetensors", "--nodes", "6", "--metric", "recall"), "macro-f1"),
    ],
)  # fmt: skip
def test_metrics_that_are_none_are_refused(gcond, workspace, words, message):
    done = gcond(*words)
    assert done.code == 2
    assert message in done.err
    assert not list(workspace.folder.glob("*comparison*"))


def test_of_two_commands_that_would_make_one_file_the_second_is_refused(workspace, gcond, monkeypatch):
    """The second is started in the midst of the first, whose file is then there whole, and its own."""
    words = ("condense", workspace.source, "--nodes", 6, "--method", "random", "-o", "out/new.safetensors", "--seed")
    second = []

    def meanwhile(*args, **options):
        if not second:
            second.append(gcond(*words, 2, *(["--force"] if forced else [])))
        return made(*args, **options)

    made = Random.condense
    for forced in (False, True):
        second.clear()
        monkeypatch.setattr(Random, "condense", meanwhile)
        assert gcond(*words, 1, *(["--force"] if forced else [])).code == 0
        assert second[0].code == 2
        assert "another gcond is at work on 'out/new.safetensors'" in second[0].err
        assert CondensedGraph.load("out/new.safetensors").provenance.seed == 1
        assert [path.name for path in workspace.out.iterdir()] == ["new.safetensors"]
    assert gcond(*words, 2, "--force").code == 0


def test_what_is_piped_is_no_wider_than_it_must_be(workspace, gcond, monkeypatch):
    """A table of words is broken into lines; one of numbers alone is as wide as they are."""
    monkeypatch.delenv("COLUMNS")
    words = ("evaluate", workspace.small, "--on", workspace.source, "--runs", 2, "--set", "epochs=5", "hidden=7")
    told = [gcond(*words, "lr=0.02", "dropout=0.3", "weight_decay=0.001", "layers=3"), gcond("methods")]
    told += [gcond("methods", "gcond"), gcond("models"), gcond("inspect", workspace.small)]
    for each in told:
        assert each.code == 0, each.err
        assert max(map(len, each.out.splitlines())) <= 125, each.out


@pytest.mark.slow
def test_pythons_own_random_numbers_are_left_alone(workspace):
    """In a process of its own: what moves them may be an import, which happens once."""
    script = """
        import random
        before = random.getstate()
        import gcond
        graph = gcond.load("tiny.safetensors")
        small = gcond.condense(graph, nodes=6, epochs=2, outer=2, inner=1)
        for method in ("random", "herding", "k-center", "coarsening", "clusters"):
            gcond.condense(graph, method=method, nodes=6)
        gcond.evaluate(small, on=graph, runs=1, epochs=2)
        gcond.train(small, on=graph, epochs=2).predict(graph)
        assert random.getstate() == before
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], check=True)
