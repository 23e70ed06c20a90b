"""A deadline: learning ends in time with the best so far, by a clock that the tests move themselves."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest
import torch

import gcond
from gcond.callbacks import Callback, Deadline
from gcond.callbacks.deadline import OUT_OF_TIME
from gcond.errors import GcondError
from gcond.matching.run import Run, TakenBackError
from gcond.matching.structure import FreeStructure
from gcond.matching.synthetic import Rates, Synthetic
from gcond.methods import method_for
from gcond.reports.figures.learning_curves import kept_probe
from gcond.runtime.seeds import generator

QUICK = {"outer": 2, "inner": 1, "hidden": 8, "probe_every": 2, "probe_share": 0.99}


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def passes(self, seconds):
        self.now += seconds


class Slow(Callback):
    """Every outer step takes a second, also in trials."""

    def __init__(self, clock, seconds=1.0):
        self.clock, self.seconds = clock, seconds

    def for_trial(self, start):
        return self

    def on_step(self, run):
        self.clock.passes(self.seconds)


def learn(
    within, *, epochs=50, steps=4, step=1.0, probe=0.0, probe_every=1, accuracies=None, spent=0.0, probes_after=0
):
    """A run whose steps and probes take so many seconds, ended by a deadline; and the clock's time that it took."""
    clock = Clock()
    began = clock()
    x = torch.zeros(2, 3)
    structure = FreeStructure()
    synthetic = Synthetic(x, torch.tensor([0, 1]), structure, structure.init(2, 3, generator(0, "phi")), Rates(0.1))
    found = iter(accuracies or ())

    def look():
        clock.passes(probe)
        return next(found, 0.5)

    deadline = Deadline(within, clock=clock)
    clock.passes(spent)
    run = Run(
        synthetic,
        epochs=epochs,
        steps=steps,
        probe=look if probe_every else None,
        probe_every=probe_every or 1,
        probes_after=probes_after,
        callbacks=[deadline],
    )
    for _ in run.epochs_left():
        synthetic.learn(True, False)
        try:
            for _ in range(steps):
                clock.passes(step)
                synthetic.update((synthetic.inputs().x - 1).square().sum())
                run.stepped(0.0)
        except TakenBackError:
            run.take_back()
        else:
            run.finish_epoch()
    return run, clock() - began


@pytest.mark.parametrize("within", [5, 12, 37, 60, 61, 150])
@pytest.mark.parametrize(("step", "probe", "every"), [(1, 0, 0), (1, 3, 1), (0.5, 6, 5), (2, 1, 3)])
def test_it_ends_in_time(within, step, probe, every):
    run, spent = learn(within, step=step, probe=probe, probe_every=every)
    assert spent <= within or run.epoch == 0  # the first probe is done before its time is known
    assert run.reason == (OUT_OF_TIME if run.epoch < run.epochs else "all epochs are done")
    assert len(run.history["loss"]) == run.epoch


def test_it_uses_its_time():
    run, spent = learn(100, step=1, probe=2, probe_every=1)
    assert spent > 80
    assert run.epoch >= 14


def test_what_ends_by_itself_is_left_alone():
    run, spent = learn(1000, epochs=3)
    assert (run.epoch, run.reason, spent) == (3, "all epochs are done", 12)


def test_an_epoch_too_long_is_taken_back():
    run, spent = learn(20, steps=100, probe_every=0)
    assert (run.epoch, run.step, run.history["loss"]) == (0, 0, [])
    assert 15 < spent <= 20
    assert torch.equal(run.synthetic.x, torch.zeros(2, 3))


def test_time_that_is_up_before_learning_leaves_the_start_without_a_probe():
    run, spent = learn(20, spent=25, probe=10)
    assert (run.epoch, run.probes, run.reason, spent) == (0, [], OUT_OF_TIME, 25)


def test_the_last_state_is_probed_and_the_best_is_kept():
    run, _ = learn(60, step=1, probe=1, probe_every=4, accuracies=[0.1, 0.9, 0.2, 0.3, 0.4])
    assert run.epoch == 13
    assert [probe.epoch for probe in run.probes] == [0, 4, 8, 12, run.epoch]
    best, _ = learn(1000, epochs=4, step=1, probe=1, probe_every=4, accuracies=[0.1, 0.9])
    assert torch.equal(run.synthetic.x, best.synthetic.x)


