"""A condensation under way: how far it is, what its probes found, and who is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from gcond.condensed.task import Snapshot
from gcond.errors import DivergedError, GcondError
from gcond.matching.callback import Callback
from gcond.matching.probe import Probed
from gcond.matching.synthetic import Synthetic
from gcond.runtime.stopwatch import Stopwatch

# How often an epoch is tried again at half the rates before the run is given up.
MOST_RETRIES = 8


class Run:
    """The state of a condensation of at most ``epochs`` epochs of ``steps`` outer steps, and its bookkeeping.

    Whoever learns goes over :meth:`epochs_left`, calls :meth:`stepped` after every outer step, and ends an epoch by
    :meth:`finish_epoch` or, after numbers that were not finite, by :meth:`retry`.

    ``probe()`` is the validation accuracy of the graph as it would be shipped, taken before the first epoch (unless
    ``probe_start`` is off), every ``probe_every`` epochs and after the last one, whatever ended it. The state with the
    best probe is what is kept, of equal ones the later; where nothing is probed, the last state is. The probe of the
    start is for the record: it is neither kept nor counted by ``patience``.
    """

    def __init__(
        self,
        synthetic: Synthetic,
        *,
        epochs: int,
        steps: int,
        identity: str = "",
        start: str = "",
        stopwatch: Stopwatch | None = None,
        interrupted: Snapshot | None = None,
        probe: Callable[[], float] | None = None,
        probe_start: bool = True,
        probe_every: int = 1,
        patience: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.synthetic = synthetic
        self.epochs = epochs
        """Most epochs that it may take."""
        self.steps = steps
        """Outer steps per epoch."""
        self.identity = identity
        """Fingerprint of what the state belongs to: method, settings, seed, budget, source, version."""
        self.start = start
        """Where X' starts, by name."""
        self.epoch = 0
        """Epochs done."""
        self.loss = float("nan")
        """Loss of the last outer step."""
        self.probes: list[Probed] = []
        self.reason = ""
        """Why it ended, when it has."""
        self._probe = probe
        self._probe_start = probe_start
        self._probe_every = probe_every
        self._patience = patience
        self._callbacks = callbacks
        self._losses: list[float] = []
        self._present: list[float] = []
        self._retried: list[int] = []
        self._before: dict[str, Tensor] = {}
        self._best: dict[str, Tensor] = {}
        self._stopwatch = stopwatch or Stopwatch()
        if interrupted is not None:
            self._restore(interrupted)

    @property
    def step(self) -> int:
        """Outer steps done of the present epoch."""
        return len(self._present)

    @property
    def rate(self) -> float:
        """Factor on the learning rates, after numbers that were not finite."""
        return self.synthetic.rate

    @property
    def best_accuracy(self) -> float:
        """Best of all probes but the one of the start: nothing has been matched there."""
        return max((probe.accuracy for probe in self.probes if probe.epoch), default=float("nan"))

    @property
    def history(self) -> dict[str, list[float]]:
        """Mean loss of each epoch, every probe with its epoch, and the epochs that were tried again."""
        return {
            "loss": list(self._losses),
            "probe": [probe.accuracy for probe in self.probes],
            "probe_epoch": [float(probe.epoch) for probe in self.probes],
            "retried_epoch": [float(epoch) for epoch in self._retried],
        }

    @property
    def seconds(self) -> tuple[float, float]:
        """Wall and CPU seconds so far, those before an interruption included."""
        return self._stopwatch.spent()

    def stop(self, reason: str) -> None:
        """End the run after the present epoch; taken up again from a checkpoint, it would go on."""
        self.reason = reason

    def epochs_left(self) -> Iterator[int]:
        """Epochs to do, counted from 0; one that is tried again comes again.

        Once there are no more, because all are done or something stopped the run, :attr:`synthetic` is put into the
        state to keep.
        """
        self._tell("on_start")
        if self._probe_start and not self.probes:  # a run that is taken up again may have had this one
            self._take_probe()
        while self.epoch < self.epochs and not self.reason:
            self._before = self.synthetic.snapshot()
            yield self.epoch
        self.reason = self.reason or "all epochs are done"
        self._tell("on_stop")
        if self._probe is not None and self.epoch > max((probe.epoch for probe in self.probes), default=0):
            # A callback ended it between two probes. What was written down by now does not know of this one, so a run
            # that is taken up again equals one that was never stopped.
            self._look(self._probe)
        if self._best:
            self.synthetic.load_learned(self._best)

    def stepped(self, loss: float) -> None:
        """An outer step is done."""
        self._present.append(loss)
        self.loss = loss
        self._tell("on_step")

    def finish_epoch(self) -> None:
        """The present epoch is done: probe the graph if that is due."""
        self.epoch += 1
        self._losses.append(sum(self._present) / len(self._present))
        self._take_probe()
        self._tell("on_epoch")
        self._present.clear()

    def retry(self) -> None:
        """Go back to where the present epoch began, at half the rates; refused after :data:`MOST_RETRIES` times."""
        if self._retried.count(self.epoch + 1) == MOST_RETRIES:
            raise DivergedError(
                f"condensing diverged in epoch {self.epoch + 1}, even at {self.rate:.2g} times the learning rates: "
                "give a smaller lr_features, lr_structure or lr_model"
            )
        self.synthetic.restore(self._before)
        self.synthetic.slow_down(0.5)
        self._present.clear()
        self._retried.append(self.epoch + 1)
        self._tell("on_retry")

    def snapshot(self) -> Snapshot:
        """The whole state between two epochs."""
        tensors = self.synthetic.snapshot() | {f"best.{key}": tensor for key, tensor in self._best.items()}
        state = {
            "epoch": self.epoch,
            "losses": list(self._losses),
            "probes": [[probe.epoch, probe.accuracy] for probe in self.probes],
            "retried": list(self._retried),
            "rate": self.rate,
            "start": self.start,
            "seconds": list(self.seconds),
        }
        return Snapshot(tensors, state)

    def _restore(self, kept: Snapshot) -> None:
        tensors, state = kept
        try:
            self.synthetic.restore(tensors)
            self.synthetic.slow_down(state["rate"] / self.rate)
            self.epoch = state["epoch"]
            self._losses = list(state["losses"])
            self.probes = [Probed(epoch, accuracy) for epoch, accuracy in state["probes"]]
            self._retried = list(state["retried"])
            self._stopwatch.earlier = (state["seconds"][0], state["seconds"][1])
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise GcondError("the checkpoint is damaged: remove it and start anew") from None
        self._best = {key[5:]: tensor.clone() for key, tensor in tensors.items() if key.startswith("best.")}
        self._lose_patience()

    def _take_probe(self) -> None:
        if self._probe is None or (self.epoch % self._probe_every and self.epoch < self.epochs):
            return
        self._look(self._probe)
        self._tell("on_probe")
        self._lose_patience()

    def _look(self, probe: Callable[[], float]) -> None:
        best = self.best_accuracy
        found = Probed(self.epoch, probe())
        self.probes.append(found)
        if self.epoch and not found.accuracy < best:  # the first after an epoch has nothing to compare with
            self._best = self.synthetic.learned()

    def _lose_patience(self) -> None:
        accuracies = [probe.accuracy for probe in self.probes if probe.epoch]
        if not accuracies or not self._patience:
            return
        if len(accuracies) - 1 - accuracies.index(max(accuracies)) >= self._patience:
            self.stop(f"the validation probe has not improved for {self._patience} probes")

    def _tell(self, what: str) -> None:
        for callback in self._callbacks:
            getattr(callback, what)(self)
