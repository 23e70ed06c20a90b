"""Checkpoints: a run that was killed goes on to the same graph."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gcond.condensed.task import Snapshot
from gcond.errors import GcondError
from gcond.matching.callback import Callback
from gcond.runtime.files import check_writable
from gcond.runtime.tensor_file import FORMAT_VERSION, fingerprint, read_tensors, write_tensors

if TYPE_CHECKING:
    from gcond.matching.run import Run

KIND = "checkpoint"


class Checkpoint(Callback):
    """The run's state in the file ``path``: atomically, at its start, every so many ``seconds``, and at its end.

    With ``resume`` a file that is there already is taken up; it must be of the same method, settings, seed,
    budget and source, and is refused if it is not, or as good as none with ``forgiving``. Without ``resume`` it is
    replaced. Removing it once the result is saved is up to the caller.
    """

    def __init__(
        self, path: str | Path, seconds: float = 30.0, *, resume: bool = False, forgiving: bool = False
    ) -> None:
        self.path = Path(path)
        self.seconds = seconds
        self.resume = resume
        self.forgiving = forgiving
        self._last = 0.0

    def interrupted(self, identity: str) -> Snapshot | None:
        check_writable(self.path)
        if self.resume and self.path.exists():
            try:
                return read_checkpoint(self.path, identity)
            except GcondError:
                if not self.forgiving:
                    raise
        self.remove()  # an interruption before the first checkpoint would leave another run's to be taken up
        return None

    def on_start(self, run: Run) -> None:
        """Write the start, which may have taken trials to choose: whoever takes this up need not choose again."""
        self.write(run)

    def on_epoch(self, run: Run) -> None:
        if time.monotonic() - self._last >= self.seconds:
            self.write(run)

    def on_stop(self, run: Run) -> None:
        self.write(run)

    def write(self, run: Run) -> None:
        kept = run.snapshot()
        metadata = {"kind": KIND, "identity": run.identity, "run": kept.state, "sha256": _seal(kept)}
        write_tensors(self.path, kept.tensors, {"format": FORMAT_VERSION} | metadata)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Once the result is safe, the checkpoint has done its work."""
        self.path.unlink(missing_ok=True)


def read_checkpoint(path: Path, identity: str) -> Snapshot:
    """The state that a run of ``identity`` left at ``path``; anything else that may be there is refused."""
    tensors, metadata = read_tensors(path)
    kept = Snapshot(tensors, metadata.get("run", {}))
    if metadata.get("kind") != KIND:
        raise GcondError(f"'{path}' is not a checkpoint: give the one that the interrupted run wrote")
    if metadata.get("identity") != identity:
        raise GcondError(
            f"the checkpoint '{path}' is of another run: resume with the same source, method, settings, "
            "budget, seed and version of gcond, or remove the file to start anew"
        )
    if metadata.get("sha256") != _seal(kept):
        raise GcondError(f"the checkpoint '{path}' is damaged: remove it to start anew")
    return kept


def _seal(kept: Snapshot) -> str:
    """A fingerprint of the whole state: one wrong bit in it would quietly lead to another graph."""
    return fingerprint(kept.tensors, json.dumps(kept.state, sort_keys=True))


def checkpoint_of(out: Path) -> Path:
    """The checkpoint of a run that is to write ``out``: beside it."""
    return out.with_name(f"{out.name}.checkpoint")
