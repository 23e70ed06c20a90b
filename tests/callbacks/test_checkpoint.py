"""Checkpoints: exact, whole or not there, of one run only, and a killed run goes on to the same graph."""

from __future__ import annotations

import dataclasses
import json
import random
import signal
import subprocess
import sys
import textwrap

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from gcond.callbacks import Callback, Checkpoint
from gcond.callbacks.checkpoint import read_checkpoint
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.errors import GcondError
from gcond.matching.probe import Probe
from gcond.matching.synthetic import NotFiniteError, Synthetic
from gcond.methods.condense import condense
from gcond.runtime.tensor_file import read_tensors
from gcond.training.recipe import Recipe

QUICK = {"epochs": 5, "outer": 2, "inner": 2, "hidden": 8, "probe_every": 1, "probe_share": 0.99, "patience": 0}
QUICK |= {"init": "sample", "teacher": "none"}
CLUSTERS = {"init": "clusters", "teacher": "ridge"}
TURNS = {"features_epochs": 2, "structure_epochs": 1, "structure_hidden": 8, "delta": 0.0}
KINDS = {
    "gcond": TURNS,
    "gcond free": {"structure": "free", **TURNS},
    "gcond joint gcn": {"backbone": "gcn", "schedule": "joint", "structure_hidden": 8},
    "gcond sampled": {"sampling": "always", "batch": 5, "fanout": (3, 2), **TURNS},
    "gcond from clusters": {**TURNS, **CLUSTERS, "delta": "auto"},
    "gcond-x": {},
    "dc-graph": {},
}
SENTENCE = r"^[^\n]+$"
BRIEF = Recipe(epochs=3)


@pytest.fixture(autouse=True)
def brief_probes(monkeypatch):
    """What a probe finds does not matter here, and most of the time would go into it."""
    monkeypatch.setattr(Probe, "recipe", BRIEF)


class Killed(BaseException):
    """What no handler for errors catches."""


class KillAfter(Callback):
    """Ends everything after an epoch, as abruptly as Python can."""

    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch(self, run):
        if run.epoch == self.epoch:
            raise Killed


class Snapshots(Callback):
    """Keeps the state after every epoch, and at the end."""

    def __init__(self):
        self.taken = []

    def on_epoch(self, run):
        self.taken.append(run.snapshot())

    on_stop = on_epoch


class Restored(Callback):
    """Keeps the state that a run starts with."""

    def on_start(self, run):
        self.state = run.snapshot()


def run(graph, kind="gcond", callbacks=(), seed=3, nodes=9, **changes):
    options = QUICK | KINDS[kind] | changes
    return condense(graph, method=kind.split()[0], nodes=nodes, seed=seed, callbacks=callbacks, **options)


def assert_same(first, second):
    """Tensors to the bit, and everything that is said of them but what it cost."""
    assert first.tensors().keys() == second.tensors().keys()
    for key, tensor in first.tensors().items():
        assert torch.equal(tensor, second.tensors()[key]), key
    about = [dataclasses.replace(result.provenance, cost={}) for result in (first, second)]
    assert about[0] == about[1]


def interrupted(graph, path, kind, after, **changes):
    with pytest.raises(Killed):
        run(graph, kind, [Checkpoint(path, seconds=0), KillAfter(after)], **changes)


@pytest.fixture
def written(make_graph, tmp_path):
    """A graph, and the checkpoint of a run on it that was killed after its second epoch."""
    graph, path = make_graph(), tmp_path / "run.checkpoint"
    interrupted(graph, path, "gcond", 2)
    return graph, path


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_holds_the_whole_state_exactly(kind, make_graph, tmp_path):
    path = tmp_path / "c"
    snapshots, restored = Snapshots(), Restored()
    graph = make_graph()
    with pytest.raises(Killed):
        run(graph, kind, [snapshots, Checkpoint(path, seconds=0), KillAfter(3)])
    run(graph, kind, [Checkpoint(path, resume=True), restored])
    (tensors, state), (again, taken) = snapshots.taken[-1], restored.state
    assert tensors.keys() == again.keys()
    assert {"x", "adam.features.x.mean", "adam.features.x.square", "best.x"} <= tensors.keys()
    for key, tensor in tensors.items():
        assert tensor.dtype == again[key].dtype
        assert torch.equal(tensor, again[key]), key
    for key in ("epoch", "loss", "probe", "probe_epoch", "retried_epoch", "rate"):
        assert state[key] == taken[key], key
    assert state["epoch"] == 3
    assert len(state["probe"]) == 4
    assert taken["seconds"][0] > state["seconds"][0] > 0


