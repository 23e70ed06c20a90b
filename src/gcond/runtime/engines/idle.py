"""Nobody: for looking at what is done so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gcond.runtime.engines.engine import Engine, Job, Outcome, Result, Shared


class IdleEngine(Engine):
    """Does no job, so that a sweep finds in its folder what there is and nothing else."""

    idle = True

    def map(
        self, function: Callable[[Shared, Job], Result], shared: Shared, jobs: Sequence[Job]
    ) -> Iterator[Outcome[Job, Result]]:
        return iter(())

    def close(self) -> None:
        """There is nothing to end."""
