"""Checkpoints: a run that was killed goes on to the same graph."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.callbacks.callback import Callback
from gcond.errors import GcondError
from gcond.runtime.files import check_writable
from gcond.runtime.tensor_file import FORMAT_VERSION, fingerprint, read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor

    from gcond.matching.loop import Run

KIND = "checkpoint"


class Checkpoint(Callback):
    """Writes the run's state to ``path`` every so many ``seconds``, atomically, and at its end.

    And at its beginning, if its start was chosen by trials: they are work too.

    With ``resume`` a file that is there already is taken up; it must be of the same method, settings, seed,
    budget and source. Without, it is replaced. Removing it once the result is saved is up to the caller.
    """

    def __init__(self, path: str | Path, seconds: float = 30.0, *, resume: bool = False) -> None:
        self.path = Path(path)
        self.seconds = seconds
        self.resume = resume
        self._last = 0.0

    def on_start(self, run: Run) -> None:
        self._make_place()
        self._last = time.monotonic()
        if (found := self._read(run.identity)) is not None:
            run.restore(*found)
        elif run.tried:  # whoever takes this up need not choose the start again
            self.write(run)

    def recall_start(self, identity: str) -> str | None:
        self._make_place()
        found = self._read(identity)
        return None if found is None else found[1].get("start") or None

    def on_epoch(self, run: Run) -> None:
        if time.monotonic() - self._last >= self.seconds:
            self.write(run)

    def on_stop(self, run: Run) -> None:
        self.write(run)

    def write(self, run: Run) -> None:
        tensors, state = run.snapshot()
        metadata = {"kind": KIND, "identity": run.identity, "run": state, "sha256": _seal(tensors, state)}
        write_tensors(self.path, tensors, {"format": FORMAT_VERSION} | metadata)
        self._last = time.monotonic()

    def _make_place(self) -> None:
        check_writable(self.path)
        if not self.resume:
            self.remove()  # an interruption before the first checkpoint would leave another run's to be taken up

    def _read(self, identity: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The state to take up, if there is one and it is asked for; one that does not belong here is refused."""
        if not self.resume or not self.path.exists():
            return None
        tensors, metadata = read_tensors(self.path)
        if metadata.get("kind") != KIND:
            raise GcondError(f"'{self.path}' is not a checkpoint: give the one that the interrupted run wrote")
        if metadata.get("identity") != identity:
            raise GcondError(
                f"the checkpoint '{self.path}' is of another run: resume with the same source, method, settings, "
                "budget, seed and version of gcond, or remove the file to start anew"
            )
        if metadata.get("sha256") != _seal(tensors, metadata.get("run")):
            raise GcondError(f"the checkpoint '{self.path}' is damaged: remove it to start anew")
        return tensors, metadata["run"]

    def remove(self) -> None:
        """Once the result is safe, the checkpoint has done its work."""
        self.path.unlink(missing_ok=True)


def _seal(tensors: Mapping[str, Tensor], state: Any) -> str:
    """A fingerprint of the whole state: one wrong bit in it would quietly lead to another graph."""
    return fingerprint(tensors, json.dumps(state, sort_keys=True))


def checkpoint_of(out: Path) -> Path:
    """Where a run that is to write ``out`` keeps its checkpoint: beside it."""
    return out.with_name(f"{out.name}.checkpoint")