@pytest.mark.parametrize("after", range(1, 6))
@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_after_any_epoch_and_resumed_equals_uninterrupted(kind, after, make_graph, tmp_path):
    graph = make_graph()
    interrupted(graph, tmp_path / "c", kind, after)
    assert_same(run(graph, kind, [Checkpoint(tmp_path / "c", resume=True)]), run(graph, kind))


@pytest.mark.parametrize("kind", ["gcond", "gcond-x"])
def test_interrupted_after_every_epoch(kind, setting, make_graph, tmp_path):
    graph = make_graph(setting, features=60, density=0.05)
    for after in range(1, 6):
        with pytest.raises(Killed):
            run(graph, kind, [Checkpoint(tmp_path / "c", seconds=0, resume=True), KillAfter(after)])
    assert_same(run(graph, kind, [Checkpoint(tmp_path / "c", resume=True)]), run(graph, kind))


@pytest.mark.parametrize("after", range(1, 5))
def test_interrupted_around_a_retry(after, make_graph, tmp_path, monkeypatch):
    """The third epoch fails until the rates are a quarter of what they were."""
    update = Synthetic.update

    def sometimes(self, loss):
        if self.snapshot()["adam.features.x.steps"] == 5 and self.rate > 0.3:
            raise NotFiniteError
        update(self, loss)

    monkeypatch.setattr(Synthetic, "update", sometimes)
    graph = make_graph()
    whole = run(graph, "gcond-x")
    assert whole.provenance.history["retried_epoch"] == [3, 3]
    interrupted(graph, tmp_path / "c", "gcond-x", after)
    assert_same(run(graph, "gcond-x", [Checkpoint(tmp_path / "c", resume=True)]), whole)


def test_early_stopping_goes_on_counting(make_graph, tmp_path):
    graph = make_graph()
    options = {"epochs": 40, "patience": 3}
    whole = run(graph, "gcond-x", **options)
    epochs = len(whole.provenance.history["loss"])
    assert 3 <= epochs < 40
    for after in (1, epochs - 1, epochs):
        path = tmp_path / f"c{after}"
        interrupted(graph, path, "gcond-x", after, **options)
        assert_same(run(graph, "gcond-x", [Checkpoint(path, resume=True)], **options), whole)


def test_a_finished_run_is_not_run_again(make_graph, tmp_path):
    graph, snapshots = make_graph(), Snapshots()
    first = run(graph, callbacks=[Checkpoint(tmp_path / "c")])
    second = run(graph, callbacks=[Checkpoint(tmp_path / "c", resume=True), snapshots])
    assert_same(first, second)
    assert len(snapshots.taken) == 1  # the end alone
    assert second.provenance.cost["wall_seconds"] > 0


def test_looking_does_not_change_a_run(make_graph, tmp_path):
    graph = make_graph()
    assert_same(run(graph), run(graph, callbacks=[Checkpoint(tmp_path / "c", seconds=0), Snapshots()]))


def test_what_it_cost_before_is_counted(written):
    graph, path = written
    _, metadata = read_tensors(path)
    before = metadata["run"]["seconds"]
    assert min(before) > 0
    cost = run(graph, callbacks=[Checkpoint(path, resume=True)]).provenance.cost
    assert cost["wall_seconds"] > before[0]
    assert cost["cpu_seconds"] > before[1]


