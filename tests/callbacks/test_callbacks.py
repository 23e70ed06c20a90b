"""What anyone can listen to, through ``gcond.condense``."""

from __future__ import annotations

import inspect
import math

import pytest
import torch

from gcond.callbacks import Callback
from gcond.matching.run import Run
from gcond.methods.condense import condense

LEARNED = ["gcond", "gcond-x", "dc-graph"]
QUICK = {"epochs": 3, "outer": 2, "inner": 1, "hidden": 8, "probe_every": 2, "probe_share": 0.99, "init": "sample"}
EVENTS = [name for name in vars(Callback) if name.startswith("on_")]


class Heard(Callback):
    """The names of all events, in order."""

    def __init__(self):
        self.events = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            return lambda run: self.events.append((name, type(run)))
        return super().__getattribute__(name)


def run(graph, method="gcond-x", callbacks=(), **changes):
    return condense(graph, method=method, nodes=9, callbacks=callbacks, **QUICK | changes)


@pytest.mark.parametrize("method", LEARNED)
def test_every_learned_method_tells_everything(method, make_graph):
    heard = Heard()
    run(make_graph(), method, [heard])
    epoch = ["on_step", "on_step"]
    expected = ["on_start", "on_probe", *epoch, "on_epoch", *epoch, "on_probe", "on_epoch"]
    assert [name for name, _ in heard.events] == [*expected, *epoch, "on_probe", "on_epoch", "on_stop"]
    assert {kind for _, kind in heard.events} == {Run}


def test_a_callback_does_nothing_unless_told_to(make_graph):
    graph = make_graph()
    assert run(graph).sha256 == run(graph, callbacks=[Callback()]).sha256
    assert set(EVENTS) == {"on_start", "on_step", "on_retry", "on_probe", "on_epoch", "on_stop"}
    for event in EVENTS:
        assert inspect.getdoc(getattr(Callback, event))
        assert list(inspect.signature(getattr(Callback, event)).parameters) == ["self", "run"]


def test_what_a_run_shows(make_graph):
    seen = []

    class Look(Callback):
        def on_step(self, run):
            seen.append((run.epoch, run.step, run.loss, len(run.probes)))
            assert (run.epochs, run.steps, run.rate, run.reason) == (3, 2, 1.0, "")
            assert run.synthetic.x.shape == (9, 12)
            assert min(run.seconds) >= 0

    result = run(make_graph(), callbacks=[Look()])
    assert [step[:2] for step in seen] == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert [step[3] for step in seen] == [1, 1, 1, 1, 2, 2]
    assert all(math.isfinite(step[2]) for step in seen)
    history = result.provenance.history
    assert history["loss"] == [(seen[i][2] + seen[i + 1][2]) / 2 for i in (0, 2, 4)]
    assert history["probe_epoch"] == [0, 2, 3]
    assert history["retried_epoch"] == []


def test_the_result_is_the_state_with_the_best_probe(make_graph):
    states = {}

    class Keep(Callback):
        def on_probe(self, run):
            states[run.epoch] = (run.probes[-1].accuracy, run.synthetic.learned()["x"])

    result = run(make_graph(), callbacks=[Keep()], epochs=6, probe_every=1, lr_features=1.0)
    best = max(range(1, 7), key=lambda epoch: (states[epoch][0], epoch))
    assert len({accuracy for accuracy, _ in states.values()}) > 1
    assert torch.equal(result.x, states[best][1])
    assert result.provenance.history["probe"] == [states[epoch][0] for epoch in range(7)]


def test_stop_ends_the_run_and_the_result_is_whole(make_graph):
    class Stop(Callback):
        def on_step(self, run):
            run.stop("seen enough")

        def on_stop(self, run):
            assert run.reason == "seen enough"

    graph = make_graph()
    stopped = run(graph, callbacks=[Stop()], probe_every=0)
    assert len(stopped.provenance.history["loss"]) == 1
    assert torch.equal(stopped.x, run(graph, epochs=1, probe_every=0).x)


def test_an_error_of_a_callback_is_not_swallowed(make_graph):
    class Broken(Callback):
        def on_epoch(self, run):
            raise ZeroDivisionError("of the callback")

    with pytest.raises(ZeroDivisionError, match="of the callback"):
        run(make_graph(), callbacks=[Broken()])


def test_methods_of_one_step_have_nothing_to_tell(make_graph):
    heard = Heard()
    condense(make_graph(), method="random", nodes=9, callbacks=[heard])
    assert heard.events == []
