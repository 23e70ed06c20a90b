"""The progress of a search for hyper-parameters, put together from that of its trainings."""

from __future__ import annotations

from gcond.runtime.progress_tick import Tick


class SearchProgress:
    """What the runner tells of a batch's rung, as progress of the search."""

    def __init__(self, tick: Tick, trials: int) -> None:
        self._tick, self._trials = tick, trials
        self._what, self._detail = "searching", ""
        self._start = self._size = self._rung = 0
        self._rungs = 1

    def begin(self, done: int, size: int, rungs: int, best: float | None) -> None:
        """A batch of ``size`` trials after ``done`` others."""
        self._start, self._size, self._rungs = done, size, rungs
        self._detail = f"best {100 * best:.1f} %" if best is not None else ""
        self.climb(0)

    def climb(self, rung: int) -> None:
        self._rung = rung

    def confirm(self) -> None:
        """The search is over: the best are trained anew."""
        self._what = "confirming"

    def whole_graph(self) -> None:
        """And on the whole graph."""
        self._what = "on the whole graph"

    def __call__(self, what: str, done: float, total: float, detail: str = "") -> None:
        if self._what != "searching":
            self._tick(self._what, done, total, detail)
            return
        within = (self._rung + (done / total if total else 1.0)) / self._rungs
        self._tick(self._what, self._start + self._size * within, self._trials, self._detail)
