from __future__ import annotations

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.errors import GcondError
from gcond.graph.inputs import Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.models.gcn import GCN
from gcond.runtime.seeds import generator
from gcond.training.fit import accuracy, cross_entropy, fit, least_loss, predict
from gcond.training.recipe import PAPER_PROTOCOL, Recipe
from reference.training import literal_fit, literal_gcn

SEEDS = [7, 0, 3, 11, 12, 13, 14, 15, 16, 17]
# Sizes that are no multiple of a vector's width, so that the runs of a stack do not line up by luck.
MODEL = GCN(hidden=19)


def initial(graph, seed, model=MODEL):
    return model.init(graph.num_features, graph.num_classes, generator(seed, "weights"))


def stacked(parameters):
    return {key: torch.stack([run[key] for run in parameters]) for key in parameters[0]}


def run(graph, seeds, recipe, model=MODEL, train=None):
    train = graph.view("train") if train is None else train
    return fit(model, train, graph.view("val"), classes=graph.num_classes, seeds=seeds, recipe=recipe)


@pytest.mark.parametrize("epochs", [1, 2, 20, 21])
def test_equals_a_plain_loop_with_pyg_s_layers(make_graph, setting, epochs):
    """Adam, its rate a tenth and its moments fresh from half-way on, weight decay on everything."""
    for graph in (
        make_graph(setting),
        make_graph(setting, features=60, density=0.05),
        make_graph(setting, weighted=True),
    ):
        recipe = Recipe(epochs=epochs, lr=0.05, weight_decay=5e-3, select="last")
        fitted = run(graph, [7, 0], recipe)
        for number, seed in enumerate([7, 0]):
            course = literal_fit(
                initial(graph, seed), graph.view("train"), graph.view("val"), epochs=epochs, lr=0.05, weight_decay=5e-3
            )
            for key, expected in course.parameters[-1].items():
                torch.testing.assert_close(fitted.parameters[number][key], expected, rtol=1e-4, atol=1e-5)


def test_fresh_moments_and_the_lower_rate_are_seen(make_graph):
    """The oracle would notice: a loop that goes on as before half-way ends elsewhere."""
    graph = make_graph()
    arguments = (initial(graph, 7), graph.view("train"), graph.view("val"))
    kept = literal_fit(*arguments, epochs=40, lr=0.05, weight_decay=5e-3).parameters[19]["weight0"]
    lowered = literal_fit(*arguments, epochs=20, lr=0.05, weight_decay=5e-3).parameters[19]["weight0"]
    assert (kept - lowered).abs().max() > 1e-2


def test_the_best_validation_epoch_is_the_first_of_the_highest_accuracy(make_graph, setting):
    graph = make_graph(setting, features=6)
    recipe = Recipe(epochs=30, lr=0.05, **PAPER_PROTOCOL)
    fitted = run(graph, SEEDS[:5], recipe)
    epochs = []
    for number, seed in enumerate(SEEDS[:5]):
        course = literal_fit(
            initial(graph, seed), graph.view("train"), graph.view("val"), epochs=30, lr=0.05, weight_decay=5e-4
        )
        best = max(range(30), key=lambda epoch: course.val_accuracy[epoch])
        assert int(fitted.epoch[number]) == best + 1
        assert float(fitted.val_accuracy[number]) == pytest.approx(course.val_accuracy[best], abs=1e-12)
        for key, expected in course.parameters[best].items():
            torch.testing.assert_close(fitted.parameters[number][key], expected, rtol=1e-4, atol=1e-5)
        epochs.append(best + 1)
    assert len(set(epochs)) > 1  # runs do not share their choice
    torch.testing.assert_close(accuracy(MODEL, fitted.parameters, graph.view("val")), fitted.val_accuracy)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("select", ["best-validation", "last"])
def test_a_run_does_not_depend_on_those_beside_it(make_graph, setting, dropout, select):
    recipe = Recipe(epochs=8, dropout=dropout, select=select)
    for graph in (make_graph(setting), make_graph(setting, features=60, density=0.05)):
        alone = {seed: run(graph, [seed], recipe) for seed in SEEDS[:3]}
        for seeds in (SEEDS[:3], SEEDS, SEEDS[::-1]):
            together = run(graph, seeds, recipe)
            for seed, single in alone.items():
                place = seeds.index(seed)
                assert int(together.epoch[place]) == int(single.epoch[0])
                assert torch.equal(together.val_accuracy[place], single.val_accuracy[0])
                for key, tensor in single.parameters[0].items():
                    assert torch.equal(together.parameters[place][key], tensor), (seed, len(seeds), key)


