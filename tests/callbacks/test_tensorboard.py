from __future__ import annotations

import sys

import pytest

from gcond.callbacks import Callback, Checkpoint, TensorBoard
from gcond.errors import GcondError
from gcond.methods.condense import condense

QUICK = {"epochs": 4, "outer": 2, "inner": 1, "probe_every": 2, "patience": 0, "structure_hidden": 8}


def events(folder):
    """{tag: [(step, value), …]} as TensorBoard itself reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), purge_orphaned_data=True)
    found.Reload()
    return {tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_what_is_logged_is_what_is_recorded(make_graph, tmp_path):
    pytest.importorskip("tensorboard")
    history = condense(make_graph(), nodes=6, callbacks=[TensorBoard(tmp_path / "a" / "b")], **QUICK).provenance.history
    logged = events(tmp_path / "a" / "b")
    assert set(logged) == {"loss", "rate", "probe/validation accuracy"}
    assert logged["loss"] == [(i + 1, pytest.approx(loss)) for i, loss in enumerate(history["loss"])]
    expected = list(zip(history["probe_epoch"], map(pytest.approx, history["probe"]), strict=True))
    assert logged["probe/validation accuracy"] == expected
    assert {value for _, value in logged["rate"]} == {1.0}


def test_a_run_that_goes_on_is_logged_once(make_graph, tmp_path):
    pytest.importorskip("tensorboard")

    class Broken(Callback):
        def on_epoch(self, run):
            if run.epoch == 3:
                raise InterruptedError

    class Twice(Checkpoint):
        """Writes after epoch 2 and then no more."""

        def on_epoch(self, run):
            if run.epoch == 2:
                self.write(run)

    graph, place, folder = make_graph(), tmp_path / "run.checkpoint", tmp_path / "log"
    with pytest.raises(InterruptedError):
        condense(graph, nodes=6, callbacks=[Twice(place), TensorBoard(folder), Broken()], **QUICK)
    result = condense(graph, nodes=6, callbacks=[Checkpoint(place, resume=True), TensorBoard(folder)], **QUICK)
    losses = result.provenance.history["loss"]
    assert events(folder)["loss"] == [(i + 1, pytest.approx(loss)) for i, loss in enumerate(losses)]


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_that_begins_again_is_logged_once(kept, make_graph, tmp_path):
    """Interrupted before an epoch was written down: what goes on is its start, or nothing if even that is gone."""
    pytest.importorskip("tensorboard")

    class Broken(Callback):
        def on_epoch(self, run):
            if run.epoch == 3:
                raise InterruptedError

    graph, place, folder = make_graph(), tmp_path / "run.checkpoint", tmp_path / "log"
    with pytest.raises(InterruptedError):
        condense(graph, nodes=6, callbacks=[Checkpoint(place), TensorBoard(folder), Broken()], **QUICK)
    if not kept:
        place.unlink()
    result = condense(graph, nodes=6, callbacks=[Checkpoint(place, resume=True), TensorBoard(folder)], **QUICK)
    history, logged = result.provenance.history, events(folder)
    assert [step for step, _ in logged["loss"]] == [1, 2, 3, 4]
    assert logged["loss"] == [(i + 1, pytest.approx(loss)) for i, loss in enumerate(history["loss"])]
    assert [step for step, _ in logged["probe/validation accuracy"]] == history["probe_epoch"]


def test_without_the_extra_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(GcondError, match=r"pip install 'gcond\[tensorboard\]'"):
        TensorBoard(tmp_path)


def test_a_folder_that_cannot_be(make_graph, tmp_path):
    pytest.importorskip("tensorboard")
    (tmp_path / "file").write_text("precious")
    with pytest.raises(GcondError, match="cannot write"):
        condense(make_graph(), nodes=6, callbacks=[TensorBoard(tmp_path / "file" / "log")], **QUICK)
    assert (tmp_path / "file").read_text() == "precious"
