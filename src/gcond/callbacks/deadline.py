"""A deadline: learning ends in time, with the best so far."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gcond.matching.callback import Callback
from gcond.runtime.stopwatch import parse_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from gcond.matching.run import Run

OUT_OF_TIME = "its time was up"
"""The reason of runs that a deadline ended."""
RESERVE = 0.03
"""Share of the time that is left for what comes after learning: putting the graph together and writing it."""
LEAST_RESERVE = 1.0
"""Seconds of that at least, but never more than half of the time: saying what was done, and ending the process."""
CAUTION = 1.2
"""Factor on how long the next step, epoch or probe is expected to take: as long as the longest of its kind so far."""
TRIAL_SHARE = 0.25
"""Share of the time that is left which the trial of one start may take: there are two, and what is chosen has to
do their epochs again."""

MOST_AFTER = 0.5
"""Share of the time that is left which work after learning may take from it. Where it takes more it is left out: a cut
that was chosen before learning does."""


@dataclass
class _Pace:
    """The longest step, epoch and probe so far, in seconds; an epoch's own probe is not counted in it."""

    step: float = 0.0
    epoch: float = 0.0
    probe: float = 0.0


class Deadline(Callback):
    """An end of learning ``within`` so many seconds (``"60s"``, ``"2min"``, ``"1h"``), counted from ``began``.

    ``began`` is a time of ``clock``, by default now. Before every epoch it asks whether that and a last probe would
    still end in time, and after every step whether the next one would; an epoch that would not is taken back. So the
    run has done whole epochs, and the number of them as its setting ``epochs``, with its start as ``init``, leads to
    the same graph again. Probes that come after the run, and other work that was measured before it, get their time.
    """

    def __init__(
        self, within: str | float, *, began: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = parse_seconds(within)
        self._clock = clock
        self._began = clock() if began is None else began
        reserve = min(max(RESERVE * self.seconds, LEAST_RESERVE), self.seconds / 2)
        self._end = self._last_end = self._began + self.seconds - reserve
        self._pace = _Pace()
        self._last = self._epoch_began = self._began

    def for_trial(self, start: str) -> Deadline:
        """The same for a part of the time: whoever ends the trials late has none left for what they have chosen."""
        now = self._clock()
        trial = Deadline(self.seconds, began=self._began, clock=self._clock)
        trial._pace = self._pace
        trial._end = now + TRIAL_SHARE * max(0.0, self._end - now)
        return trial

    def comes_after(self, seconds: float) -> None:
        """Learning ends so much earlier; not where this were more than half of what is left: then it has all of it."""
        now, need = self._clock(), CAUTION * seconds
        if need <= MOST_AFTER * (self._end - now):
            self._end -= need

    def has_time(self, seconds: float) -> bool:
        return self._clock() + seconds <= self._last_end

    def on_start(self, run: Run) -> None:
        self._last = self._epoch_began = self._clock()
        if not self._fits(run, self._pace.probe):
            run.stop(OUT_OF_TIME, look=False)

    def on_step(self, run: Run) -> None:
        self._pace.step = max(self._pace.step, self._lap())
        if run.step == run.steps:
            self._pace.epoch = max(self._pace.epoch, self._last - self._epoch_began)
        elif not self._fits(run, self._pace.step + self._last_probe(run)):
            run.stop(OUT_OF_TIME, at_once=True, look=self._fits(run, self._last_probe(run)))

    def on_retry(self, run: Run) -> None:
        self._lap()

    def on_probe(self, run: Run) -> None:
        self._pace.probe = max(self._pace.probe, self._lap())
        if run.epoch == 0:  # of the start
            self._before_an_epoch(run)

    def on_epoch(self, run: Run) -> None:
        self._lap()
        self._before_an_epoch(run)

    def _before_an_epoch(self, run: Run) -> None:
        self._epoch_began = self._last
        goes_on = run.epoch < run.epochs and not run.reason
        if goes_on and not self._fits(run, self._pace.epoch + self._pace.probe):
            run.stop(OUT_OF_TIME, look=self._fits(run, self._last_probe(run)))

    def overrun(self, what: str, *, learned: bool = True, compact: bool = False) -> str | None:
        """A sentence on how late ``what`` is, and what of it could not be ended half-way; ``None`` in time.

        ``learned`` says whether it has steps between which it can end, ``compact`` whether a cut was chosen.
        """
        spent = self._clock() - self._began
        if spent <= self.seconds:
            return None
        parts = ["loading", *(["the start", "one probe"] if learned else ["a method that does not learn"])]
        parts += ["one training for the choice of a cut"] if compact else []
        named = f"{', '.join(parts[:-1])} and {parts[-1]}"
        return f"{what} took {spent:.3g} s and not {self.seconds:.3g} s: {named} cannot be ended half-way"

    def _last_probe(self, run: Run) -> float:
        """How long the probe would take that a run that ends now still has to do."""
        probed = max((probe.epoch for probe in run.probes), default=0)
        return self._pace.probe if run.epoch > probed else 0.0

    def _fits(self, run: Run, more: float) -> bool:
        """Whether ``more`` seconds fit before the end, and the probes that come after ``run``."""
        return self._clock() + CAUTION * (more + run.probes_after * self._pace.probe) <= self._end

    def _lap(self) -> float:
        before, self._last = self._last, self._clock()
        return self._last - before