def test_a_run_does_not_depend_on_those_beside_it_on_condensed_graphs(make_graph):
    graph = make_graph(sizes=(83, 61, 37))
    structure = torch.rand(13, 13, generator=torch.Generator().manual_seed(0)).triu(1)
    target, source = (structure + structure.T).nonzero(as_tuple=True)
    soft = torch.rand(13, 3, generator=torch.Generator().manual_seed(1)).softmax(1)
    condensed = CondensedGraph(
        x=torch.randn(13, 12, generator=torch.Generator().manual_seed(2)),
        y=soft,
        edge_index=torch.stack([source, target]),
        edge_weight=(structure + structure.T)[target, source],
    )
    bare = dataclasses.replace(condensed, edge_index=condensed.edge_index[:, :0], edge_weight=torch.empty(0))
    for small in (condensed, bare):
        recipe = Recipe(epochs=8, dropout=0.3)
        together = run(graph, SEEDS, recipe, train=small.view())
        for place, seed in enumerate(SEEDS):
            single = run(graph, [seed], recipe, train=small.view())
            for key, tensor in single.parameters[0].items():
                assert torch.equal(together.parameters[place][key], tensor)


def test_the_same_seed_gives_the_same_weights(make_graph):
    graph, recipe = make_graph(), Recipe(epochs=10, dropout=0.5)
    torch.manual_seed(1)
    first = run(graph, [5], recipe)
    torch.manual_seed(2)
    second, other = run(graph, [5], recipe), run(graph, [6], recipe)
    for key, tensor in first.parameters[0].items():
        assert torch.equal(tensor, second.parameters[0][key])
        assert not torch.equal(tensor, other.parameters[0][key])


def test_soft_one_hot_labels_equal_hard_ones(make_graph):
    graph = make_graph()
    train = graph.view("train")
    soft = LabelledView(train.inputs, train.nodes, F.one_hot(train.y, 3).float(), train.source_index)
    recipe = Recipe(epochs=20, select="last")
    hard_fit, soft_fit = run(graph, [1, 2], recipe), run(graph, [1, 2], recipe, train=soft)
    for hard, soft in zip(hard_fit.parameters, soft_fit.parameters, strict=True):
        torch.testing.assert_close(soft, hard, rtol=1e-5, atol=1e-6)


def test_cross_entropy_is_torch_s_own():
    stream = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 9, 3, generator=stream)
    y = torch.randint(3, (9,), generator=stream)
    soft = torch.rand(9, 3, generator=stream)
    for run in logits:
        torch.testing.assert_close(cross_entropy(run, y), F.cross_entropy(run, y))
        torch.testing.assert_close(cross_entropy(run, soft), F.cross_entropy(run, soft))


def test_accuracy_and_predictions_are_those_of_pyg_s_layers(make_graph, setting):
    graph = make_graph(setting)
    fitted = run(graph, SEEDS[:3], Recipe(epochs=10))
    test = graph.view("test")
    classes = literal_gcn(stacked(fitted.parameters), test.inputs)[:, test.nodes].argmax(-1)
    assert torch.equal(predict(MODEL, fitted.parameters, test), classes)
    assert torch.equal(accuracy(MODEL, fitted.parameters, test), (classes == test.y).double().mean(1))


def test_the_last_epoch_needs_no_validation(make_graph):
    graph = make_graph()
    recipe = Recipe(epochs=8, select="last")
    fitted = fit(MODEL, graph.view("train"), None, classes=3, seeds=[1, 2], recipe=recipe)
    assert fitted.epoch.tolist() == [8, 8]
    assert bool(fitted.val_accuracy.isnan().all())
    watched = run(graph, [1, 2], recipe)
    torch.testing.assert_close(watched.val_accuracy, accuracy(MODEL, fitted.parameters, graph.view("val")))
    for seen, unseen in zip(watched.parameters, fitted.parameters, strict=True):
        assert all(torch.equal(seen[key], tensor) for key, tensor in unseen.items())


def test_the_best_epoch_needs_validation_nodes(make_graph, setting):
    graph = make_graph(setting)
    with pytest.raises(ValueError, match="cannot be chosen without a validation view"):
        fit(MODEL, graph.view("train"), None, classes=3, seeds=[0], recipe=Recipe(epochs=1))
    empty = dataclasses.replace(graph, val_mask=torch.zeros(graph.num_nodes, dtype=torch.bool))
    with pytest.raises(GcondError, match="there is no validation node"):
        run(empty, [0], Recipe(epochs=1))


def test_weights_carry_no_gradient_and_share_nothing(make_graph):
    fitted = run(make_graph(), [1, 2], Recipe(epochs=3, select="last"))
    assert not any(tensor.requires_grad for run in fitted.parameters for tensor in run.values())


