"""What the caller of ``load`` wants, beside the source itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Request:
    """Handed unchanged to whichever reader the source needs."""

    name: str
    """What the graph will be called."""
    setting: Literal["transductive", "inductive"] | None = None
    """``None`` takes the source's own."""
    directed: bool = False
    seed: int = 0
    """Of the split where the source has none, and of the graph where it is made up."""

    def options(self, default: Literal["transductive", "inductive"] = "transductive") -> dict[str, Any]:
        """The arguments of ``SourceGraph.build`` that do not come out of a file."""
        return {"name": self.name, "setting": self.setting or default, "directed": self.directed}
