"""Ids in a table of nodes: whole numbers or text, none empty, each once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gcond.data.table_file import Table, first_true
from gcond.errors import GcondError

if TYPE_CHECKING:
    import pyarrow


def node_ids(nodes: Table) -> pyarrow.Array:
    """The ids of a block of nodes as text, none of them empty."""
    import pyarrow.compute as pc

    ids = nodes.text("id").combine_chunks()
    if pc.any(pc.equal(ids, "")).as_py():
        raise GcondError(f"the column 'id' of '{nodes.file}' is empty in row {nodes.row(pc.equal(ids, ''))}")
    return ids


def each_once(ids: pyarrow.Array, shown: Path) -> None:
    import pyarrow.compute as pc

    if len(pc.unique(ids)) < len(ids):
        counts = pc.value_counts(ids)
        raise twice(counts.field("values")[first_true(pc.greater(counts.field("counts"), 1))].as_py(), shown)


def twice(name: str, shown: Path) -> GcondError:
    return GcondError(f"the id '{name}' appears more than once in '{shown}': every node needs its own")


def has_whole_ids(nodes: Table) -> bool:
    """Whether the ids of a block of nodes are numbers that int64 can hold."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = nodes.column("id")
    if pa.types.is_uint64(column.type):
        return bool((pc.max(column).as_py() or 0) < 2**63)
    return bool(pa.types.is_integer(column.type))