def test_progress_is_told_after_every_epoch(make_graph):
    graph, told = make_graph(), []
    fit(
        MODEL,
        graph.view("train"),
        graph.view("val"),
        classes=3,
        seeds=[0],
        recipe=Recipe(epochs=5),
        on_epoch=told.append,
    )
    assert told == [1, 2, 3, 4, 5]


def test_dropout_keeps_the_mean_and_the_share(make_graph):
    """Training with dropout differs from training without, and prediction never drops anything."""
    graph = make_graph()
    plain, dropped = run(graph, [1], Recipe(epochs=5)), run(graph, [1], Recipe(epochs=5, dropout=0.5))
    assert not torch.equal(plain.parameters[0]["weight0"], dropped.parameters[0]["weight0"])
    first = predict(MODEL, dropped.parameters, graph.view("test"))
    assert torch.equal(first, predict(MODEL, dropped.parameters, graph.view("test")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"lr": 0}, "lr must be positive"),
        ({"weight_decay": -1}, "weight_decay must be at least 0"),
        ({"validate_every": 0}, "validate_every must be at least 1"),
        ({"patience": -1}, "patience must be at least 0"),
        ({"dropout": 1}, "dropout must be at least 0 and below 1"),
        ({"dropout": -0.1}, "dropout must be at least 0 and below 1"),
    ],
)
def test_recipes_that_cannot_be_followed(changes, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**changes)


def test_training_that_diverges_is_said(graph):
    with pytest.raises(GcondError, match="diverged: use an lr below 1e\\+30"):
        fit(GCN(), graph.view("train"), graph.view("val"), classes=3, seeds=[0], recipe=Recipe(epochs=5, lr=1e30))


def test_validation_can_be_less_frequent(make_graph, setting):
    """The best of the epochs that are looked at, of which the last is always one."""
    graph = make_graph(setting, features=6)
    for epochs, every in ((30, 7), (30, 30), (30, 99), (1, 5)):
        fitted = run(graph, SEEDS[:3], Recipe(epochs=epochs, lr=0.05, validate_every=every))
        seen = sorted({*range(every, epochs + 1, every), epochs})
        for number, seed in enumerate(SEEDS[:3]):
            course = literal_fit(
                initial(graph, seed), graph.view("train"), graph.view("val"), epochs=epochs, lr=0.05, weight_decay=5e-4
            )
            best = max(seen, key=lambda epoch: course.val_accuracy[epoch - 1])
            assert int(fitted.epoch[number]) == best
            assert float(fitted.val_accuracy[number]) == pytest.approx(course.val_accuracy[best - 1], abs=1e-12)
            for key, expected in course.parameters[best - 1].items():
                torch.testing.assert_close(fitted.parameters[number][key], expected, rtol=1e-4, atol=1e-5)


def test_scores_that_training_passes_on_are_those_of_a_second_look(make_graph):
    """Where both parts see the same rows, validation is read off the next training pass: to the same bits."""
    graph = make_graph(features=6)
    train, val = graph.view("train"), graph.view("val")
    apart = LabelledView(Inputs(train.inputs.x, train.inputs.adjacency), val.nodes, val.y, val.source_index)
    deep = GCN(layers=4, hidden=7)
    assert train.focus(deep.reach, deep.precomputed).inputs is val.focus(deep.reach, deep.precomputed).inputs
    for how in ({"validate_every": 1}, {"validate_every": 3}, {}, {"patience": 3}):
        recipe = Recipe(epochs=60, lr=0.05, **how)
        first, second = (fit(deep, train, view, classes=3, seeds=SEEDS, recipe=recipe) for view in (val, apart))
        assert torch.equal(first.epoch, second.epoch)
        assert torch.equal(first.epochs, second.epochs)
        assert torch.equal(first.looks, second.looks)
        assert torch.equal(first.val_accuracy, second.val_accuracy)
        for one, other in zip(first.parameters, second.parameters, strict=True):
            assert all(torch.equal(one[key], other[key]) for key in one)


def test_looks_that_thin_out_choose_the_best_of_what_they_see(make_graph, setting):
    graph, epochs = make_graph(setting, features=6), 90
    seen = [*range(1, 21), 22, 24, 26, 28, 30, 33, 36, 39, 42]  # at the first rate, 45 epochs
    seen += [45 + look for look in seen] + [90]
    fitted = run(graph, SEEDS[:3], Recipe(epochs=epochs, lr=0.05, patience=0))
    assert fitted.looks.tolist() == [len(seen)] * 3
    assert fitted.epochs.tolist() == [epochs] * 3
    for number, seed in enumerate(SEEDS[:3]):
        arguments = (initial(graph, seed), graph.view("train"), graph.view("val"))
        course = literal_fit(*arguments, epochs=epochs, lr=0.05, weight_decay=5e-4)
        best = max(seen, key=lambda epoch: course.val_accuracy[epoch - 1])
        assert int(fitted.epoch[number]) == best
        assert float(fitted.val_accuracy[number]) == pytest.approx(course.val_accuracy[best - 1], abs=1e-12)


