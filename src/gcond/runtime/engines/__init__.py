"""Engines, which work off a list of jobs: processes of this machine, or a Ray cluster."""

from __future__ import annotations

from typing import Literal, get_args

from gcond.config.registry import suggest
from gcond.config.settings import whole_number
from gcond.errors import GcondError
from gcond.runtime.engines.engine import Engine, Outcome, Tell, Work
from gcond.runtime.engines.local import LocalEngine

EngineName = Literal["local", "ray"]

__all__ = ["Engine", "EngineName", "LocalEngine", "Outcome", "Tell", "Work", "open_engine"]


def open_engine(
    name: EngineName = "local", *, workers: int | None = None, threads: int | None = None, address: str | None = None
) -> Engine:
    """The engine called ``name``, to be used in a ``with`` block.

    ``workers`` jobs run at a time (as many as there are cores if not given), sharing ``threads`` CPU threads. Without
    a number they share all cores, and each takes as much of its share as its work deserves. ``address`` is that of
    a running Ray cluster; without one, Ray starts on this machine and ends with the block.
    """
    if name not in get_args(EngineName):
        raise GcondError(f"unknown engine '{name}'{suggest(name, get_args(EngineName))}: choose local or ray")
    for what, count in {"workers": workers, "threads": threads}.items():
        if count is not None:
            whole_number(count, what, least=1)
    if name == "ray":
        from gcond.runtime.engines.ray import RayEngine

        return RayEngine(workers, threads, address)
    if address is not None:
        raise GcondError(f"address='{address}' is for Ray: add engine='ray', or leave it out")
    return LocalEngine(workers, threads)
