"""A run: epochs, probes, guards and what callbacks see, on a condensation small enough to follow by hand."""

from __future__ import annotations

import math

import pytest
import torch

from gcond.callbacks import Callback
from gcond.condensed.task import Snapshot
from gcond.errors import GcondError
from gcond.matching.run import MOST_RETRIES, Run
from gcond.matching.structure import FreeStructure
from gcond.matching.synthetic import NotFiniteError, Rates, Synthetic
from gcond.runtime.seeds import generator

EVENTS = ("on_start", "on_step", "on_retry", "on_probe", "on_epoch", "on_stop")


class Recorder(Callback):
    """Writes down every event with the epoch and step it came at, and does what it is told to on top."""

    def __init__(self, **also):
        self.events = []
        for event in EVENTS:
            setattr(self, event, self._recording(event, also.get(event)))

    def _recording(self, event, also):
        def told(run):
            self.events.append((event, run.epoch, run.step))
            if also:
                also(run)

        return told

    def names(self):
        return [event for event, _, _ in self.events]


def small_graph():
    x = torch.randn(4, 3, generator=generator(0, "x"))
    structure = FreeStructure()
    phi = structure.init(4, 3, generator(0, "phi"))
    return Synthetic(x, torch.tensor([0, 0, 1, 1]), structure, phi, Rates(0.1, 0.05))


def go(run, spoil=lambda k, t: 1.0):
    """Epochs that bring X' and A' towards 1 and 0; ``spoil`` is what the loss of a step is multiplied by."""
    synthetic = run.synthetic
    for k in run.epochs_left():
        synthetic.learn(True, True)
        try:
            for t in range(run.steps):
                inputs = synthetic.inputs()
                loss = ((inputs.x - 1).square().mean() + inputs.adjacency.mean()) * spoil(k, t)
                synthetic.update(loss)
                run.stepped(loss.item())
        except NotFiniteError:
            run.retry()
        else:
            run.finish_epoch()
    return run


def make_run(epochs=4, *, accuracies=None, synthetic=None, **options):
    """A run whose probes find ``accuracies`` one after the other; without these, nothing is probed."""
    found = iter(accuracies or ())
    probe = None if accuracies is None else lambda: next(found)
    return Run(synthetic or small_graph(), epochs=epochs, steps=2, identity="toy", probe=probe, **options)


def states_of(run_with):
    """X' at the start and after every epoch of the run that ``run_with(callbacks)`` makes, and the run."""
    states = []
    keep = Recorder(
        on_start=lambda run: states.append(run.synthetic.learned()),
        on_epoch=lambda run: states.append(run.synthetic.learned()),
    )
    run = go(run_with([keep]))
    return states, run


def assert_equal(first, second):
    assert first.keys() == second.keys()
    for key, tensor in first.items():
        assert torch.equal(tensor, second[key]), key


def test_events_come_in_order():
    heard = Recorder()
    go(make_run(2, accuracies=[0.1, 0.2, 0.3], callbacks=[heard]))
    assert heard.events == [
        ("on_start", 0, 0),
        ("on_probe", 0, 0),
        ("on_step", 0, 1),
        ("on_step", 0, 2),
        ("on_probe", 1, 2),
        ("on_epoch", 1, 2),
        ("on_step", 1, 1),
        ("on_step", 1, 2),
        ("on_probe", 2, 2),
        ("on_epoch", 2, 2),
        ("on_stop", 2, 0),
    ]


def test_callbacks_are_told_one_after_the_other():
    order = []
    first, second = (Recorder(on_epoch=lambda run, name=name: order.append(name)) for name in "ab")
    go(make_run(2, callbacks=[first, second]))
    assert order == ["a", "b", "a", "b"]
    assert first.events == second.events


def test_loss_is_that_of_the_step_and_history_has_the_mean_of_each_epoch():
    losses = []
    run = make_run(3, callbacks=[Recorder(on_step=lambda run: losses.append(run.loss))])
    go(run)
    assert len(losses) == 6
    assert run.history["loss"] == [sum(losses[i : i + 2]) / 2 for i in (0, 2, 4)]
    assert losses[0] > losses[-1]
    assert run.history["probe"] == run.history["probe_epoch"] == run.history["retried_epoch"] == []


@pytest.mark.parametrize("event", ["on_step", "on_probe", "on_epoch"])
def test_stop_ends_after_the_epoch(event):
    def stop(run):
        if run.epoch >= 1:
            run.stop("enough")

    heard = Recorder(**{event: stop})
    run = make_run(9, accuracies=[0.5] * 10, callbacks=[heard])
    go(run)
    done = 2 if event == "on_step" else 1
    assert (run.epoch, run.reason) == (done, "enough")
    assert heard.names()[-2:] == ["on_epoch", "on_stop"]
    assert len(run.history["loss"]) == done
    assert run.history["probe_epoch"] == list(range(done + 1))


