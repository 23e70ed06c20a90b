"""The protocol: reproducible, resumable, blind to test labels, the same for stock PyG models."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import balanced_accuracy_score
from torch_geometric.nn import GCNConv, SAGEConv

import gcond
from conftest import MakeGraph
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.errors import GcondError
from gcond.evaluation.evaluate import evaluate
from gcond.graph.learning_setting import Setting
from gcond.graph.source_graph import SourceGraph
from gcond.jobs import training_job
from gcond.models.gcn import GCN
from gcond.models.mlp import MLP
from gcond.models.sgc import SGC
from gcond.training import Fit, Recipe, fit, predict
from gcond.training.fit import runs_together

QUICK = {"epochs": 12}


@pytest.fixture(scope="module")
def source() -> SourceGraph:
    return gcond.load("synthetic:tiny")


@pytest.fixture(scope="module")
def small(source: SourceGraph) -> CondensedGraph:
    return gcond.condense(source, method="random", nodes=24)


def test_a_score_sums_up_its_runs(source: SourceGraph, small: CondensedGraph) -> None:
    (score,) = evaluate(small, on=source, runs=4, recipe=QUICK)
    runs = torch.tensor(score.runs, dtype=torch.float64)
    assert score.mean == pytest.approx(float(runs.mean()))
    assert score.std == pytest.approx(float(runs.std(unbiased=True)))
    assert score.recipe["epochs"] == 12
    assert score.settings == {"layers": 2, "hidden": 256, "activation": "relu"}
    assert 0 < score.val_mean <= 1


def test_the_score_is_the_accuracy_of_the_best_validation_epoch(source: SourceGraph, small: CondensedGraph) -> None:
    """Against training stopped after each epoch in turn, in double checking by hand."""
    model, seeds = GCN(hidden=8), [3]
    (score,) = evaluate(small, on=source, models=[model], runs=1, seed=3, recipe={"epochs": 2})
    options = {"classes": source.num_classes, "seeds": seeds}
    recipe = Recipe(epochs=2)
    fitted = fit(model, small.view(), source.view("val"), recipe=recipe, **options)
    logits = model.logits(fitted.parameters[0], source.view("test").inputs)
    view = source.view("test")
    expected = (logits[view.nodes].argmax(1) == view.y).double().mean()
    assert score.runs == (float(expected),)


def test_a_run_does_not_depend_on_the_others(
    source: SourceGraph, small: CondensedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = evaluate(small, on=source, runs=5, recipe=QUICK)[0].runs
    assert evaluate(small, on=source, runs=2, recipe=QUICK)[0].runs == together[:2]
    assert evaluate(small, on=source, runs=2, seed=3, recipe=QUICK)[0].runs == together[3:]
    monkeypatch.setitem(runs_together.__globals__, "STACK_BYTES", 1)  # one by one
    assert evaluate(small, on=source, runs=5, recipe=QUICK)[0].runs == together


def test_all_models_in_one_call(source: SourceGraph, small: CondensedGraph) -> None:
    names = sorted(gcond.models.available())
    scores = evaluate(small, on=source, models=names, runs=2, recipe={"epochs": 3})
    assert [score.model for score in scores] == names
    assert all(0 <= score.mean <= 1 for score in scores)


def test_the_whole_graph_is_its_own_reference(source: SourceGraph) -> None:
    (score,) = evaluate(source, models=["sgc"], runs=2, recipe={"epochs": 60})
    chance = float(torch.bincount(source.y[source.test_mask]).max() / source.test_mask.sum())
    assert score.mean > chance + 0.1


def test_resuming_does_only_what_is_missing(
    source: SourceGraph, small: CondensedGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = evaluate(small, on=source, models=["gcn", "sgc"], runs=3, recipe=QUICK)
    trained: list[tuple[str, int]] = []

    def counting_fit(model: GCN, *views: object, seeds: list[int], **options: object) -> Fit:
        if len(trained) == 4:
            raise KeyboardInterrupt
        trained.extend((model.name, seed) for seed in seeds)
        return fit(model, *views, seeds=seeds, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(training_job, "fit", counting_fit)
    monkeypatch.setitem(runs_together.__globals__, "STACK_BYTES", 1)
    with pytest.raises(KeyboardInterrupt):
        evaluate(small, on=source, models=["gcn", "sgc"], runs=3, recipe=QUICK, folder=tmp_path)
    trained.append(("", -1))  # past the interruption
    resumed = evaluate(small, on=source, models=["gcn", "sgc"], runs=3, recipe=QUICK, folder=tmp_path)
    assert [score.runs for score in resumed] == [score.runs for score in undisturbed]
    done = [entry for entry in trained if entry[0]]
    assert sorted(done) == [(name, seed) for name in ("gcn", "sgc") for seed in range(3)]


@pytest.mark.parametrize("change", [{"epochs": 13}, {"dropout": 0.5}, {"lr": 0.02}])
def test_another_recipe_is_another_trial(
    source: SourceGraph, small: CondensedGraph, tmp_path: Path, change: dict[str, float]
) -> None:
    path = tmp_path / "trials.jsonl"
    evaluate(small, on=source, runs=1, recipe=QUICK, folder=tmp_path)
    evaluate(small, on=source, runs=1, recipe=QUICK | change, folder=tmp_path)
    evaluate(source, runs=1, recipe=QUICK, folder=tmp_path)
    evaluate(small, on=source, models=[GCN(hidden=8)], runs=1, recipe=QUICK, folder=tmp_path)
    assert len(path.read_text().splitlines()) == 4


def test_another_gcond_is_another_trial(
    source: SourceGraph, small: CondensedGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a version computes, another need not: its trials are not taken for its own."""
    path = tmp_path / "trials.jsonl"
    for version in ("1", "1", "2"):
        monkeypatch.setattr(training_job, "__version__", version)
        evaluate(small, on=source, runs=1, recipe=QUICK, folder=tmp_path)
    assert len(path.read_text().splitlines()) == 2


