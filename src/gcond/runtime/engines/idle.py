"""The engine that does nothing, for looking at what is done so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gcond.runtime.engines.engine import Engine, Job, Outcome, Result, Shared, Work


class IdleEngine(Engine):
    """An engine that does no job: what uses it finds in its folder what there is, and nothing else."""

    idle = True

    def map(
        self,
        function: Work[Shared, Job, Result],
        shared: Shared,
        jobs: Iterable[Job],
        on_progress: Callable[[Job, float], None] | None = None,
    ) -> Iterator[Outcome[Job, Result]]:
        return iter(())

    def close(self) -> None:
        """There is nothing to end."""
