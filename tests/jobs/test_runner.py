"""Sweeps: what is in the folder is not done again, and what fails does not sink the rest."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import pytest
import torch

import gcond
from gcond.errors import GcondError
from gcond.evaluation.evaluate import evaluate
from gcond.graph.budget import Budget, budget_for
from gcond.jobs.runner import Condensation, Order, Sweep, training_seeds
from gcond.methods import method_for
from gcond.methods.random import Random
from gcond.models.gcn import GCN
from gcond.runtime.engines.idle import IdleEngine
from gcond.runtime.engines.local import LocalEngine
from gcond.training.recipe import Recipe

RECIPE = Recipe(epochs=5)


@pytest.fixture(scope="module")
def source():
    return gcond.load("synthetic:tiny")


@pytest.fixture
def sweep(source, tmp_path):
    return Sweep(source, tmp_path, Counting(1))


class Counting(LocalEngine):
    """This process, with an eye on how much it is given to do."""

    given = 0

    def map(self, function, shared, jobs):
        self.given += len(jobs)
        yield from super().map(function, shared, jobs)


def condensations(source, count=2, method="random", **options):
    chosen = method_for(method, options)
    return [Condensation(chosen, budget_for(source, nodes=8), seed) for seed in range(count)]


def test_graphs_are_those_that_condense_makes(source, sweep):
    for job, graph in sweep.condense(condensations(source)).items():
        assert graph.sha256 == gcond.condense(source, method="random", nodes=8, seed=job.seed).sha256
        assert sweep.path(job).exists()


def test_trials_are_those_of_evaluate(source, sweep):
    (job, graph), *_ = sweep.condense(condensations(source)).items()
    (trials, whole) = sweep.train(
        [Order(graph, GCN(), RECIPE, training_seeds(job.seed, 3)), Order(None, GCN(), RECIPE, (4, 5))]
    )
    (expected,) = evaluate(graph, on=source, models=[GCN()], runs=3, recipe=RECIPE)
    assert tuple(trial.test for trial in trials) == expected.runs
    (expected,) = evaluate(source, models=[GCN()], runs=2, seed=4, recipe=RECIPE)
    assert tuple(trial.test for trial in whole) == expected.runs


def test_nothing_is_done_twice(source, tmp_path):
    for expected in (2 + 3, 0, 2):
        engine = Counting(1)
        sweep = Sweep(source, tmp_path, engine)
        made = sweep.condense(condensations(source))
        # The same graph twice in one order book, and in the third round one more run of each.
        runs = 3 if expected == 2 else 2
        orders = [Order(g, GCN(), RECIPE, training_seeds(job.seed, runs)) for job, g in made.items()]
        found = sweep.train([*orders, orders[0], Order(None, GCN(), RECIPE, (0,))])
        assert [len(trials) for trials in found] == [runs, runs, runs, 1]
        assert engine.given == expected
    rows = (tmp_path / "trials.jsonl").read_text().splitlines()
    assert len(rows) == len(set(rows)) == 7


def test_other_settings_are_other_graphs(source, sweep):
    plain = condensations(source, 1, "gcond-x", epochs=1)
    other = condensations(source, 1, "gcond-x", epochs=2)
    assert sweep.path(plain[0]) != sweep.path(other[0])
    assert len(sweep.condense([*plain, *other])) == 2


@dataclass(frozen=True)
class Broken(Random):
    """Fails for odd seeds."""

    def reduce(self, task, callbacks=()):
        if task.seed % 2:
            raise GcondError("this seed is odd: use an even one")
        return super().reduce(task, callbacks)


def test_failures_are_told_and_tried_again(source, sweep):
    budget = budget_for(source, nodes=8)
    made = sweep.condense([Condensation(Broken(), budget, seed) for seed in range(4)])
    assert [job.seed for job in made] == [0, 2]
    assert [failure.what for failure in sweep.failures] == [f"random, 8 nodes, seed {seed}" for seed in (1, 3)]
    assert sweep.failures[0].error == "this seed is odd: use an even one"
    again = Sweep(source, sweep.folder, Counting(1))
    again.condense([Condensation(Broken(), budget, seed) for seed in range(4)])
    assert again._engine.given == 2
    assert len(again.failures) == 2


def test_a_training_that_diverges_is_a_failure(source, sweep):
    wild = replace(RECIPE, lr=1e30)
    fine, broken = sweep.train([Order(None, GCN(), RECIPE, (0,)), Order(None, GCN(), wild, (0,))])
    assert len(fine) == 1
    assert not broken
    assert "diverged" in sweep.failures[0].error


def test_a_condensation_goes_on_from_its_checkpoint(source, tmp_path):
    """What a killed worker left behind is taken up, and removed once the graph is there."""
    from gcond.callbacks.callback import Callback
    from gcond.callbacks.checkpoint import Checkpoint, checkpoint_of

    class Halt(Callback):
        def on_epoch(self, run):
            raise KeyboardInterrupt

    (job,) = condensations(source, 1, "gcond-x", epochs=3, init="sample", probe_every=0)
    sweep = Sweep(source, tmp_path, Counting(1))
    place = checkpoint_of(sweep.path(job))
    with pytest.raises(KeyboardInterrupt):
        job.method.condense(source, job.budget, 0, "cpu", [Checkpoint(place, 0.0), Halt()])
    assert place.exists()
    ((_, graph),) = sweep.condense([job]).items()
    assert not place.exists()
    whole = job.method.condense(source, job.budget, 0)
    assert graph.sha256 == whole.sha256
    assert graph.provenance.history["loss"] == whole.provenance.history["loss"]


def test_progress_counts_what_was_there_before(source, tmp_path):
    told = []
    for _ in range(2):
        sweep = Sweep(
            source, tmp_path, Counting(1), on_progress=lambda what, done, total: told.append((what, done, total))
        )
        sweep.condense(condensations(source))
        sweep.train([Order(None, GCN(), RECIPE, (0, 1))])
    first, second = told[: len(told) - 2], told[-2:]
    assert first[0] == ("condensing", 0, 2)
    assert first[-1] == ("training", 2, 2)
    assert second == [("condensing", 2, 2), ("training", 2, 2)]


def test_seeds_of_runs_do_not_overlap():
    for runs in (1, 3, 10, 25):
        seeds = [seed for graph in range(5) for seed in training_seeds(graph, runs)]
        assert len(set(seeds)) == 5 * runs
    assert training_seeds(2, 3) == (20, 21, 22)
    assert training_seeds(2, 5)[:3] == training_seeds(2, 3)


def test_a_source_travels_without_what_it_can_compute(source):
    source.view("train").inputs.gcn  # noqa: B018
    twin = pickle.loads(pickle.dumps(source))
    assert "_views" not in twin.__dict__
    assert twin.sha256 == source.sha256
    assert twin.adjacency.symmetric == source.adjacency.symmetric
    assert torch.equal(twin.adjacency.to_dense(), source.adjacency.to_dense())
    assert torch.equal(twin.view("val").y, source.view("val").y)


def test_a_budget_is_part_of_the_name(source):
    names = {Condensation(Random(), Budget(nodes, nodes / 300), 0).file(source) for nodes in (8, 9)}
    assert len(names) == 2


def test_a_damaged_checkpoint_is_as_good_as_none(source, tmp_path):
    from gcond.callbacks.checkpoint import checkpoint_of

    (job,) = condensations(source, 1, "gcond-x", epochs=1, init="sample", probe_every=0)
    sweep = Sweep(source, tmp_path, Counting(1))
    checkpoint_of(sweep.path(job)).write_bytes(b"half a file")
    ((_, graph),) = sweep.condense([job]).items()
    assert not sweep.failures
    assert graph.sha256 == job.method.condense(source, job.budget, 0).sha256


def test_trainings_are_timed_once(source, tmp_path):
    orders = [Order(None, GCN(), RECIPE, (0, 1)), Order(None, GCN(hidden=8), RECIPE, (0, 1))]
    first = Sweep(source, tmp_path, Counting(1))
    seconds = first.seconds(orders[:1])
    assert first.seconds(orders[:1]) == seconds
    again = Sweep(source, tmp_path, Counting(1))
    assert again.seconds(orders[:1]) == seconds
    assert (first._engine.given, again._engine.given) == (1, 0)
    both = again.seconds(orders)  # a new one: all of them are timed anew, side by side
    assert again._engine.given == 1
    assert len(both) == 2
    assert Sweep(source, tmp_path, IdleEngine()).seconds(orders) == both
    assert Sweep(source, tmp_path / "none", IdleEngine()).seconds(orders) == [None, None]


def test_a_timing_that_fails_is_told(source, sweep):
    wild = Order(None, GCN(), replace(RECIPE, lr=1e30), (0,))
    assert sweep.seconds([wild]) == [None]
    assert sweep.failures[0].what == "timing gcn"
    assert "diverged" in sweep.failures[0].error


def test_failures_can_be_told_apart(source):
    budget = budget_for(source, nodes=8)
    plain, other = (Condensation(method_for("gcond", options), budget, 0) for options in ({}, {"backbone": "gcn"}))
    assert str(plain) == "gcond, 8 nodes, seed 0"
    assert str(other) == "gcond (backbone=gcn), 8 nodes, seed 0"
    assert str(Order(None, GCN(hidden=8), RECIPE, (0,))) == "gcn (hidden=8) on the whole graph"