def _ended_literally(arguments, epochs, patience, classes):
    """(epochs done, best epoch, its weights) of a plain loop that is done again whenever it would have changed."""
    how = {"lr": 0.05, "weight_decay": 5e-4}

    def out_of_patience(course, since, until, patience):
        better = since
        for epoch in range(1, until + 1):
            if course.val_accuracy[epoch - 1] > max(course.val_accuracy[: epoch - 1], default=-1):
                better = max(epoch, since)
            fitted = course.loss[epoch - 1] < math.log(classes) / 2
            if epoch > since and fitted and epoch - better >= patience:
                return epoch
        return until

    half = epochs // 2
    first = literal_fit(*arguments, epochs=half, lowered_after=half, **how)
    turn = out_of_patience(first, 0, half, patience)
    last = turn + epochs - half
    second = literal_fit(*arguments, epochs=last, lowered_after=turn, **how)
    last = out_of_patience(second, turn, last, math.ceil(patience / 2))
    best = max(range(last), key=lambda epoch: second.val_accuracy[epoch])
    return last, best + 1, second.parameters[best]


def test_a_run_out_of_patience_ends_as_a_plain_loop_would(make_graph, setting):
    graph = make_graph(setting, features=6)
    recipe = Recipe(epochs=120, lr=0.05, validate_every=1, patience=9)
    fitted = run(graph, SEEDS[:4], recipe)
    assert len(set(fitted.epochs.tolist())) > 1  # each run ends by itself
    assert max(fitted.epochs.tolist()) < 120
    for number, seed in enumerate(SEEDS[:4]):
        arguments = (initial(graph, seed), graph.view("train"), graph.view("val"))
        last, best, weights = _ended_literally(arguments, 120, 9, 3)
        assert (int(fitted.epochs[number]), int(fitted.epoch[number])) == (last, best)
        assert int(fitted.looks[number]) == last
        for key, expected in weights.items():
            torch.testing.assert_close(fitted.parameters[number][key], expected, rtol=1e-3, atol=1e-4)


def test_who_ends_early_changes_nothing_for_the_others(make_graph, setting):
    graph, recipe = make_graph(setting, features=6), Recipe(epochs=120, lr=0.05, patience=9)
    together = run(graph, SEEDS[:4], recipe)
    assert len(set(together.epochs.tolist())) > 1
    for place, seed in enumerate(SEEDS[:4]):
        alone = run(graph, [seed], recipe)
        assert (int(alone.epochs), int(alone.looks)) == (int(together.epochs[place]), int(together.looks[place]))
        for key, tensor in alone.parameters[0].items():
            assert torch.equal(together.parameters[place][key], tensor)


def test_a_model_that_has_not_fitted_is_not_given_up(make_graph):
    """With a rate so low that nothing is learned, no look is better, and every epoch is done."""
    fitted = run(make_graph(), [0], Recipe(epochs=40, lr=1e-9, patience=2))
    assert fitted.epochs.tolist() == [40]


def test_progress_is_told_to_the_end_by_runs_that_end_early(make_graph):
    graph, told = make_graph(), []
    arguments = {"classes": 3, "seeds": [0], "recipe": Recipe(epochs=150, lr=0.05, patience=2)}
    fitted = fit(MODEL, graph.view("train"), graph.view("val"), **arguments, on_epoch=told.append)
    assert int(fitted.epochs) < 150
    assert told == list(range(1, 151))


def test_the_least_loss_is_that_of_whoever_knows_the_labels():
    soft = torch.tensor([[0.7, 0.3, 0.0], [0.25, 0.25, 0.5]])
    assert least_loss(torch.tensor([0, 2])) == 0
    assert least_loss(soft) == pytest.approx(float(cross_entropy(soft.log().clamp(min=-100), soft)), abs=1e-6)


def test_weights_that_no_memory_holds_are_refused_before_any_is_drawn(make_graph, monkeypatch):
    graph, drawn = make_graph(), []
    monkeypatch.setattr(GCN, "init", lambda self, *rest: drawn.append(rest) or _meta_init(self, *rest))
    with pytest.raises(GcondError, match=r"the weights of gcn take [\d,.]+ GB .* fewer layers"):
        run(graph, [0], Recipe(epochs=1), GCN(hidden=4000, layers=9999))
    assert all(stream is None for _, _, stream in drawn)


_meta_init = GCN.init