def test_stop_at_the_start_leaves_the_graph_as_it_was():
    run = make_run(9, accuracies=[0.5], callbacks=[Recorder(on_start=lambda run: run.stop("not today"))])
    before = run.synthetic.learned()
    go(run)
    assert run.epoch == 0
    assert_equal(run.synthetic.learned(), before)


def test_reason_says_what_ended_it():
    run = make_run(2)
    assert run.reason == ""
    go(run)
    assert run.reason == "all epochs are done"
    run = make_run(9, accuracies=[0.5] * 10, patience=2)
    go(run)
    assert run.epoch == 2
    assert run.reason == "the validation probe has not improved for 2 probes"


@pytest.mark.parametrize(
    ("every", "epochs", "expected"),
    [(1, 3, [0, 1, 2, 3]), (2, 6, [0, 2, 4, 6]), (2, 5, [0, 2, 4, 5]), (7, 3, [0, 3]), (3, 3, [0, 3])],
)
def test_probes_come_before_the_first_epoch_at_the_interval_and_after_the_last(every, epochs, expected):
    run = make_run(epochs, accuracies=[i / 10 for i in range(epochs + 1)], probe_every=every)
    go(run)
    assert run.history["probe_epoch"] == expected
    assert run.history["probe"] == [i / 10 for i in range(len(expected))]


@pytest.mark.parametrize(
    ("accuracies", "kept"),
    [
        ([0.5, 0.7, 0.6, 0.65], 1),
        ([0.5, 0.7, 0.7, 0.6], 2),  # of equal ones the later
        ([0.9, 0.6, 0.7, 0.6], 0),  # the start competes
        ([0.7, 0.6, 0.7, 0.7], 0),  # and is to be beaten, not equalled
        ([0.6, 0.6, 0.7, 0.6], 2),
        ([0.1, 0.2, 0.3, 0.4], 3),
        ([0.0, 0.0, 0.0, 0.0], 0),
    ],
)
def test_the_state_of_the_best_probe_is_kept(accuracies, kept):
    states, run = states_of(lambda callbacks: make_run(3, accuracies=accuracies, callbacks=callbacks))
    assert all(not torch.equal(states[kept]["x"], other["x"]) for at, other in enumerate(states) if at != kept)
    assert_equal(run.synthetic.learned(), states[kept])
    assert run.best_accuracy == accuracies[kept]


@pytest.mark.parametrize(
    ("accuracies", "kept"), [([0.5, 0.59, 0.6, 0.59], 0), ([0.5, 0.59, 0.61, 0.6], 2), ([0.5, 0.7, 0.65, 0.7], 3)]
)
def test_a_good_start_is_to_be_beaten_clearly(accuracies, kept):
    """The others compete among themselves by as much as they have."""
    states, run = states_of(
        lambda callbacks: make_run(3, accuracies=accuracies, callbacks=callbacks, clearly=lambda reached: reached + 0.1)
    )
    assert_equal(run.synthetic.learned(), states[kept])
    assert run.best_accuracy == max(accuracies)


def test_without_probes_the_last_state_is_kept():
    states, run = states_of(lambda callbacks: make_run(3, callbacks=callbacks))
    assert_equal(run.synthetic.learned(), states[-1])
    assert math.isnan(run.best_accuracy)


@pytest.mark.parametrize(
    ("accuracies", "patience", "ends"),
    [
        ([0.9, *[0.5] * 9], 3, 3),  # the start counts
        ([0.5] * 10, 3, 3),
        ([0.1, 0.5, 0.5, 0.5, 0.5, 0.9], 3, 4),  # equal is not better: counted from the first best
        ([0.1, 0.5, 0.4, 0.4, 0.6, 0.1, 0.1, 0.1, 0.1], 3, 7),  # a better one starts the count anew
        ([0.1, 0.2, 0.1, 0.3, 0.2, 0.4, 0.3, 0.5, 0.4, 0.4], 3, 9),
        ([0.5] * 10, 0, 9),  # 0 never stops
    ],
)
def test_patience_counts_probes_since_the_first_best(accuracies, patience, ends):
    run = make_run(9, accuracies=accuracies, patience=patience)
    go(run)
    assert run.epoch == ends


