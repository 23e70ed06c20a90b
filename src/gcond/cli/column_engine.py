"""The options of commands that work on one graph: how much memory, and which engine multiplies by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from gcond.cli.common_options import Common, flag, whole_number

if TYPE_CHECKING:
    from gcond.cli.output import Voice
    from gcond.graph import SourceGraph

_GROUP = Group("Options for graphs past memory", sort_key=8)

MemoryOption = Annotated[
    str | None,
    Parameter(
        help="Memory that may be used in all, such as 2GB: a packed store that takes more stays on disk.", group=_GROUP
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class ColumnEngine:
    """The engine that does products with a graph on disk, in groups of columns."""

    engine: Annotated[
        Literal["local", "ray"],
        Parameter(help="Where a graph that stays on disk is multiplied: here, or on Ray (extra `ray`).", group=_GROUP),
    ] = "local"
    workers: Annotated[int | None, whole_number("Groups of columns at a time, on Ray.", group=_GROUP)] = None
    address: Annotated[
        str | None, Parameter(help="A running Ray cluster; without one, Ray starts on this machine.", group=_GROUP)
    ] = None

    send_store: Annotated[
        bool,
        flag(
            "Send the machines of the cluster what they need of the store, which they then need not find.", group=_GROUP
        ),
    ] = False

    def check(self) -> None:
        """Refuse options for Ray without it."""
        from gcond.errors import GcondError

        given = {
            "address": self.address is not None,
            "workers": self.workers is not None,
            "send-store": self.send_store,
        }
        if self.engine == "local" and any(given.values()):
            what = next(option for option, there in given.items() if there)
            raise GcondError(f"--{what} is for Ray: add --engine ray, or leave it out")

    @contextmanager
    def on(self, graph: SourceGraph, voice: Voice, common: Common) -> Iterator[SourceGraph]:
        """``graph``, with progress and on that engine where it is streamed from its store."""
        from gcond.errors import GcondError
        from gcond.graph.stored_graph import StoredGraph, on_engine, watched
        from gcond.runtime.engines import open_engine

        self.check()
        if not isinstance(graph, StoredGraph):
            if self.engine == "ray":
                raise GcondError(
                    f"'{graph.name}' fits into memory, where one process does its products quickest: --engine ray is "
                    "for a packed store that does not fit, so add --memory with less, or leave it out"
                )
            yield graph
            return
        with voice.progress("streaming") as tick:
            graph = watched(graph, tick)
            if self.engine == "local":
                yield graph
                return
            with open_engine("ray", workers=self.workers, threads=common.threads, address=self.address) as engine:
                yield on_engine(graph, engine, send_store=self.send_store)


THIS_PROCESS = ColumnEngine()
