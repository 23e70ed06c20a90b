"""A condensed graph to be made, and how a worker makes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gcond.callbacks import Checkpoint, Progress
from gcond.callbacks.checkpoint import checkpoint_of
from gcond.condensed import CondensedGraph
from gcond.config import settings
from gcond.graph import Budget, SourceGraph
from gcond.matching.callback import Callback
from gcond.methods import Method
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Tell
from gcond.runtime.memory import reset_peak_rss


@dataclass(frozen=True)
class Condensation:
    """A condensed graph to be made: by what, how large, from which seed."""

    method: Method
    budget: Budget
    seed: int

    def __str__(self) -> str:
        return f"{settings.spelled(self.method.name, self.method)}, {self.budget.nodes} nodes, seed {self.seed}"

    def file(self, source: SourceGraph) -> str:
        """A name that says what it is, and that no other graph of the source has."""
        key = self.method.identify(source, self.budget, self.seed)[:12]
        return f"{self.method.name}-{self.budget.nodes}-{self.seed}-{key}.safetensors"


@dataclass(frozen=True, eq=False)
class Making:
    """The things that all condensations of one source share."""

    source: SourceGraph
    device: str
    checkpoints: Path | None
    """Where learning is written down on the way; ``None`` where workers do not see the folder."""
    threads: int | None = None
    """CPU threads of each; ``None`` is as many as its work deserves."""


def condense(shared: Making, job: Condensation, tell: Tell) -> CondensedGraph:
    """Do one condensation, from its checkpoint on where there is one."""
    reset_peak_rss()
    source = shared.source
    callbacks: list[Callback] = []
    if job.method.kind == "learned":
        if shared.checkpoints is not None:
            place = checkpoint_of(shared.checkpoints / job.file(source))
            callbacks.append(Checkpoint(place, resume=True, forgiving=True))
        callbacks.append(Progress(lambda what, done, total, detail="": tell(done / total)))
    device = choose_device(shared.device)
    return job.method.condense(source, job.budget, job.seed, device, callbacks, threads=shared.threads)
