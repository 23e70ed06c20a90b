"""The engine that does nothing, for looking at what is done so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gcond.runtime.engines.engine import Engine, Hear, Outcomes, Work


class IdleEngine(Engine):
    """An engine that does no job: what uses it finds in its folder what there is, and nothing else."""

    idle = True

    def work_off(self, function: Work[Any, Any, Any], shared: Any, jobs: Iterator[Any], hear: Hear[Any]) -> Outcomes:
        return iter(())

    def close(self) -> None:
        """There is nothing to end."""
