"""The callback: a listener to a condensation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcond.condensed.task import Snapshot
    from gcond.matching.run import Run


class Callback:
    """A listener that is told of everything that happens; each method does nothing unless a subclass says otherwise.

    Progress, logging and checkpoints are callbacks themselves, so whatever they can do, yours can: read the
    run's numbers, end it with :meth:`~gcond.matching.run.Run.stop`, or keep its state. Looking does not change
    a run: with or without callbacks, the same seed gives the same graph.
    """

    def interrupted(self, identity: str) -> Snapshot | None:
        """The kept state of an interrupted run of this ``identity``, if it is to be taken up.

        Asked once, before any work, so what cannot be used should be refused here.
        """
        return None

    def for_trial(self, start: str) -> Callback | None:
        """A listener to the short run that tries ``start``, where a method tries several; ``None`` for none."""
        return None

    def comes_after(self, seconds: float) -> None:
        """Before the run: work of about so many seconds comes after it."""

    def has_time(self, seconds: float) -> bool:
        """Whether work of about so many seconds can be done, outside of the run, where it could be left out."""
        return True

    def on_start(self, run: Run) -> None:
        """Before the first epoch; a run that is taken up again is where it was."""

    def on_step(self, run: Run) -> None:
        """After every outer step: ``run.step`` and ``run.loss`` are new."""

    def on_retry(self, run: Run) -> None:
        """A loss or gradient was not finite: the epoch begins anew from the state before it, at half the rates."""

    def on_probe(self, run: Run) -> None:
        """After a validation probe: ``run.probes[-1]`` is new. The first comes before the first epoch."""

    def on_epoch(self, run: Run) -> None:
        """After every epoch, its probe included: here, and in ``on_start``, the state can be written down."""

    def on_stop(self, run: Run) -> None:
        """After the last epoch, whatever ended it: ``run.reason`` says."""
