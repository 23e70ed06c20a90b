"""TensorBoard logging, the extra ``tensorboard``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.errors import GcondError
from gcond.matching.callback import Callback
from gcond.runtime.files import unwritable

if TYPE_CHECKING:
    from gcond.matching.run import Run

FLUSH_SECONDS = 10
"""Longest time that the files lag behind, also if the run is killed."""


class TensorBoard(Callback):
    """Event files in ``folder`` with the loss of every epoch, every probe and the factor on the rates.

    A run that goes on from a checkpoint takes back what was logged after it, and one that starts, all that is in the
    folder.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise GcondError(
                "logging for TensorBoard needs an extra: install it with pip install 'gcond[tensorboard]'"
            ) from None
        self._open = SummaryWriter
        self._folder = Path(folder)
        self._writer: Any = None

    def on_start(self, run: Run) -> None:
        # Also before any checkpoint: a run that begins again begins its log again.
        first = run.epoch + 1 if run.epoch or run.probes else 0
        try:
            self._writer = self._open(str(self._folder), flush_secs=FLUSH_SECONDS, purge_step=first)
        except OSError as error:
            raise unwritable(self._folder, error) from None

    def on_probe(self, run: Run) -> None:
        self._writer.add_scalar(f"probe/validation {run.metric}", run.probes[-1].accuracy, run.epoch)

    def on_epoch(self, run: Run) -> None:
        self._writer.add_scalar("loss", run.history["loss"][-1], run.epoch)
        self._writer.add_scalar("rate", run.rate, run.epoch)

    def on_stop(self, run: Run) -> None:
        self._writer.close()
