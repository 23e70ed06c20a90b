"""TensorBoard logging, the extra ``tensorboard``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gcond.callbacks.base import Callback
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.matching.loop import Run


class TensorBoard(Callback):
    """Writes the loss of every epoch, every probe and the rates to event files in ``folder``."""

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise GcondError(
                "logging for TensorBoard needs the extra: install it with pip install 'gcond[tensorboard]'"
            ) from None
        self._writer = SummaryWriter(str(folder))  # type: ignore[no-untyped-call]

    def on_epoch(self, run: Run) -> None:
        self._writer.add_scalar("loss", run.history["loss"][-1], run.epoch)  # type: ignore[no-untyped-call]
        self._writer.add_scalar("rate", run.rate, run.epoch)  # type: ignore[no-untyped-call]

    def on_probe(self, run: Run) -> None:
        self._writer.add_scalar("probe/validation accuracy", run.probes[-1].accuracy, run.epoch)  # type: ignore[no-untyped-call]

    def on_stop(self, run: Run) -> None:
        self._writer.close()  # type: ignore[no-untyped-call]