def test_probes_that_come_after_get_their_time():
    for count, spent in ((0, 94), (4, 74)):
        run, took = learn(100, step=1, probe=4, probe_every=1, probes_after=count)
        assert run.reason == OUT_OF_TIME
        assert 1.2 * 4 * count <= 97 - took
        assert took >= spent - 12


def test_work_that_comes_after_gets_its_time_if_that_leaves_half():
    clock = Clock()
    deadline = Deadline(100, clock=clock)
    clock.passes(17)  # 80 are left, and 3 for the end
    deadline.comes_after(50)
    assert learnable(deadline, 80)
    deadline.comes_after(30)
    assert learnable(deadline, 44)
    assert deadline.has_time(80)
    assert not deadline.has_time(80.1)


def learnable(deadline, seconds):
    """Whether so many seconds are left for learning, and no more."""
    run = SimpleNamespace(probes_after=0)
    return deadline._fits(run, (seconds - 0.1) / 1.2) and not deadline._fits(run, (seconds + 0.1) / 1.2)


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ({}, "loading, the start and one probe cannot"),
        ({"compact": True}, "loading, the start, one probe and one training for the choice of a cut cannot"),
        ({"learned": False}, "loading and a method that does not learn cannot"),
    ],
)
def test_what_took_longer_names_what_can_be_the_cause(said, parts):
    clock = Clock()
    deadline = Deadline(10, clock=clock)
    assert deadline.overrun("gcond") is None
    clock.passes(12)
    assert deadline.overrun("gcond", **said) == f"gcond took 12 s and not 10 s: {parts} be ended half-way"


def test_a_probe_that_does_not_fit_any_more_is_left_out():
    """Everything is suddenly ten times as slow: the best so far is kept, without another look."""
    clock = Clock()

    class Slower(Callback):
        def on_step(self, run):
            clock.passes(1 if run.epoch < 3 else 30)

    deadline = Deadline(50, clock=clock)
    graph_run, _ = learn(1000, epochs=1)  # any state will do
    run = Run(graph_run.synthetic, epochs=9, steps=2, probe=lambda: (clock.passes(5), 0.5)[1], probe_every=2)
    run.callbacks = [Slower(), deadline]
    for _ in run.epochs_left():
        try:
            run.stepped(0.0)
            run.stepped(0.0)
        except TakenBackError:
            run.take_back()
        else:
            run.finish_epoch()
    assert run.epoch == 3
    assert [probe.epoch for probe in run.probes] == [0, 2]


@pytest.mark.parametrize(
    ("method", "init"),
    [
        ("gcond", "sample"),
        ("gcond-x", "sample"),
        ("dc-graph", "sample"),
        ("gcond", "auto"),
        ("gcond-x", "auto"),
        ("gcond", "clusters"),
    ],
)
def test_the_result_can_be_made_again_by_its_epochs(method, init, make_graph):
    clock, graph = Clock(), make_graph()
    own = {"patience": 0, "teacher": "ridge" if init == "clusters" else "none"}
    chosen = method_for(method, QUICK | own | {"epochs": 40, "init": init})
    deadline = Deadline("60s", clock=clock)
    small = gcond.condense(graph, method=chosen, nodes=9, callbacks=[Slow(clock), deadline])
    made = small.provenance
    epochs = len(made.history["loss"])
    assert 0 < epochs < 40
    assert clock() <= 160
    assert made.ended == OUT_OF_TIME
    kept, _ = kept_probe(made.history)
    for again in (epochs, int(kept)):
        options = QUICK | own | {"epochs": again, "init": made.start}
        assert gcond.condense(graph, method=method, nodes=9, **options).sha256 == small.sha256


