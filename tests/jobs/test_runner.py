"""The runner: what is in the folder is not done again, by whomever, and what fails does not sink the rest."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
import torch

import gcond
from gcond.errors import GcondError
from gcond.evaluation.evaluate import evaluate
from gcond.graph.budget import Budget, budget_for
from gcond.jobs import Condensation, Runner, TrainingJob, training_job, training_seeds
from gcond.methods import method_for
from gcond.methods.random import Random
from gcond.models.appnp import APPNP
from gcond.models.gcn import GCN
from gcond.results.claims import Claims
from gcond.results.run_folder import RunFolder
from gcond.runtime.engines.idle import IdleEngine
from gcond.runtime.engines.local import LocalEngine
from gcond.training.recipe import Recipe

RECIPE = Recipe(epochs=5)


@pytest.fixture(scope="module")
def source():
    return gcond.load("synthetic:tiny")


@pytest.fixture
def runner(source, tmp_path):
    return Runner(source, RunFolder(tmp_path), Counting(1))


class Counting(LocalEngine):
    """This process, with an eye on how much it is given to do."""

    given = 0

    def map(self, function, shared, jobs, on_progress=None):
        for outcome in super().map(function, shared, jobs, on_progress):
            self.given += 1
            yield outcome


def condensations(source, count=2, method="random", **options):
    chosen = method_for(method, options)
    return [Condensation(chosen, budget_for(source, nodes=8), seed) for seed in range(count)]


def test_graphs_are_those_that_condense_makes(source, runner):
    for job, graph in runner.condense(condensations(source)).items():
        assert graph.sha256 == gcond.condense(source, method="random", nodes=8, seed=job.seed).sha256
        assert (runner.folder.graphs / job.file(source)).exists()


def test_trials_are_those_of_evaluate(source, runner):
    (job, graph), *_ = runner.condense(condensations(source)).items()
    (trials, whole) = runner.train(
        [TrainingJob(graph, GCN(), RECIPE, training_seeds(job.seed, 3)), TrainingJob(None, GCN(), RECIPE, (4, 5))]
    )
    (expected,) = evaluate(graph, on=source, models=[GCN()], runs=3, recipe=RECIPE)
    assert tuple(trial.test for trial in trials) == expected.runs
    (expected,) = evaluate(source, models=[GCN()], runs=2, seed=4, recipe=RECIPE)
    assert tuple(trial.test for trial in whole) == expected.runs


def test_nothing_is_done_twice(source, tmp_path):
    for expected in (2 + 3, 0, 2):
        engine = Counting(1)
        runner = Runner(source, RunFolder(tmp_path), engine)
        made = runner.condense(condensations(source))
        # The same graph twice in one order book, and in the third round one more run of each.
        runs = 3 if expected == 2 else 2
        orders = [TrainingJob(g, GCN(), RECIPE, training_seeds(job.seed, runs)) for job, g in made.items()]
        found = runner.train([*orders, orders[0], TrainingJob(None, GCN(), RECIPE, (0,))])
        assert [len(trials) for trials in found] == [runs, runs, runs, 1]
        assert engine.given == expected
    rows = (tmp_path / "trials.jsonl").read_text().splitlines()
    assert len(rows) == len(set(rows)) == 7


def test_other_settings_are_other_graphs(source, runner):
    plain = condensations(source, 1, "gcond-x", epochs=1)
    other = condensations(source, 1, "gcond-x", epochs=2)
    assert plain[0].file(source) != other[0].file(source)
    assert len(runner.condense([*plain, *other])) == 2


@dataclass(frozen=True)
class Broken(Random):
    """Fails for odd seeds."""

    def reduce(self, task, callbacks=()):
        if task.seed % 2:
            raise GcondError("this seed is odd: use an even one")
        return super().reduce(task, callbacks)


def test_failures_are_told_and_tried_again(source, runner):
    budget = budget_for(source, nodes=8)
    made = runner.condense([Condensation(Broken(), budget, seed) for seed in range(4)])
    assert [job.seed for job in made] == [0, 2]
    assert [failure.what for failure in runner.failures] == [f"random, 8 nodes, seed {seed}" for seed in (1, 3)]
    assert runner.failures[0].error == "this seed is odd: use an even one"
    again = Runner(source, runner.folder, Counting(1))
    again.condense([Condensation(Broken(), budget, seed) for seed in range(4)])
    assert again.engine.given == 2
    assert len(again.failures) == 2


def test_a_training_that_diverges_is_a_failure(source, runner):
    wild = replace(RECIPE, lr=1e30)
    fine, broken = runner.train([TrainingJob(None, GCN(), RECIPE, (0,)), TrainingJob(None, GCN(), wild, (0,))])
    assert len(fine) == 1
    assert not broken
    assert "diverged" in runner.failures[0].error


def test_a_condensation_goes_on_from_its_checkpoint(source, tmp_path):
    """What a killed worker left behind is taken up, and removed once the graph is there."""
    from gcond.callbacks.checkpoint import Checkpoint, checkpoint_of
    from gcond.matching.callback import Callback

    class Halt(Callback):
        def on_epoch(self, run):
            raise KeyboardInterrupt

    (job,) = condensations(source, 1, "gcond-x", epochs=3, init="sample", probe_every=0)
    runner = Runner(source, RunFolder(tmp_path), Counting(1))
    runner.folder.graphs.mkdir()
    place = checkpoint_of(runner.folder.graphs / job.file(source))
    with pytest.raises(KeyboardInterrupt):
        job.method.condense(source, job.budget, 0, "cpu", [Checkpoint(place, 0.0), Halt()])
    assert place.exists()
    ((_, graph),) = runner.condense([job]).items()
    assert not place.exists()
    whole = job.method.condense(source, job.budget, 0)
    assert graph.sha256 == whole.sha256
    assert graph.provenance.history["loss"] == whole.provenance.history["loss"]


def test_progress_counts_what_was_there_before(source, tmp_path):
    told = []
    for _ in range(2):
        runner = Runner(
            source,
            RunFolder(tmp_path),
            Counting(1),
            on_progress=lambda what, done, total, detail="": told.append((what, done, total)),
        )
        runner.condense(condensations(source))
        runner.train([TrainingJob(None, GCN(), RECIPE, (0, 1))])
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
    runner = Runner(source, RunFolder(tmp_path), Counting(1))
    runner.folder.graphs.mkdir()
    checkpoint_of(runner.folder.graphs / job.file(source)).write_bytes(b"half a file")
    ((_, graph),) = runner.condense([job]).items()
    assert not runner.failures
    assert graph.sha256 == job.method.condense(source, job.budget, 0).sha256


def test_trainings_are_timed_once(source, tmp_path):
    orders = [TrainingJob(None, GCN(), RECIPE, (0, 1)), TrainingJob(None, GCN(hidden=8), RECIPE, (0, 1))]
    first = Runner(source, RunFolder(tmp_path), Counting(1))
    seconds = first.cpu_seconds(orders[:1])
    assert first.cpu_seconds(orders[:1]) == seconds
    again = Runner(source, RunFolder(tmp_path), Counting(1))
    assert again.cpu_seconds(orders[:1]) == seconds
    assert (first.engine.given, again.engine.given) == (1, 0)
    both = again.cpu_seconds(orders)  # a new one: all of them are timed anew, side by side
    assert again.engine.given == 1
    assert len(both) == 2
    assert Runner(source, RunFolder(tmp_path), IdleEngine()).cpu_seconds(orders) == both
    assert Runner(source, RunFolder(tmp_path / "none"), IdleEngine()).cpu_seconds(orders) == [None, None]


def test_a_timing_counts_epochs_and_looks_as_the_trials_had_them(source, runner, monkeypatch):
    """On a machine where all costs are known: 7 around a training, 2 an epoch and 5 a look."""
    order = TrainingJob(None, GCN(hidden=8), Recipe(epochs=150, lr=0.05), (0, 1))
    (trials,) = runner.train([order])
    assert all(1 <= trial.looks < trial.epochs <= 150 for trial in trials)
    real = training_job._train_stack

    def priced(shared, runs, tell):
        return [
            replace(trial, cpu_seconds=7.0 + 2 * trial.epochs + 5 * trial.looks) for trial in real(shared, runs, tell)
        ]

    monkeypatch.setattr(training_job, "_train_stack", priced)
    mean = [sum(getattr(trial, count) for trial in trials) / 2 for count in ("epochs", "looks")]
    assert runner.cpu_seconds([order]) == [pytest.approx(7 + 2 * mean[0] + 5 * mean[1])]
    # Of trainings that nobody has done yet it is the most that there can be.
    other = replace(order, recipe=Recipe(epochs=60, validate_every=20, patience=0))
    assert runner.cpu_seconds([other]) == [pytest.approx(7 + 2 * 60 + 5 * 3)]


def test_a_timing_that_fails_is_told(source, runner):
    wild = TrainingJob(None, GCN(), replace(RECIPE, lr=1e30), (0,))
    assert runner.cpu_seconds([wild]) == [None]
    assert runner.failures[0].what == "timing gcn"
    assert "diverged" in runner.failures[0].error


def test_failures_can_be_told_apart(source):
    budget = budget_for(source, nodes=8)
    plain, other = (Condensation(method_for("gcond", options), budget, 0) for options in ({}, {"backbone": "gcn"}))
    assert str(plain) == "gcond, 8 nodes, seed 0"
    assert str(other) == "gcond (backbone=gcn), 8 nodes, seed 0"
    assert str(TrainingJob(None, GCN(hidden=8), RECIPE, (0,))) == "gcn (hidden=8) on the whole graph"


def test_architectures_of_one_shape_give_what_they_give_alone(source):
    """A search trains them as one stack, and looks at no test node."""
    jobs = [TrainingJob(None, APPNP(hidden=8, alpha=alpha), RECIPE, (0,), tested=False) for alpha in (0.1, 0.2)]
    together = Runner(source, RunFolder(), one := Counting(1)).train(jobs)
    alone = [Runner(source, RunFolder(), Counting(1)).train([job])[0] for job in jobs]
    assert one.given == 1
    for (first,), (second,) in zip(together, alone, strict=True):
        assert replace(first, cpu_seconds=0) == replace(second, cpu_seconds=0)
        assert first.test is None


@pytest.mark.slow
def test_two_runners_share_a_folder_and_its_work(tmp_path):
    """Started at once on the same work, they do every piece once."""
    code = """
