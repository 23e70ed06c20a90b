"""A condensation under way: how far it is, what its probes found, and who is told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field

from torch import Tensor

from gcond.condensed.task import Snapshot
from gcond.config.metric import Metric
from gcond.errors import DivergedError, GcondError
from gcond.matching.callback import Callback
from gcond.matching.probe import Probed
from gcond.matching.synthetic import Synthetic
from gcond.runtime.stopwatch import Stopwatch

# How often an epoch is tried again at half the rates before the run is given up.
MOST_RETRIES = 8


class TakenBackError(Exception):
    """The present epoch is not to be finished: :meth:`Run.take_back` leaves the state before it."""


@dataclass(eq=False, repr=False)
class Run:
    """The state of a condensation of at most ``epochs`` epochs of ``steps`` outer steps, and its bookkeeping.

    Whoever learns goes over :meth:`epochs_left`, calls :meth:`stepped` after every outer step, and ends an epoch by
    :meth:`finish_epoch`; after numbers that were not finite by :meth:`retry`, and after :class:`TakenBackError`, which
    :meth:`stepped` may raise, by :meth:`take_back`.

    ``probe()`` is the validation accuracy (or ``metric``) of the graph as it would be shipped, taken before the first
    epoch (unless ``probe_start`` is off), every ``probe_every`` epochs and after the last one, whatever ended it. The
    state with the best probe is what is kept, of equal ones the later; where nothing is probed, the last state is. The
    start competes like any other state, and has to be beaten, ``clearly`` where it is a good one: the best of many
    probes is in part the luckiest of them.
    """

    synthetic: Synthetic
    _: KW_ONLY
    epochs: int
    """Most epochs that it may take."""
    steps: int
    """Outer steps per epoch."""
    identity: str = ""
    """Fingerprint of what the state belongs to: method, settings, seed, budget, source, version."""
    start: str = ""
    """Where X' starts, by name."""
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    interrupted: InitVar[Snapshot | None] = None
    probe: Callable[[], float] | None = None
    probe_start: bool = True
    clearly: Callable[[float], float] = lambda reached: reached
    """What a probe has to be above where the start ``reached`` so much; by default, as much."""
    probe_every: int = 1
    patience: int = 0
    metric: Metric = "accuracy"
    """What ``probe`` measures."""
    probes_after: int = 0
    """Probes that come after it, while the graph is put together."""
    callbacks: Sequence[Callback] = ()
    epoch: int = field(default=0, init=False)
    """Epochs done."""
    loss: float = field(default=math.nan, init=False)
    """Loss of the last outer step."""
    kept: int | None = field(default=None, init=False)
    """The epoch whose state is the best so far by the probes; ``None`` where nothing was probed."""
    reason: str = field(default="", init=False)
    """Why it ended, when it has."""
    history: dict[str, list[float]] = field(init=False)
    """Mean loss of each epoch, every probe with its epoch, and the epochs that were tried again."""
    _cut: bool = field(default=False, init=False)
    _looks: bool = field(default=True, init=False)
    _present: list[float] = field(default_factory=list, init=False)
    _before: dict[str, Tensor] = field(default_factory=dict, init=False)
    _best: dict[str, Tensor] = field(default_factory=dict, init=False)

    def __post_init__(self, interrupted: Snapshot | None) -> None:
        self.history = {key: [] for key in ("loss", "probe", "probe_epoch", "retried_epoch")}
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
        """Best of all probes."""
        return max((probe.accuracy for probe in self.probes), default=math.nan)

    @property
    def probes(self) -> list[Probed]:
        """All probes so far."""
        return [
            Probed(int(at), found) for at, found in zip(self.history["probe_epoch"], self.history["probe"], strict=True)
        ]

    @property
    def seconds(self) -> tuple[float, float]:
        """Wall and CPU seconds so far, those before an interruption included."""
        return self.stopwatch.spent()

    def stop(self, reason: str, *, at_once: bool = False, look: bool = True) -> None:
        """End the run after the present epoch; taken up again from a checkpoint, it would go on.

        With ``at_once`` the present epoch is taken back instead of finished, when its present step is done. Without
        ``look`` there is no last probe: what is kept is the best that was probed or, where nothing was, the last state.
        """
        self.reason = reason
        self._looks, self._cut = self._looks and look, self._cut or at_once

    def epochs_left(self) -> Iterator[int]:
        """Epochs to do, counted from 0; one that is tried again comes again.

        Once there are no more, because all are done or something stopped the run, :attr:`synthetic` is put into the
        state to keep.
        """
        self._tell("on_start")
        if self.probe_start and not self.probes and self._looks:  # a run that is taken up again may have had this one
            self._take_probe()
        while self.epoch < self.epochs and not self.reason:
            self._before = self.synthetic.snapshot()
            yield self.epoch
        self.reason = self.reason or "all epochs are done"
        self._tell("on_stop")
        probed = max((probe.epoch for probe in self.probes), default=0)
        if self.probe is not None and self._looks and self.epoch > probed:
            # A callback ended it between two probes. What was written down by now does not know of this one, so a run
            # that is taken up again equals one that was never stopped.
            self._look(self.probe)
        if self._best:
            self.synthetic.load_learned(self._best)

    def stepped(self, loss: float) -> None:
        """An outer step is done."""
        self._present.append(loss)
        self.loss = loss
        self._tell("on_step")
        if self._cut:
            raise TakenBackError

    def take_back(self) -> None:
        """Leave the present epoch undone, as if it had not begun."""
        self.synthetic.restore(self._before)
        self._present.clear()

    def finish_epoch(self) -> None:
        """The present epoch is done: probe the graph if that is due."""
        self.epoch += 1
        self.history["loss"].append(sum(self._present) / len(self._present))
        self._take_probe()
        self._tell("on_epoch")
        self._present.clear()

    def retry(self) -> None:
        """Go back to where the present epoch began, at half the rates; refused after :data:`MOST_RETRIES` times."""
        if self.history["retried_epoch"].count(self.epoch + 1) == MOST_RETRIES:
            raise DivergedError(
                f"condensing diverged in epoch {self.epoch + 1}, even at {self.rate:.2g} times the learning rates: "
                "give a smaller lr_features, lr_structure or lr_model"
            )
        self.synthetic.restore(self._before)
        self.synthetic.slow_down(0.5)
        self._present.clear()
        self.history["retried_epoch"].append(float(self.epoch + 1))
        self._tell("on_retry")

    def snapshot(self) -> Snapshot:
        """The whole state between two epochs."""
        tensors = self.synthetic.snapshot() | {f"best.{key}": tensor for key, tensor in self._best.items()}
        state = {"epoch": self.epoch, "kept": self.kept, "rate": self.rate, "start": self.start}
        lists = {"seconds": list(self.seconds)} | {key: list(values) for key, values in self.history.items()}
        return Snapshot(tensors, state | lists)

    def _restore(self, kept: Snapshot) -> None:
        tensors, state = kept
        try:
            self.synthetic.restore(tensors)
            self.synthetic.slow_down(state["rate"] / self.rate)
            self.epoch, self.kept = state["epoch"], state["kept"]
            self.history = {key: list(state[key]) for key in self.history}
            self.stopwatch.earlier = (state["seconds"][0], state["seconds"][1])
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise GcondError("the checkpoint is damaged: remove it and start anew") from None
        self._best = {key[5:]: tensor.clone() for key, tensor in tensors.items() if key.startswith("best.")}
        self._lose_patience()

    def _take_probe(self) -> None:
        if self.probe is None or (self.epoch % self.probe_every and self.epoch < self.epochs):
            return
        self._look(self.probe)
        self._tell("on_probe")
        self._lose_patience()

    def _look(self, probe: Callable[[], float]) -> None:
        best, at_start = self.best_accuracy, [each.accuracy for each in self.probes if not each.epoch]
        found = probe()
        self.history["probe"].append(found)
        self.history["probe_epoch"].append(float(self.epoch))
        if not found < best and not (
            at_start and found <= self.clearly(at_start[0])
        ):  # the first has nothing to compare with
            self._best, self.kept = self.synthetic.learned(), self.epoch

    def _lose_patience(self) -> None:
        accuracies = [probe.accuracy for probe in self.probes]
        if not accuracies or not self.patience:
            return
        if len(accuracies) - 1 - accuracies.index(max(accuracies)) >= self.patience:
            self.stop(f"the validation probe has not improved for {self.patience} probes")

    def _tell(self, what: str) -> None:
        for callback in self.callbacks:
            getattr(callback, what)(self)
