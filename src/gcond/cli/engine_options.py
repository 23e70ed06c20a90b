"""The options of commands whose work is many jobs: which engine does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from gcond.cli.common_options import flag, whole_number

if TYPE_CHECKING:
    from gcond.runtime.engines import Engine

_GROUP = Group("Options of commands with many jobs", sort_key=8)


@Parameter(name="*")
@dataclass(frozen=True)
class EngineOptions:
    """The engine that works the jobs off."""

    engine: Annotated[
        Literal["local", "ray"], Parameter(help="Processes of this machine, or Ray (extra `ray`).", group=_GROUP)
    ] = "local"
    workers: Annotated[
        int | None,
        whole_number(
            "How many jobs run at a time; they share --threads among them, but of a cluster each has so many.",
            group=_GROUP,
        ),
    ] = None
    address: Annotated[
        str | None, Parameter(help="A running Ray cluster; without one, Ray starts on this machine.", group=_GROUP)
    ] = None

    so_far: Annotated[bool, flag("Do nothing new: show what is in the folder already.", group=_GROUP)] = False

    def open(self, threads: int | None) -> Engine:
        """The engine, to be used in a ``with`` block; refuses what cannot be before any work."""
        from gcond.runtime.engines import open_engine

        if self.so_far:
            from gcond.runtime.engines.idle import IdleEngine

            return IdleEngine()

        return open_engine(self.engine, workers=self.workers, threads=threads, address=self.address)


THIS_MACHINE = EngineOptions()
