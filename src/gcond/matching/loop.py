"""The loop around any matching method: epochs, probes, guards, and what callbacks see of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor

from gcond.callbacks.callback import Callback
from gcond.errors import DivergedError, GcondError
from gcond.matching.probe import Probed
from gcond.matching.synthetic import NotFiniteError, Synthetic
from gcond.runtime.stopwatch import Stopwatch

# How often an epoch is tried again at half the rates before the run is given up.
MOST_RETRIES = 8


class Run:
    """A condensation under way.

    ``match(epoch)`` does one epoch on ``synthetic`` and gives the loss of each outer step as it goes; ``probe()``
    is the validation accuracy of the graph as it would be shipped, taken before the first epoch, every
    ``probe_every`` epochs and after the last one, whatever ended it. The state with the best probe is what is kept, of
    equal ones the later; where nothing is probed, the last state is. The probe of the start is for the record: it is
    neither kept nor counted by ``patience``, and a ``trial`` goes without.
    """

    def __init__(
        self,
        synthetic: Synthetic,
        match: Callable[[int], Iterable[float]],
        *,
        epochs: int,
        steps: int,
        identity: str,
        start: str = "",
        trial: bool = False,
        tried: bool = False,
        stopwatch: Stopwatch | None = None,
        probe: Callable[[], float] | None = None,
        probe_every: int = 1,
        patience: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.synthetic = synthetic
        self.epochs = epochs
        """At most so many."""
        self.steps = steps
        """Outer steps an epoch."""
        self.identity = identity
        """What the state belongs to: method, settings, seed, budget, source, version."""
        self.start = start
        """Where X' starts, by name."""
        self.trial = trial
        """Whether it is one of the short runs by which a method chooses its start."""
        self.tried = tried
        """Whether :attr:`start` was chosen by trials, which are work that an interruption should not undo."""
        self.epoch = 0
        """Epochs done."""
        self.step = 0
        """Outer steps done of the present epoch."""
        self.loss = float("nan")
        """Of the last outer step."""
        self.probes: list[Probed] = []
        self.reason = ""
        """Why it ended, when it has."""
        self._match = match
        self._probe = probe
        self._probe_every = probe_every
        self._patience = patience
        self._callbacks = callbacks
        self._losses: list[float] = []
        self._retried: list[int] = []
        self._best: dict[str, Tensor] = {}
        self._stopwatch = stopwatch or Stopwatch()

    @property
    def rate(self) -> float:
        """What the learning rates were multiplied by, after numbers that were not finite."""
        return self.synthetic.rate

    @property
    def best_accuracy(self) -> float:
        """Of all probes but the one of the start: nothing has been matched there."""
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

    def go(self) -> None:
        """Run to the end; afterwards :attr:`synthetic` is in the state to keep."""
        self._tell("on_start")
        if not self.probes and not self.trial:  # a run that is taken up again has had this one; a trial has no record
            self._take_probe()
        while self.epoch < self.epochs and not self.reason:
            self._one_epoch()
        self.reason = self.reason or "all epochs are done"
        self._tell("on_stop")
        if self._probe is not None and self.epoch > max((probe.epoch for probe in self.probes), default=0):
            # A callback ended it between two probes. What was written down by now does not know of this one, so a run
            # that is taken up again equals one that was never stopped.
            self._look()
        if self._best:
            self.synthetic.load_learned(self._best)

    def snapshot(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The whole state between two epochs: tensors, and plain data."""
        tensors = self.synthetic.snapshot() | {f"best.{key}": tensor for key, tensor in self._best.items()}
        wall, cpu = self.seconds
        return tensors, {
            "epoch": self.epoch,
            "losses": list(self._losses),
            "probes": [[probe.epoch, probe.accuracy] for probe in self.probes],
            "retried": list(self._retried),
            "rate": self.rate,
            "start": self.start,
            "seconds": [wall, cpu],
        }

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Take up what :meth:`snapshot` gave."""
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

    def _one_epoch(self) -> None:
        before = self.synthetic.snapshot()
        losses = []
        try:
            for loss in self._match(self.epoch):
                losses.append(loss)
                self.step, self.loss = len(losses), loss
                self._tell("on_step")
        except NotFiniteError:
            self._retry(before)
            return
        self.epoch += 1
        self._losses.append(sum(losses) / len(losses))
        self._take_probe()
        self._tell("on_epoch")
        self.step = 0

    def _retry(self, before: Mapping[str, Tensor]) -> None:
        if self._retried.count(self.epoch + 1) == MOST_RETRIES:
            raise DivergedError(
                f"condensing diverged in epoch {self.epoch + 1}, even at {self.rate:.2g} times the learning rates: "
                "give a smaller lr_features, lr_structure or lr_model"
            )
        self.synthetic.restore(before)
        self.synthetic.slow_down(0.5)
        self.step = 0
        self._retried.append(self.epoch + 1)
        self._tell("on_retry")

    def _take_probe(self) -> None:
        if self._probe is None or (self.epoch % self._probe_every and self.epoch < self.epochs):
            return
        self._look()
        self._tell("on_probe")
        self._lose_patience()

    def _look(self) -> None:
        assert self._probe is not None
        best = self.best_accuracy
        found = Probed(self.epoch, self._probe())
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
