"""Watch a condensation from inside, and end it when you have seen enough.

python examples/callback.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gcond
from gcond.callbacks import Callback

if TYPE_CHECKING:
    from gcond.matching.run import Run


class StopWhenLow(Callback):
    """Keeps the mean loss of every epoch, and stops once it is below a share of the first one."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.losses: list[float] = []

    def on_epoch(self, run: Run) -> None:
        self.losses.append(run.history["loss"][-1])
        if self.losses[-1] < self.share * self.losses[0]:
            run.stop(f"the loss fell below {self.share:.0%} of the first epoch's")

    def on_stop(self, run: Run) -> None:
        print(f"stopped after epoch {run.epoch} of {run.epochs}: {run.reason}")


def main() -> None:
    graph = gcond.load("synthetic:small,nodes=900")
    watcher = StopWhenLow(share=0.9)
    # Watching changes nothing: without the callback, the same seed takes the same steps.
    small = gcond.condense(graph, nodes=30, epochs=10, init="sample", callbacks=[watcher])
    print("loss by epoch:", ", ".join(f"{loss:.3g}" for loss in watcher.losses))
    print(small)


if __name__ == "__main__":
    main()
