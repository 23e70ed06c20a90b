"""What can listen to a condensation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcond.matching.loop import Run


class Callback:
    """Told of everything that happens; each method does nothing unless a subclass says otherwise.

    Progress, logging and checkpoints are callbacks themselves, so whatever they can do, yours can: read the
    run's numbers, end it with :meth:`~gcond.matching.loop.Run.stop`, or keep its state. Looking does not change
    a run: with or without callbacks, the same seed gives the same graph.
    """

    follows_trials = False
    """Whether it is also told of the short runs by which a method chooses its start."""

    def recall_start(self, identity: str) -> str | None:
        """The start that an interrupted run of this ``identity`` had chosen, if it is about to be taken up.

        It is asked before any trial, so what cannot be used should be refused here already.
        """
        return None

    def on_start(self, run: Run) -> None:
        """Before the first epoch; a run that is taken up again is restored here."""

    def on_step(self, run: Run) -> None:
        """After every outer step: ``run.step`` and ``run.loss`` are new."""

    def on_retry(self, run: Run) -> None:
        """A loss or gradient was not finite: the epoch begins anew from the state before it, at half the rates."""

    def on_probe(self, run: Run) -> None:
        """After a validation probe: ``run.probes[-1]`` is new. The first comes before the first epoch."""

    def on_epoch(self, run: Run) -> None:
        """After every epoch, its probe included: here, and only here, the state can be written down."""

    def on_stop(self, run: Run) -> None:
        """After the last epoch, whatever ended it: ``run.reason`` says."""