def test_it_is_written_at_the_start_no_more_often_than_asked_for_and_at_the_end(make_graph, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(Checkpoint, "write", lambda self, run: written.append(run.epoch))
    run(make_graph(), callbacks=[Checkpoint(tmp_path / "c", seconds=1e6)])
    assert written == [0, 5]
    written.clear()
    run(make_graph(), callbacks=[Checkpoint(tmp_path / "c", seconds=0)])
    assert written == [0, 1, 2, 3, 4, 5, 5]


def test_without_resume_a_file_that_is_there_is_replaced(written):
    graph, path = written
    before = path.read_bytes()
    assert_same(run(graph, callbacks=[Checkpoint(path)]), run(graph))
    assert path.read_bytes() != before


def test_what_is_no_checkpoint_of_this_run_is_as_good_as_none_where_nobody_could_be_told(written):
    graph, path = written
    whole = run(graph, seed=4)
    assert_same(run(graph, seed=4, callbacks=[Checkpoint(path, resume=True, forgiving=True)]), whole)
    path.write_bytes(b"half a file")
    assert_same(run(graph, seed=4, callbacks=[Checkpoint(path, resume=True, forgiving=True)]), whole)
    # What that one left is whole, and goes on.
    snapshots = Snapshots()
    run(graph, seed=4, callbacks=[Checkpoint(path, resume=True, forgiving=True), snapshots])
    assert len(snapshots.taken) == 1


def test_it_is_read_once_and_before_anything_is_done(written, monkeypatch):
    graph, path = written
    read = []

    def reading(place, identity):
        read.append(place)
        return read_checkpoint(place, identity)

    monkeypatch.setattr("gcond.callbacks.checkpoint.read_checkpoint", reading)
    run(graph, callbacks=[Checkpoint(path, resume=True)])
    assert read == [path]


def test_resume_without_a_file_starts_anew(make_graph, tmp_path):
    graph = make_graph()
    assert_same(run(graph, callbacks=[Checkpoint(tmp_path / "c", resume=True)]), run(graph))


def test_remove(written):
    _, path = written
    checkpoint = Checkpoint(path)
    checkpoint.remove()
    assert not path.exists()
    checkpoint.remove()


def test_nothing_else_is_left_in_the_folder(written):
    _, path = written
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_last_one(written, monkeypatch):
    graph, path = written
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(GcondError, match="the disk is full"):
        run(graph, callbacks=[Checkpoint(path, seconds=0, resume=True)])
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 4},
        {"nodes": 10},
        {"lr_model": 0.02},
        {"epochs": 6},
        {"kind": "gcond-x"},
        {"structure": "free"},
        {"graph": {"seed": 1}},
        {"graph": {"setting": "inductive"}},
    ],
)
def test_another_run_s_checkpoint_is_refused(changes, written, make_graph):
    graph, path = written
    changes = dict(changes)
    graph = make_graph(**changes.pop("graph")) if "graph" in changes else graph
    kind = changes.pop("kind", "gcond")
    before = path.read_bytes()
    with pytest.raises(GcondError, match=r"^the checkpoint '.*' is of another run: resume with the same [^\n]*$"):
        run(graph, kind, [Checkpoint(path, resume=True)], **changes)
    assert path.read_bytes() == before


def resume(graph, path):
    run(graph, callbacks=[Checkpoint(path, resume=True)])


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.9999])
def test_truncated(share, written):
    graph, path = written
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(GcondError, match=SENTENCE):
        resume(graph, path)


@pytest.mark.parametrize("seed", range(12))
def test_one_wrong_bit_anywhere(seed, written):
    """Wherever it is: in the length of the header, the header, or the numbers."""
    graph, path = written
    data = bytearray(path.read_bytes())
    chance = random.Random(seed)
    header = int.from_bytes(data[:8], "little")
    place = chance.randrange(8, 8 + header) if seed % 2 else chance.randrange(8 + header, len(data))
    data[place] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    with pytest.raises(GcondError, match=SENTENCE):
        resume(graph, path)


@pytest.mark.parametrize("change", ["epoch", "rate", "loss", "probe", "nothing of the run", "no seal"])
def test_a_state_that_was_tampered_with(change, written):
    graph, path = written
    tensors, metadata = read_tensors(path)
    if change == "nothing of the run":
        del metadata["run"]
    elif change == "no seal":
        del metadata["sha256"]
    else:
        metadata["run"][change] = {"epoch": 3, "rate": 0.5, "loss": [1.0, 2.0], "probe": []}[change]
    save_file(tensors, path, {"gcond": json.dumps(metadata)})
    with pytest.raises(GcondError, match="is damaged"):
        resume(graph, path)


