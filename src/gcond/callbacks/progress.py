"""Progress for people: loss, probe accuracy, and how far along."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gcond.callbacks.base import Callback

if TYPE_CHECKING:
    from gcond.matching.loop import Run


class Progress(Callback):
    """Tells ``tick(what, done, total)`` of every outer step, and ``note(sentence)`` of what one should know."""

    def __init__(
        self, tick: Callable[[str, float, float], None], note: Callable[[str], None] | None = None, name: str = ""
    ) -> None:
        self._tick = tick
        self._note = note or (lambda sentence: None)
        self._name = name

    def on_start(self, run: Run) -> None:
        if run.epoch:
            self._note(f"going on after epoch {run.epoch} of at most {run.epochs}")

    def on_step(self, run: Run) -> None:
        total = run.epochs * run.steps
        self._tick(self._describe(run), run.epoch * run.steps + run.step, total)

    def on_retry(self, run: Run) -> None:
        self._note(
            f"epoch {run.epoch + 1}: the loss or a gradient was not finite; "
            f"trying again from the last good state at {run.rate:g} times the rates"
        )

    def on_stop(self, run: Run) -> None:
        if run.reason and run.epoch < run.epochs:
            self._note(f"stopped after epoch {run.epoch} of {run.epochs}: {run.reason}")

    def _describe(self, run: Run) -> str:
        words = [self._name] if self._name else []
        words.append(f"loss {run.loss:.3f}")
        if run.probes:
            words.append(f"probe {100 * run.probes[-1].accuracy:.1f} % (best {100 * run.best_accuracy:.1f} %)")
        return "  ".join(words)
