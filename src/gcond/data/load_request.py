"""The arguments of ``gcond.load`` beside the source itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gcond.graph import Setting

if TYPE_CHECKING:
    from gcond.data.splits import Split
    from gcond.graph import SourceGraph


@dataclass(frozen=True)
class Request:
    """The way a graph is to be read; every reader gets it unchanged."""

    name: str
    """The name that the graph will have."""
    setting: Setting | None = None
    """``None`` takes the source's own."""
    directed: bool = False
    seed: int = 0
    """Of the split where the source has none, and of the graph where it is made up."""

    def build(
        self, split: Split, *, default: Setting = "transductive", notes: tuple[str, ...] = (), **graph: Any
    ) -> SourceGraph:
        """The graph of what a file holds, handed over, with its split; ``default`` is the source's own setting."""
        from gcond.graph import SourceGraph

        return SourceGraph.build(
            name=self.name,
            setting=self.setting or default,
            directed=self.directed,
            copy=False,
            train=split.train,
            val=split.val,
            test=split.test,
            notes=(split.note, *notes),
            **graph,
        )
