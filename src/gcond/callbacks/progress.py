"""Progress for people: loss, probe accuracy, and how far along."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gcond.matching.callback import Callback

if TYPE_CHECKING:
    from gcond.matching.run import Run
    from gcond.runtime.progress_tick import Tick


class Progress(Callback):
    """Progress: ``tick(name, done, total, detail)`` at every outer step, ``note(sentence)`` of what one should know.

    The total is of all epochs: a run that stops early is quicker than it says. The detail is the loss and, of the
    validation probes, the last and the best in per cent.
    """

    def __init__(self, tick: Tick, note: Callable[[str], None] | None = None, name: str = "condensing") -> None:
        self._tick = tick
        self._note = note or (lambda sentence: None)
        self._name = name

    def for_trial(self, start: str) -> Progress:
        """Under a name of its own, by which it counts from its own beginning."""
        return Progress(self._tick, self._note, f"{self._name}, trying {start}")

    def on_start(self, run: Run) -> None:
        if run.epoch:
            self._note(f"going on after epoch {run.epoch} of at most {run.epochs}")

    def on_step(self, run: Run) -> None:
        self._tick(self._name, run.epoch * run.steps + run.step, run.epochs * run.steps, _figures(run))

    def on_retry(self, run: Run) -> None:
        self._note(
            f"epoch {run.epoch + 1}: the loss or a gradient was not finite; "
            f"trying again from the last good state at {run.rate:g} times the rates"
        )

    def on_stop(self, run: Run) -> None:
        if run.epoch < run.epochs:
            self._note(f"stopped after epoch {run.epoch} of {run.epochs}: {run.reason}")


def _figures(run: Run) -> str:
    figures = f"loss {run.loss:.3g}"
    if run.probes:
        figures += f" val {100 * run.probes[-1].accuracy:.1f}"
    if len(run.probes) > 1:  # the first has nothing to be better than
        figures += f" (best {100 * run.best_accuracy:.1f})"
    return figures
