"""``gcond.compare`` from Python; the command line's tests look at the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

import gcond
from gcond.errors import GcondError
from gcond.evaluation.comparison_time import STARTING
from gcond.evaluation.evaluate import evaluate
from gcond.methods import GCondX, Random, method_for
from gcond.models.sgc import SGC
from gcond.results.comparison import Comparison
from gcond.runtime.engines import open_engine

QUICK = {"seeds": 2, "runs": 2, "recipe": {"epochs": 4}}


def test_lines_are_what_condense_and_evaluate_give(tmp_path):
    source = gcond.load("synthetic:tiny")
    with open_engine("local", workers=1) as engine:
        found = gcond.compare(source, methods=["random"], nodes=[8], folder=tmp_path, engine=engine, **QUICK)
    whole, line = found.lines
    (score,) = evaluate(source, models=["gcn"], runs=2, recipe={"epochs": 4})
    assert (whole.mean, whole.std) == (score.mean, score.std)
    scores = []
    for seed in range(2):
        small = gcond.condense(source, method="random", nodes=8, seed=seed)
        (score,) = evaluate(small, on=source, models=["gcn"], runs=2, seed=10 * seed, recipe={"epochs": 4})
        scores += score.runs
    assert line.mean == pytest.approx(sum(scores) / 4)
    assert line.mark == "best"
    assert line.bytes < whole.bytes


def test_it_takes_what_load_takes_and_budgets_of_both_kinds(tmp_path):
    methods = [method_for("random", {}), "k-center"]
    with open_engine("local", workers=1) as engine:
        found = gcond.compare(
            "synthetic:tiny", methods=methods, ratio="3%", nodes=[9, 8], folder=tmp_path, engine=engine, **QUICK
        )
    assert [(line.method, line.nodes) for line in found.lines[1:]] == [
        ("random", 9),
        ("k-center", 9),
        ("random", 8),
        ("k-center", 8),
    ]


@pytest.mark.parametrize(
    ("missing", "message"), [({"methods": []}, "names no method"), ({"nodes": []}, "needs a budget")]
)
def test_nothing_to_compare_is_refused(missing, message, tmp_path):
    options = {"methods": ["random"], "nodes": [8], **missing}
    with pytest.raises(GcondError, match=message):
        gcond.compare("synthetic:tiny", folder=tmp_path, **options)


def test_one_method_with_two_settings_is_refused(tmp_path):
    methods = [method_for("coarsening", {"variant": variant}) for variant in ("variation-neighbourhoods", "heavy-edge")]
    with pytest.raises(GcondError, match="'coarsening' is given with different settings"):
        gcond.compare("synthetic:tiny", methods=methods, nodes=[8], folder=tmp_path)


@dataclass(frozen=True)
class Wild(SGC):
    """A model that cannot be trained on a graph with this many nodes."""

    name: ClassVar[str] = "wild"

    def logits(self, parameters, inputs, dropout=None):
        return super().logits(parameters, inputs, dropout) * (torch.nan if inputs.num_nodes > 20 else 1.0)


def test_a_model_that_fails_on_the_whole_graph_does_not_sink_the_others(tmp_path):
    options = {"methods": ["random"], "nodes": [8], "folder": tmp_path, **QUICK}
    with open_engine("local", workers=1) as engine:
        found = gcond.compare("synthetic:tiny", models=[Wild(), "gcn"], engine=engine, **options)
        assert found.models == ("gcn",)
        assert {line.model for line in found.lines} == {"gcn"}
        assert any(failure.what == "wild on the whole graph, seed 0" for failure in found.failures)
        with pytest.raises(GcondError, match="no training on the whole graph to compare with: training wild diverged"):
            gcond.compare("synthetic:tiny", models=[Wild()], engine=engine, **options)


def test_the_top_line_of_an_inductive_source_is_what_training_sees(tmp_path):
    source = gcond.load("synthetic:tiny", setting="inductive")
    with open_engine("local", workers=1) as engine:
        found = gcond.compare(source, methods=["random"], nodes=[8], folder=tmp_path, engine=engine, **QUICK)
    inside = source.view("train").inputs
    assert found.lines[0].nodes == found.source.nodes == inside.num_nodes < source.num_nodes
    assert found.lines[0].edges == inside.adjacency.nnz / 2
    assert found.lines[0].bytes < source.nbytes


def test_a_comparison_is_read_back_as_it_was_saved(tmp_path):
    found = gcond.compare("synthetic:tiny", methods="random", nodes=8, seeds=1, runs=1, epochs=2, folder=tmp_path)
    assert Comparison.load(tmp_path) == found
    assert found.recipe == {"epochs": 2}
    again = gcond.compare("synthetic:tiny", methods=Random(), nodes=8, seeds=1, runs=1, epochs=2)  # in memory alone
    assert [line.mean for line in again.lines] == [line.mean for line in found.lines]


def test_trials_are_shared_between_commands(tmp_path, monkeypatch):
    """What compare trained, evaluate finds."""
    found = gcond.compare("synthetic:tiny", methods="random", nodes=8, seeds=1, runs=2, epochs=2, folder=tmp_path)

    def never(*_, **__):
        raise AssertionError("a finished trial was trained again")

    monkeypatch.setattr("gcond.jobs.training_job.fit", never)
    (score,) = evaluate(tmp_path / found.lines[1].graphs[0], on="synthetic:tiny", runs=2, epochs=2, folder=tmp_path)
    assert score.mean == found.lines[1].mean


def test_by_a_metric_epochs_probes_and_the_best_are_chosen(tmp_path):
    options = {"methods": ["random", "clusters"], "nodes": [9], "seeds": 1, "runs": 2, "epochs": 4}
    with open_engine("local", workers=1) as engine:
        found = gcond.compare("synthetic:tiny", folder=tmp_path, metric="macro-f1", engine=engine, **options)
    assert found.metric == "macro-f1"
    assert found.recipe["metric"] == "macro-f1"
    whole, *lines = found.lines
    assert whole.metrics is not None
    best = max(lines, key=lambda line: line.metrics.macro_f1)
    assert [line.method for line in lines if line.mark == "best"] == [best.method]
    made = {line.method: gcond.CondensedGraph.load(tmp_path / line.graphs[0]).provenance for line in lines}
    assert made["clusters"].settings["metric"] == "macro-f1"
    assert "metric" not in made["random"].settings
    assert Comparison.load(tmp_path) == found


def test_the_time_that_is_left_is_told_before_it_starts(make_graph, tmp_path):
    """How many graphs and trainings there are to do, and at least the time of what is measured of them."""
    graph, heard, began = make_graph(), [], []
    options = {
        "methods": [Random(), GCondX(epochs=3, outer=2, inner=1, probe_every=0)],
        "nodes": [6, 9],
        "seeds": 2,
        "runs": 2,
        "epochs": 30,
        "folder": tmp_path / "run",
        "device": "cpu",
    }

    def on_progress(what, done, total, detail=""):
        began.append(len(heard))

    with open_engine("local", workers=1) as engine:
        gcond.compare(graph, **options, engine=engine, on_estimate=heard.append, on_progress=on_progress)
        (left,) = heard
        assert set(began) == {1}
        assert (left.graphs, left.trainings, left.uncounted) == (8, 18, ("random",))
        assert 0 < left.cpu_seconds < 600
        assert left.seconds == left.cpu_seconds > STARTING
        gcond.compare(graph, **options | {"seeds": 3}, engine=engine, on_estimate=heard.append)
        assert (heard[1].graphs, heard[1].trainings) == (4, 8)
        gcond.compare(graph, **options, engine=engine, on_estimate=heard.append)
        assert (heard[2].graphs, heard[2].trainings, heard[2].cpu_seconds) == (0, 0, 0.0)

    def stop(left):
        heard.append(left)
        raise KeyboardInterrupt

    with open_engine("local", workers=3) as engine, pytest.raises(KeyboardInterrupt):
        gcond.compare(graph, **options | {"seeds": 4}, engine=engine, on_estimate=stop)
    assert heard[3].cpu_seconds > 3 * STARTING  # each of them starts
    assert heard[3].seconds == pytest.approx(heard[3].cpu_seconds / 3)
