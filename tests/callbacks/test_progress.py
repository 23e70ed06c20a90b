from __future__ import annotations

from types import SimpleNamespace

import pytest

from gcond.callbacks import Callback, Checkpoint, Progress
from gcond.matching.probe import Probed
from gcond.methods.condense import condense

QUICK = {"epochs": 4, "outer": 3, "inner": 1, "structure_hidden": 8, "init": "sample"}
# Probes after every epoch, however much they are of the work.
PROBED = QUICK | {"probe_every": 1, "probe_share": 0.99, "patience": 0}


class Heard:
    def __init__(self):
        self.ticks, self.notes = [], []

    def tick(self, what, done, total, detail=""):
        self.ticks.append((what, done, total, detail))


def test_every_step_is_told(make_graph):
    heard = Heard()
    callback = Progress(heard.tick, heard.notes.append, name="gcond")
    condense(make_graph(), nodes=6, callbacks=[callback], probe_every=0, **QUICK)
    assert [(what, done, total) for what, done, total, _ in heard.ticks] == [("gcond", i + 1, 12) for i in range(12)]
    assert all(detail.startswith("loss ") and "val" not in detail for *_, detail in heard.ticks)
    assert heard.notes == []


def test_probes_are_told_in_per_cent(make_graph):
    heard = Heard()
    small = condense(make_graph(), nodes=6, callbacks=[Progress(heard.tick)], **PROBED)
    start, *probes = small.provenance.history["probe"]
    assert heard.ticks[0][3].endswith(f" val {100 * start:.1f}")
    # The last step comes before the last probe.
    assert heard.ticks[-1][3].endswith(f" val {100 * probes[-2]:.1f} (best {100 * max(probes[:-1]):.1f})")


def test_the_work_keeps_its_name_so_that_the_time_left_can_be_told(make_graph):
    heard = Heard()
    condense(make_graph(), nodes=6, callbacks=[Progress(heard.tick)], **PROBED)
    assert len({what for what, *_ in heard.ticks}) == 1
    assert len({detail for *_, detail in heard.ticks}) > 1
    assert max(len(detail) for *_, detail in heard.ticks) < 40


def test_trials_are_named_by_what_they_try(make_graph):
    """Under one name the second would go back from all done to none, and the time left could not be told."""
    heard = Heard()
    options = QUICK | {"epochs": 6, "outer": 2, "probe_every": 2, "init": "auto"}
    condense(make_graph(), nodes=6, callbacks=[Progress(heard.tick, name="gcond")], **options)
    names = list(dict.fromkeys(what for what, *_ in heard.ticks))
    assert names == ["gcond, trying sample", "gcond, trying propagated-means", "gcond"]
    for name in names:
        counts = [(done, total) for what, done, total, _ in heard.ticks if what == name]
        assert counts == [(i + 1, counts[0][1]) for i in range(counts[0][1])]


def test_an_early_end_is_noted(make_graph):
    class Stop(Callback):
        def on_epoch(self, run):
            run.stop("enough")

    heard = Heard()
    condense(make_graph(), nodes=6, callbacks=[Progress(heard.tick, heard.notes.append), Stop()], **QUICK)
    assert heard.notes == ["stopped after epoch 1 of 4: enough"]


def test_going_on_is_noted(make_graph, tmp_path):
    class Broken(Callback):
        def on_epoch(self, run):
            if run.epoch == 2:
                raise InterruptedError

    graph, heard = make_graph(), Heard()
    path = tmp_path / "run.checkpoint"
    with pytest.raises(InterruptedError):
        condense(graph, nodes=6, callbacks=[Checkpoint(path, 0), Broken()], probe_every=0, **QUICK)
    callbacks = [Checkpoint(path, resume=True), Progress(heard.tick, heard.notes.append)]
    condense(graph, nodes=6, callbacks=callbacks, probe_every=0, **QUICK)
    assert heard.notes == ["going on after epoch 2 of at most 4"]
    assert [done for _, done, *_ in heard.ticks] == [7, 8, 9, 10, 11, 12]


def test_a_retry_is_noted():
    heard = Heard()
    Progress(heard.tick, heard.notes.append).on_retry(SimpleNamespace(epoch=6, rate=0.25))
    assert heard.notes == [
        "epoch 7: the loss or a gradient was not finite; trying again from the last good state at 0.25 times the rates"
    ]


def test_numbers_of_any_size_stay_short():
    for loss in (0.0, 1e-9, 123456.789, float("nan")):
        heard = Heard()
        run = SimpleNamespace(
            epoch=0,
            epochs=1,
            steps=1,
            step=1,
            loss=loss,
            probes=2 * [Probed(1, 1.0)],
            best_accuracy=1.0,
        )
        Progress(heard.tick).on_step(run)
        assert len(heard.ticks[0][3]) < 40