def test_other_files_are_refused(written, tmp_path):
    graph, path = written
    path.write_bytes(b"not a checkpoint at all")
    with pytest.raises(GcondError, match=SENTENCE):
        resume(graph, path)
    graph.save(path)
    with pytest.raises(GcondError, match=r"is not a checkpoint: give the one that the interrupted run wrote"):
        resume(graph, path)
    run(graph).save(path)
    with pytest.raises(GcondError, match="is not a checkpoint"):
        resume(graph, path)
    save_file({"x": torch.zeros(2)}, path)
    with pytest.raises(GcondError, match="gcond did not write it"):
        resume(graph, path)
    with pytest.raises(GcondError, match="folder"):
        resume(graph, tmp_path)


def test_a_checkpoint_is_no_graph(written):
    _, path = written
    with pytest.raises(GcondError, match=SENTENCE):
        CondensedGraph.load(path)


def test_a_place_that_cannot_be_written_is_refused_before_the_work(make_graph, tmp_path):
    snapshots = Snapshots()
    with pytest.raises(GcondError, match="does not exist"):
        run(make_graph(), callbacks=[Checkpoint(tmp_path / "no" / "c"), snapshots])
    assert snapshots.taken == []


def test_no_pickle_is_in_it(written):
    _, path = written
    with safe_open(path, framework="pt") as file:
        assert json.loads(file.metadata()["gcond"])["kind"] == "checkpoint"


# Condenses in a process of its own, which is killed ten times on its way and then left alone. It is forked, since
# imports take far longer than the run, and asks before it goes on after a step: so it is killed at a random moment
# of a random step, however fast or slow the machine is.
KILLER = """
    import json, os, random, signal, sys, time
    import torch
    from gcond.callbacks import Callback, Checkpoint
    from gcond.methods.condense import condense
    from gcond.graph.source_graph import SourceGraph
    from gcond.matching.probe import Probe
    from gcond.training.recipe import Recipe

    Probe.recipe = Recipe(epochs=3)
    torch.set_num_threads(1)
    source, checkpoint, out, options = sys.argv[1:]

    class Ask(Callback):
        def on_step(self, run):
            os.write(asks, b"?")
            os.read(allowed, 1)

    def attempt(callbacks):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                kept = Checkpoint(checkpoint, seconds=0, resume=True)
                condense(SourceGraph.load(source), callbacks=[kept, *callbacks], **json.loads(options)).save(out)
                status = 0
            finally:
                os._exit(status)
        return pid

    chance = random.Random(0)
    for _ in range(10):
        (asked, asks), (allowed, allow) = os.pipe(), os.pipe()
        pid = attempt([Ask()])
        for _ in range(chance.randrange(1, 5)):
            os.read(asked, 1)
            os.write(allow, b"!")
        time.sleep(0.03 * chance.random())
        os.kill(pid, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(os.waitstatus_to_exitcode(os.waitpid(attempt([]), 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("init", ["sample", "auto", "clusters"])
def test_killed_ten_times_and_resumed_gives_the_same_file(init, make_graph, tmp_path):
    graph = make_graph()
    graph.save(tmp_path / "source")
    options = QUICK | TURNS | {"method": "gcond", "nodes": 9, "seed": 3, "epochs": 24, "probe_every": 4, "patience": 0}
    options |= CLUSTERS if init == "clusters" else {"init": init}
    places = [tmp_path / name for name in ("source", "checkpoint", "out")]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLER), *map(str, places), json.dumps(options)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(-signal.SIGKILL)] * 10 + ["0"], done.stderr
    result, whole = CondensedGraph.load(tmp_path / "out"), condense(graph, **options)
    assert_same(result, whole)
    assert len(whole.provenance.history["loss"]) == 24
    assert whole.provenance.history["probe_epoch"] == list(range(0, 25, 4))
