"""The arguments of ``gcond.load`` beside the source itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gcond.graph import Setting


@dataclass(frozen=True)
class Request:
    """How a graph is to be read; every reader gets it unchanged."""

    name: str
    """What the graph will be called."""
    setting: Setting | None = None
    """``None`` takes the source's own."""
    directed: bool = False
    seed: int = 0
    """Of the split where the source has none, and of the graph where it is made up."""

    def options(self, default: Setting = "transductive") -> dict[str, Any]:
        """The arguments of ``SourceGraph.build`` that do not come out of a file; what does is handed over."""
        setting = self.setting or default
        return {"name": self.name, "setting": setting, "directed": self.directed, "copy": False}