def test_a_score_says_what_it_was_tested_on_and_from_which_seed(source: SourceGraph, small: CondensedGraph) -> None:
    inductive = source.with_setting("inductive")
    first, second = (evaluate(small, on=graph, runs=1, seed=5, recipe=QUICK)[0] for graph in (source, inductive))
    assert (first.source, first.seed) == (source.sha256, 5)
    assert second.source == inductive.sha256 != source.sha256


@pytest.mark.parametrize("one", ["sgc", SGC(hops=3)])
def test_one_model_needs_no_list(source: SourceGraph, small: CondensedGraph, one: str | SGC) -> None:
    (alone,) = evaluate(small, on=source, models=one, runs=1, recipe=QUICK)
    (listed,) = evaluate(small, on=source, models=[one], runs=1, recipe=QUICK)
    assert alone.model == "sgc"
    assert alone.runs == listed.runs
    with pytest.raises(GcondError, match="unknown model 'gcnn' \\(did you mean 'gcn'"):
        evaluate(small, on=source, models="gcnn")


@pytest.mark.parametrize("setting", ["transductive", "inductive"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_pyg_source(make_graph: MakeGraph, setting: Setting, directed: bool) -> None:
    """It is used as the condensed graph says, so that it is the very graph that this was made from."""
    graph = make_graph(setting, directed=directed)
    condensed = gcond.condense(graph, method="random", nodes=12)
    (score,) = evaluate(condensed, on=graph.to_pyg(), runs=1, recipe=QUICK)
    assert score.source == graph.sha256 == condensed.provenance.source["sha256"]
    assert score.runs == evaluate(condensed, on=graph, runs=1, recipe=QUICK)[0].runs
    bare = dataclasses.replace(condensed, provenance=None)
    (plain,) = evaluate(bare, on=graph.to_pyg(), runs=1, recipe=QUICK)
    assert plain.source == SourceGraph.from_pyg(graph.to_pyg()).sha256


def test_test_labels_decide_nothing(source: SourceGraph, small: CondensedGraph, tmp_path: Path) -> None:
    """Shuffled test labels change the test accuracy and nothing else."""
    y = source.y.clone()
    index = source.test_mask.nonzero().squeeze(1)
    y[index] = y[index].roll(7)
    honest, poisoned = (
        evaluate(small, on=graph, runs=2, recipe=QUICK)[0] for graph in (source, dataclasses.replace(source, y=y))
    )
    assert honest.val_mean == poisoned.val_mean
    assert honest.runs != poisoned.runs


def test_inductive_parts_do_not_see_each_other(source: SourceGraph) -> None:
    """Cutting every edge between parts changes nothing in the inductive setting."""
    graph = source.with_setting("inductive")
    part = torch.full((graph.num_nodes,), -1)
    for number, name in enumerate(("train", "val", "test")):
        part[graph.mask(name)] = number
    rows, columns = graph.adjacency.row_index, graph.adjacency.indices.long()
    inside = part[rows] == part[columns]
    cut = SourceGraph.build(
        name="cut",
        x=graph.x,
        edge_index=torch.stack([columns[inside], rows[inside]]),
        edge_weight=graph.adjacency.values[inside],
        y=graph.y,
        train=graph.train_mask,
        val=graph.val_mask,
        test=graph.test_mask,
    )
    assert cut.num_edges < graph.num_edges
    assert evaluate(graph, runs=2, recipe=QUICK)[0].runs == evaluate(cut, runs=2, recipe=QUICK)[0].runs


def test_soft_labels_of_one_class_are_hard_ones(source: SourceGraph, small: CondensedGraph) -> None:
    soft = dataclasses.replace(small, y=F.one_hot(small.y, source.num_classes).float())
    hard_runs = evaluate(small, on=source, runs=2, recipe=QUICK)[0].runs
    assert evaluate(soft, on=source, runs=2, recipe=QUICK)[0].runs == pytest.approx(hard_runs, abs=0.02)


def test_without_structure_training_uses_the_identity(source: SourceGraph, small: CondensedGraph) -> None:
    """On A' = I, propagation does nothing: SGC learns the very weights of a linear model on X' alone."""
    bare = dataclasses.replace(small, edge_index=torch.empty(2, 0, dtype=torch.long), edge_weight=torch.empty(0))
    recipe = Recipe(epochs=10, select="last")
    sgc, linear = (
        fit(model, bare.view(), None, classes=source.num_classes, seeds=[0], recipe=recipe).parameters[0]
        for model in (SGC(hops=3), MLP(layers=1))
    )
    assert all(torch.equal(sgc[key], linear[key]) for key in linear)
    scores = evaluate(bare, on=source, models=[SGC(hops=3), MLP(layers=1)], runs=2, recipe=QUICK)
    assert scores[0].runs != scores[1].runs  # at test the real graph counts again


def test_what_does_not_fit_is_refused(source: SourceGraph, small: CondensedGraph) -> None:
    narrow = dataclasses.replace(small, x=small.x[:, :-1].clone())
    with pytest.raises(GcondError, match="features"):
        evaluate(narrow, on=source)
    with pytest.raises(GcondError, match="source graph"):
        evaluate(small)
    with pytest.raises(GcondError, match="use 1 or more"):
        evaluate(small, on=source, runs=0)
    with pytest.raises(GcondError, match="unknown model 'gcnn' \\(did you mean 'gcn'"):
        evaluate(small, on=source, models=["gcnn"])
    with pytest.raises(GcondError, match="no setting 'epoch'"):
        evaluate(small, on=source, recipe={"epoch": 3})
    empty = dataclasses.replace(source, test_mask=torch.zeros_like(source.test_mask))
    with pytest.raises(GcondError, match="no test nodes"):
        evaluate(small, on=empty)


def test_progress_counts_every_epoch_of_every_run(source: SourceGraph, small: CondensedGraph) -> None:
    seen: list[tuple[str, float, float]] = []
    evaluate(small, on=source, runs=3, recipe=QUICK, on_progress=lambda *state: seen.append(state))
    assert seen[-1] == ("training", 3, 3)
    assert len({done for _, done, _ in seen}) > 12
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


class Stock(torch.nn.Module):
    """Two stock PyG layers."""

    def __init__(self, layer: type, features: int, classes: int) -> None:
        super().__init__()
        self.weighted = layer is GCNConv
        self.first, self.second = layer(features, 256), layer(256, classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        extra = (weight,) if self.weighted else ()
        return self.second(self.first(x, edge_index, *extra).relu(), edge_index, *extra)


@pytest.mark.parametrize(("name", "layer"), [("gcn", GCNConv), ("sage", SAGEConv)])
@pytest.mark.parametrize("structure", [True, False])
def test_stock_pyg_models_reach_the_same_accuracy(name: str, layer: type, structure: bool) -> None:
    """A plain PyG training loop on ``to_pyg()``, with the recipe and no other code of ours."""
    source = gcond.load("synthetic:small")
    small = gcond.condense(source, method="random", nodes=100)
    if not structure:
        small = dataclasses.replace(small, edge_index=torch.empty(2, 0, dtype=torch.long), edge_weight=torch.empty(0))
    runs, epochs = 3, 30
    (ours,) = evaluate(small, on=source, models=[name], runs=runs, recipe={"epochs": epochs})

    little, whole = small.to_pyg(), source.to_pyg()
    theirs = []
    for seed in range(runs):
        torch.manual_seed(seed)
        model = Stock(layer, whole.num_features, source.num_classes)
        best, tested = -1.0, 0.0
        for epoch in range(epochs):
            if epoch % (epochs // 2) == 0:
                rate = 0.01 if epoch == 0 else 0.001
                optimiser = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=5e-4)
            optimiser.zero_grad()
            F.cross_entropy(model(little.x, little.edge_index, little.edge_weight), little.y).backward()
            optimiser.step()
            with torch.no_grad():
                right = model(whole.x, whole.edge_index, whole.edge_weight).argmax(1) == whole.y
            if (val := float(right[whole.val_mask].float().mean())) > best:
                best, tested = val, float(right[whole.test_mask].float().mean())
        theirs.append(tested)
    assert ours.mean == pytest.approx(sum(theirs) / runs, abs=0.03)
    assert ours.mean > 2 / source.num_classes


def test_paths_and_names_stand_for_graphs(source: SourceGraph, small: CondensedGraph, tmp_path: Path) -> None:
    small.save(tmp_path / "small.safetensors")
    source.save(tmp_path / "source.safetensors")
    expected = evaluate(small, on=source, runs=1, recipe=QUICK)[0].runs
    by_path = evaluate(tmp_path / "small.safetensors", on=str(tmp_path / "source.safetensors"), runs=1, **QUICK)
    assert by_path[0].runs == expected
    whole = evaluate(tmp_path / "source.safetensors", runs=1, **QUICK)
    assert whole[0].runs == evaluate(source, runs=1, recipe=QUICK)[0].runs
    with pytest.raises(GcondError, match="give the source graph as on="):
        evaluate(tmp_path / "small.safetensors")


def test_settings_of_the_training_by_name(source: SourceGraph, small: CondensedGraph) -> None:
    named = evaluate(small, on=source, models="gat", runs=1, epochs=4)[0]
    assert named.recipe["epochs"] == 4
    assert named.recipe["lr"] == 1e-3  # the model's own
    assert evaluate(small, on=source, runs=1, recipe=Recipe(lr=0.5), epochs=4)[0].recipe["lr"] == 0.5
    with pytest.raises(GcondError, match="no setting 'epoch'"):
        evaluate(small, on=source, epoch=4)


def test_all_models_by_one_word(source: SourceGraph, small: CondensedGraph) -> None:
    assert [score.model for score in evaluate(small, on=source, models="all", runs=1, epochs=1)] == sorted(
        gcond.models.available()
    )


def test_a_bug_keeps_its_traceback(source: SourceGraph, small: CondensedGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(training_job, "fit", broken)
    with pytest.raises(ZeroDivisionError):
        evaluate(small, on=source, runs=1)


def test_an_engine_gives_the_same_numbers(source: SourceGraph, small: CondensedGraph) -> None:
    with gcond.open_engine("local", workers=2, threads=2) as engine:
        apart = evaluate(small, on=source, models=["gcn", "sgc"], runs=2, engine=engine, **QUICK)
    here = evaluate(small, on=source, models=["gcn", "sgc"], runs=2, **QUICK)
    assert [score.runs for score in apart] == [score.runs for score in here]


def test_a_recipe_of_the_wrong_kind_and_a_class_are_told_apart(source: SourceGraph, small: CondensedGraph) -> None:
    with pytest.raises(GcondError, match="recipe='cora'"):
        evaluate(small, on=source, recipe="cora")  # type: ignore[arg-type]
    with pytest.raises(GcondError, match=r"GCN\(\)"):
        evaluate(small, on=source, models=GCN)  # type: ignore[arg-type]
    with pytest.raises(GcondError, match="epochs"):
        gcond.condense(source, nodes=8, recipe={"epochs": 1})  # type: ignore[arg-type]


def test_every_score_has_all_metrics_and_the_file_keeps_them(
    source: SourceGraph, small: CondensedGraph, tmp_path: Path
) -> None:
    model, recipe = GCN(hidden=8), Recipe(epochs=12, metric="balanced-accuracy")
    (score,) = evaluate(small, on=source, models=[model], runs=2, epochs=12, metric="balanced-accuracy")
    view = source.view("test")
    fitted = fit(model, small.view(), source.view("val"), classes=source.num_classes, seeds=[0, 1], recipe=recipe)
    balanced = [balanced_accuracy_score(view.y, one) for one in predict(model, fitted.parameters, view)]
    assert score.metrics is not None
    assert score.metrics.balanced_accuracy == pytest.approx(sum(balanced) / 2)
    assert score.val_mean == pytest.approx(float(fitted.val_accuracy.mean()))
    assert score.recipe["metric"] == "balanced-accuracy"
    path = tmp_path / "small.safetensors"
    small.with_scores([score]).save(path)
    provenance = CondensedGraph.load(path).provenance
    assert provenance is not None
    assert provenance.scores == (score,)


def test_scores_of_files_that_name_no_metric_are_replaced(source: SourceGraph, small: CondensedGraph) -> None:
    (score,) = evaluate(small, on=source, runs=1, recipe=QUICK)
    recipe = {key: value for key, value in score.recipe.items() if key != "metric"}
    older = dataclasses.replace(score, recipe=recipe, metrics=None, mean=0.0)
    provenance = small.with_scores([older]).with_scores([score]).provenance
    assert provenance is not None
    assert provenance.scores == (score,)


def test_runs_that_were_kept_without_counts_have_accuracy_alone(
    source: SourceGraph, small: CondensedGraph, tmp_path: Path
) -> None:
    (fresh,) = evaluate(small, on=source, runs=2, recipe=QUICK, folder=tmp_path)
    log = tmp_path / "trials.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps({k: v for k, v in row.items() if k != "confusion"}) + "\n" for row in rows))
    (kept,) = evaluate(small, on=source, runs=2, recipe=QUICK, folder=tmp_path)
    assert kept == dataclasses.replace(fresh, metrics=None)
    assert len(log.read_text().splitlines()) == 2  # nothing was done again


def test_an_unknown_metric_is_refused(source: SourceGraph, small: CondensedGraph) -> None:
    with pytest.raises(GcondError, match=r"metric='f1' is not usable.*'macro-f1'"):
        evaluate(small, on=source, runs=1, metric="f1")