import sys, time
from pathlib import Path
import torch; torch.set_num_threads(1)
import gcond
from gcond.jobs import Condensation, Runner, TrainingJob
from gcond.graph.budget import Budget
from gcond.methods.random import Random
from gcond.models.appnp import APPNP
from gcond.models.gcn import GCN
from gcond.results.run_folder import RunFolder
from gcond.runtime.engines.local import LocalEngine
from gcond.training.recipe import Recipe

folder, me, other = Path(sys.argv[1]), *sys.argv[2:]
source = gcond.load("synthetic:tiny")
(folder / me).touch()
while not (folder / other).exists():
    time.sleep(0.01)
engine, given = LocalEngine(1), []
runner = Runner(source, RunFolder(folder / "run"), engine)
made = runner.condense([Condensation(Random(), Budget(8, 0.1), seed) for seed in range(6)])
jobs = [TrainingJob(small, GCN(hidden=8 + job.seed), Recipe(epochs=40), (0, 1)) for job, small in made.items()]
found = runner.train(jobs)
assert len(made) == 6 and all(len(trials) == 2 for trials in found), found
assert not runner.failures
"""
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), *names]) for names in (("a", "b"), ("b", "a"))
    ]
    assert [worker.wait() for worker in workers] == [0, 0]
    rows = [json.loads(row) for row in (tmp_path / "run" / "trials.jsonl").read_text().splitlines()]
    assert len(rows) == len({(row["key"], row["seed"]) for row in rows}) == 12


def test_work_that_another_gave_up_is_done_here(source, tmp_path, monkeypatch):
    """A claim whose holder dies is free again."""
    monkeypatch.setattr("gcond.jobs.runner.WAIT_SECONDS", 0.01)
    job = TrainingJob(None, GCN(), RECIPE, (0, 1))
    held = Claims(tmp_path / ".claims")
    assert held.take(f"{job.key(source)}/0")
    waited = []

    def tick(what, done, total, detail=""):
        waited.append(done)
        if done == 1:  # ours is done, and the other's is waited for
            held.release_all()

    (trials,) = Runner(source, RunFolder(tmp_path), Counting(1), on_progress=tick).train([job])
    assert [trial.seed for trial in trials] == [0, 1]
    assert 1 in waited


def test_work_that_another_did_is_taken_over(source, tmp_path, monkeypatch):
    monkeypatch.setattr("gcond.jobs.runner.WAIT_SECONDS", 0.01)
    job, held, engine = TrainingJob(None, GCN(), RECIPE, (0, 1)), Claims(tmp_path / ".claims"), Counting(1)
    assert held.take(f"{job.key(source)}/0")
    (expected,) = Runner(source, RunFolder(), Counting(1)).train([replace(job, seeds=(0,))])

    def tick(what, done, total, detail=""):
        if done == 1:
            RunFolder(tmp_path).trials.add(expected[0])
            held.release_all()

    (trials,) = Runner(source, RunFolder(tmp_path), engine, on_progress=tick).train([job])
    assert trials[0] == expected[0]
    assert engine.given == 1
    assert not (tmp_path / ".claims").exists()