def test_trials_of_starts_leave_time_for_what_they_choose(make_graph):
    clock = Clock()
    deadline = Deadline(100, clock=clock)
    trials = {}

    class Count(Slow):
        def __init__(self, clock, name="run"):
            super().__init__(clock)
            self.name = name

        def for_trial(self, start):
            return Count(self.clock, start)

        def on_step(self, run):
            super().on_step(run)
            trials[self.name] = trials.get(self.name, 0) + 1

    options = QUICK | {"epochs": 50, "outer": 10, "patience": 0, "init": "auto"}
    small = gcond.condense(make_graph(), method="gcond-x", nodes=9, callbacks=[Count(clock), deadline], **options)
    assert trials["sample"] <= 25
    assert trials["propagated-means"] <= 20
    assert trials["run"] >= 40
    assert small.provenance.history["loss"]


def test_without_time_for_a_trial_the_safer_start_is_taken(make_graph):
    clock = Clock()
    options = QUICK | {"epochs": 50, "outer": 50, "init": "auto"}
    callbacks = [Slow(clock), Deadline(20, clock=clock)]
    small = gcond.condense(make_graph(), method="gcond-x", nodes=9, callbacks=callbacks, **options)
    assert small.provenance.start == "propagated-means"
    assert small.provenance.ended == OUT_OF_TIME
    assert clock() <= 120


def test_methods_that_do_not_learn_take_it_and_say_if_it_was_too_short(make_graph):
    graph = make_graph()
    with pytest.warns(UserWarning, match="random took .* s and not 1e-09 s"):
        late = gcond.condense(graph, method="random", nodes=9, within=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = gcond.condense(graph, method="random", nodes=9, within="1h")
    assert small.sha256 == late.sha256 == gcond.condense(graph, method="random", nodes=9).sha256
    assert small.provenance.ended == ""


def test_learning_without_time_gives_the_start_and_says_so(make_graph):
    graph = make_graph()
    options = QUICK | {"init": "sample"}
    with pytest.warns(UserWarning, match="gcond-x took"):
        small = gcond.condense(graph, method="gcond-x", nodes=9, within=1e-9, **options)
    assert small.sha256 == gcond.condense(graph, method="gcond-x", nodes=9, epochs=0, **options).sha256


def test_with_time_enough_nothing_changes(make_graph):
    graph = make_graph()
    options = QUICK | {"epochs": 8, "patience": 0}
    plain = gcond.condense(graph, method="gcond", nodes=9, **options)
    timed = gcond.condense(graph, method="gcond", nodes=9, within="1h", **options)
    assert timed.sha256 == plain.sha256
    assert timed.provenance.ended == plain.provenance.ended == "all epochs are done"
    assert timed.provenance.history == plain.provenance.history


def test_growing_ends_in_time_too(make_graph):
    graph = make_graph()
    options = QUICK | {"epochs": 2, "init": "sample"}
    small = gcond.condense(graph, method="gcond-x", nodes=9, **options)
    with pytest.warns(UserWarning, match="growing by gcond-x took"):
        grown = gcond.grow(small, on=graph, nodes=12, within=1e-9)
    assert grown.provenance.ended == OUT_OF_TIME
    assert grown.sha256 == gcond.grow(small, on=graph, nodes=12, epochs=0).sha256


@pytest.mark.parametrize("bad", ["soon", 0, "-1s"])
def test_what_is_no_time_is_refused_before_any_work(bad):
    with pytest.raises(GcondError, match="within="):
        gcond.condense("no such graph", nodes=9, within=bad)


def test_a_run_ended_in_time_is_taken_up_again_from_its_checkpoint(make_graph, tmp_path):
    clock, graph, place = Clock(), make_graph(), tmp_path / "run.checkpoint"
    options = QUICK | {"epochs": 12, "init": "sample", "probe_every": 0}
    whole = gcond.condense(graph, method="gcond-x", nodes=9, **options)
    callbacks = [Slow(clock), Deadline(9, clock=clock)]
    short = gcond.condense(graph, method="gcond-x", nodes=9, callbacks=callbacks, checkpoint=place, **options)
    assert 0 < len(short.provenance.history["loss"]) < 12
    rest = gcond.condense(graph, method="gcond-x", nodes=9, checkpoint=place, resume=True, threads=2, **options)
    assert len(rest.provenance.history["loss"]) == 12
    assert torch.allclose(rest.x, whole.x, atol=1e-4)
    assert rest.provenance.threads == 2
