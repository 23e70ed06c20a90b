"""The run folder: what its results are called, and that they are all of one graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.graph.source_graph import SourceGraph

COMPARISON = "comparison.json"
SEARCH = "nas.json"


def check_source(folder: Path, source: SourceGraph) -> None:
    """Refuse the run folder of another graph."""
    for name, what in ((COMPARISON, "comparison"), (SEARCH, "search")):
        try:
            held = json.loads((folder / name).read_text(encoding="utf-8"))["source"]
            other = held["sha256"] != source.sha256
        except (OSError, ValueError, KeyError, TypeError):  # none, or damaged: it is written anew
            continue
        if other:
            raise GcondError(f"'{folder}' holds a {what} on another graph, '{held['name']}': give another folder")