def test_probes_look_at_the_graph_without_changing_it():
    plain, probed = make_run(3), make_run(3, accuracies=[0.1, 0.2, 0.3, 0.4])
    go(plain)
    go(probed)
    assert_equal(plain.synthetic.snapshot(), probed.synthetic.snapshot())
    assert plain.history["loss"] == probed.history["loss"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("step", [0, 1])
def test_an_epoch_that_is_not_finite_is_tried_again_from_the_state_before_it(value, step):
    synthetic = small_graph()
    seen = []

    def spoil(k, t):
        return value if (k, t) == (1, step) and synthetic.rate > 0.3 else 1.0

    heard = Recorder(
        on_epoch=lambda run: seen.append(run.synthetic.snapshot()),
        on_retry=lambda run: seen.append((run.synthetic.snapshot(), run.rate)),
    )
    run = go(make_run(3, synthetic=synthetic, callbacks=[heard]), spoil)
    after_first, (once, half), (twice, quarter), *_ = seen
    assert (half, quarter) == (0.5, 0.25)
    assert_equal(once, after_first)  # X', Φ and every moment, bit for bit
    assert_equal(twice, after_first)
    assert run.history["retried_epoch"] == [2, 2]
    assert len(run.history["loss"]) == run.epoch == 3
    assert all(math.isfinite(loss) for loss in run.history["loss"])
    assert [event for event in heard.events if event[0] == "on_retry"] == [("on_retry", 1, 0)] * 2


def test_after_a_retry_the_rates_are_halved_and_the_rest_is_as_if_nothing_had_been():
    synthetic = small_graph()
    spoiled = go(make_run(1, synthetic=synthetic), lambda k, t: math.nan if synthetic.rate == 1 else 1.0)
    slow = make_run(1)
    slow.synthetic.slow_down(0.5)
    go(slow)
    assert_equal(spoiled.synthetic.snapshot(), slow.synthetic.snapshot())
    fast = make_run(1)
    go(fast)
    moved, half = ((run.synthetic.x - small_graph().x).abs().mean() for run in (fast, spoiled))
    assert 0.4 < half / moved < 0.6


def test_a_gradient_that_is_not_finite_is_caught_though_the_loss_is():
    synthetic = small_graph()
    run = Run(synthetic, epochs=3, steps=1)
    for k in run.epochs_left():
        synthetic.learn(True, False)
        loss = synthetic.x.square().sum()
        if k == 1 and synthetic.rate == 1:
            loss = loss + (synthetic.x[0] - synthetic.x[0]).abs().sqrt().sum()  # 0, with a slope of 0 · ∞
        assert loss.isfinite()
        try:
            synthetic.update(loss)
        except NotFiniteError:
            run.retry()
        else:
            run.stepped(loss.item())
            run.finish_epoch()
    assert run.history["retried_epoch"] == [2]
    assert bool(synthetic.x.isfinite().all())


def test_a_run_that_stays_broken_is_given_up_with_a_sentence():
    retries = []
    heard = Recorder(on_retry=lambda run: retries.append(run.rate))
    run = make_run(5, callbacks=[heard])
    with pytest.raises(GcondError, match=r"^condensing diverged in epoch 3, even at 0\.0039 times .* smaller lr_"):
        go(run, lambda k, t: math.nan if k == 2 else 1.0)
    assert retries == [0.5**i for i in range(1, MOST_RETRIES + 1)]
    assert run.history["retried_epoch"] == [3] * MOST_RETRIES
    assert heard.names()[-1] == "on_retry"


def test_each_epoch_has_its_own_retries():
    """Trouble in many epochs is not the same as an epoch that never works."""
    synthetic = small_graph()
    spoil = lambda k, t: math.nan if synthetic.rate > 0.5 ** (k + 1) else 1.0  # noqa: E731
    run = go(make_run(MOST_RETRIES + 3, synthetic=synthetic), spoil)
    assert run.history["retried_epoch"] == list(range(1, MOST_RETRIES + 4))


def test_a_snapshot_stays_what_it_was_while_the_run_goes_on():
    kept = []
    run = make_run(3, callbacks=[Recorder(on_epoch=lambda run: kept.append(run.snapshot()))])
    go(run)
    for epoch, (tensors, state) in enumerate(kept, 1):
        assert state["epoch"] == len(state["loss"]) == epoch
        assert not torch.equal(tensors["x"], run.synthetic.x) or epoch == 3


@pytest.mark.parametrize(
    "missing", ["epoch", "loss", "probe", "probe_epoch", "retried_epoch", "rate", "seconds", "x", "phi.score"]
)
def test_a_state_that_lacks_something_is_refused(missing):
    run = make_run(2)
    go(run)
    tensors, state = run.snapshot()
    without = [{key: value for key, value in part.items() if key != missing} for part in (tensors, state)]
    with pytest.raises(GcondError, match="damaged"):
        make_run(2, interrupted=Snapshot(*without))


def interrupt_after(epoch):
    """A callback that dies after ``epoch``, and the snapshot it took on the way."""
    taken = []

    def die(run):
        if run.epoch == epoch:
            taken.append(run.snapshot())
            raise KeyboardInterrupt

    return Recorder(on_epoch=die), taken


@pytest.mark.parametrize("epoch", range(1, 6))
@pytest.mark.parametrize("patience", [0, 2])
def test_interrupted_after_any_epoch_and_restored_equals_uninterrupted(epoch, patience):
    """With a retry in the third epoch, so that some interruptions come before it and some after."""
    accuracies = {0: 0.2, 1: 0.5, 2: 0.5, 3: 0.4, 4: 0.4, 5: 0.4}

    def make(**options):
        synthetic = small_graph()
        spoil = lambda k, t: math.inf if (k, t) == (2, 1) and synthetic.rate == 1 else 1.0  # noqa: E731
        probe = lambda: accuracies[run.epoch]  # noqa: E731
        run = Run(synthetic, epochs=5, steps=2, probe=probe, patience=patience, **options)
        return lambda: go(run, spoil)

    whole = make()()
    if epoch > whole.epoch:
        assert whole.reason.startswith("the validation probe")
        return
    killer, taken = interrupt_after(epoch)
    with pytest.raises(KeyboardInterrupt):
        make(callbacks=[killer])()
    heard = Recorder()
    resumed = make(callbacks=[heard], interrupted=taken[0])()
    assert_equal(resumed.synthetic.snapshot(), whole.synthetic.snapshot())
    assert resumed.history == whole.history
    assert (resumed.epoch, resumed.rate, resumed.reason) == (whole.epoch, whole.rate, whole.reason)
    assert heard.names()[:2] in (["on_start", "on_step"], ["on_start", "on_stop"])  # not probed again


def test_what_a_callback_stopped_goes_on_when_it_is_restored():
    whole = make_run(4)
    go(whole)
    taken = []
    stopper = Recorder(on_epoch=lambda run: run.stop("later"), on_stop=lambda run: taken.append(run.snapshot()))
    go(make_run(4, callbacks=[stopper]))
    resumed = make_run(4, interrupted=taken[0])
    go(resumed)
    assert_equal(resumed.synthetic.snapshot(), whole.synthetic.snapshot())
    assert resumed.history == whole.history


@pytest.mark.parametrize(("last", "kept"), [(0.9, 4), (0.5, 4), (0.4, 3)])
def test_a_run_that_is_stopped_between_two_probes_is_probed_at_its_end(last, kept):
    stop = lambda run: run.stop("enough") if run.epoch == 4 else None  # noqa: E731
    heard = Recorder(on_epoch=stop)
    states, run = states_of(
        lambda callbacks: make_run(9, accuracies=[0.1, 0.5, last], probe_every=3, callbacks=[*callbacks, heard])
    )
    assert run.history["probe_epoch"] == [0, 3, 4]
    assert run.best_accuracy == max(0.5, last)
    assert_equal(run.synthetic.learned(), states[kept])
    assert heard.names().count("on_probe") == 2  # those that a run which goes on has had


def test_the_probe_at_the_end_of_a_stopped_run_is_not_in_what_goes_on():
    def make(**options):
        accuracies = {0: 0.2, 3: 0.5, 4: 0.9, 6: 0.4, 7: 0.6}
        probe = lambda: accuracies[run.epoch]  # noqa: E731
        run = Run(small_graph(), epochs=7, steps=2, probe=probe, probe_every=3, patience=2, **options)
        return run

    whole, taken = make(), []
    go(whole)
    stop = lambda run: run.stop("later") if run.epoch == 4 else None  # noqa: E731
    go(make(callbacks=[Recorder(on_epoch=stop, on_stop=lambda run: taken.append(run.snapshot()))]))
    resumed = make(interrupted=taken[0])
    go(resumed)
    assert_equal(resumed.synthetic.snapshot(), whole.synthetic.snapshot())
    assert resumed.history == whole.history
    assert resumed.history["probe_epoch"] == [0, 3, 6, 7]


def test_seconds_before_an_interruption_are_counted():
    run = make_run(1)
    go(run)
    tensors, state = run.snapshot()
    resumed = make_run(1, interrupted=Snapshot(tensors, state | {"seconds": [1000.0, 900.0]}))
    assert 1000 <= resumed.seconds[0] < 2000
    assert 900 <= resumed.seconds[1] < 1800


def test_a_run_that_does_not_probe_its_start_probes_the_rest():
    run = go(make_run(4, accuracies=[0.3, 0.4], probe_every=2, probe_start=False))
    assert run.history["probe_epoch"] == [2, 4]
