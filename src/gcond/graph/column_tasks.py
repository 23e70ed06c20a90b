"""Groups of columns of a graph on disk, each worked on alone: here, or by an engine elsewhere."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from torch import Tensor

from gcond.graph.column_work import ColumnWork
from gcond.graph.inputs import Form
from gcond.graph.kept_products import writing
from gcond.graph.stored_arrays import StoredArrays
from gcond.graph.streamed_operator import RowBlocks, StreamedOperator
from gcond.linalg.tall import Columns, RowFile
from gcond.runtime.engines.engine import Tell
from gcond.runtime.memory import hand_back


@dataclass(frozen=True, eq=False)
class ColumnTasks:
    """What all groups of columns need."""

    base: Columns
    work: ColumnWork
    form: Form
    arrays: StoredArrays
    into: RowFile | None
    hashed: bool
    """Whether what is written has to be known by its sha256."""


def work_on(
    shared: ColumnTasks, job: tuple[int, int], tell: Tell, operator: StreamedOperator | None = None
) -> Tensor | str:
    """Do one group of columns; it is written to where it belongs, and its sha256 is the result, or it is itself."""
    hand_back()
    operator = operator or StreamedOperator.of(RowBlocks(shared.arrays), shared.form)
    made = shared.work(operator, shared.base.columns(*job))
    return made if shared.into is None else written(shared, shared.into, job[0], made)


def written(shared: ColumnTasks, into: RowFile, start: int, made: Tensor) -> str:
    """Write what came of the columns from ``start`` on to where it belongs: its sha256, if that has to be known."""
    digest = hashlib.sha256()
    with writing(into.path):
        into.write_columns(start, made, digest.update if shared.hashed else None)
    return digest.hexdigest()
