"""Facts about the bytes of a condensed graph, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcond.condensed import CondensedGraph

DROPPED_IDS = {"digests": "ids of the source's nodes are dropped, so an update goes by rows: --keep-digests keeps them"}
"""The fact about a compact file whose nodes had ids; without ids an update goes by rows in any case."""


def storage(file: Path, graph: CondensedGraph, source_bytes: int | None) -> dict[str, Any]:
    """Bytes of ``graph`` before compaction and after, its share of the source's, and the size of its file."""
    made = graph.provenance
    before = made.compaction.get("bytes_before", graph.nbytes) if made is not None else graph.nbytes
    share = graph.nbytes / source_bytes if source_bytes else None
    return {"before": before, "after": graph.nbytes, "source_share": share, "file": file.stat().st_size}


def storage_sentence(found: dict[str, Any]) -> str:
    """:func:`storage` in words."""
    from gcond.reports.tables import percent, size

    words = size(found["after"])
    if found["before"] != found["after"]:
        words = f"{size(found['before'])} before, {words} after"
    if found["source_share"] is not None:
        words += f", {percent(found['source_share'], 2)} % of the source's"
    return f"{words}; the whole file {size(found['file'])}"


def compaction_facts(graph: CondensedGraph) -> dict[str, str]:
    """Facts about what was cut and how it was chosen; none about a graph in the plain form."""
    from gcond.reports.tables import percent, size

    if graph.compaction is None:
        return {}
    facts = {"compact": str(graph.compaction)}
    made = graph.provenance.compaction if graph.provenance is not None else {}
    if "bytes_before" in made:
        facts["compact"] += f", from {size(made['bytes_before'])}"
    if ended := made.get("ended"):
        facts["compact"] += f"; not all cuts were tried, because {ended}"
    if ladder := made.get("ladder"):
        cut = next(cut for cut in ladder if all(cut.get(key) == made.get(key) for key in ("entries", "bits", "step")))
        taken = cut.get("val_accuracy", 0.0)
        uncut = made.get("val_accuracy", 0.0)
        facts["compact"] += (
            f"; validation {made.get('metric', 'accuracy')} {percent(uncut)} % before, {percent(taken)} % after"
        )
    return facts
