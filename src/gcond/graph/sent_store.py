"""A store that is sent to machines which cannot read it: its adjacency once, and columns there and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from gcond.errors import GcondError
from gcond.graph.column_tasks import ColumnTasks, written
from gcond.graph.column_work import ColumnWork
from gcond.graph.inputs import Form
from gcond.graph.sent_arrays import Pieces, SentAdjacency
from gcond.graph.stored_arrays import StoredArrays
from gcond.graph.streamed_operator import RowBlocks, StreamedOperator, read_piece
from gcond.runtime.engines.engine import Engine, Outcome, Tell
from gcond.runtime.memory import hand_back

PIECE_BYTES = 100 * 10**6
"""Of a piece of the adjacency, at most: a store finds room for many of them more easily than for one of gigabytes."""
USABLE = 0.9
"""The share of an object store that is counted on: what lies in it has gaps."""


@dataclass(frozen=True, eq=False)
class SentColumns:
    """A group of columns, which are beside their numbers."""

    start: int
    stop: int
    columns: Any
    """float32 [N, k] where the task is, and what an engine has put for it where it was sent from."""


@dataclass(frozen=True, eq=False)
class SentTasks:
    """What all groups of columns need where nothing is read from files."""

    work: ColumnWork
    form: Form
    adjacency: SentAdjacency


def work_on_sent(shared: SentTasks, job: SentColumns, tell: Tell) -> np.ndarray:
    """What comes of one group of columns."""
    hand_back()
    operator = StreamedOperator.of(RowBlocks(shared.adjacency), shared.form)
    return shared.work(operator, _own(job.columns)).numpy()


@dataclass(frozen=True, eq=False)
class SentStore:
    """What an engine's machines are sent of a store, for as long as one command works on it."""

    engine: Engine
    arrays: StoredArrays

    @cached_property
    def adjacency(self) -> SentAdjacency:
        """The adjacency, as it was put for all tasks of all products."""
        arrays = self.arrays
        weights = None if arrays.weights is None else self._put(arrays.weights)
        return SentAdjacency(
            self._put(arrays.indptr), self._put(arrays.indices), weights, self._put(arrays.scale), arrays.directed
        )

    def _put(self, array: np.ndarray) -> Pieces:
        step = max(1, PIECE_BYTES // array.itemsize)
        parts = (self.engine.put(read_piece(array, *span)) for span in Pieces.spans(len(array), step))
        return Pieces(tuple(parts), step, len(array))

    def work_off(self, tasks: ColumnTasks, jobs: list[tuple[int, int]]) -> Iterator[Outcome[tuple[int, int], Any]]:
        """The same of every group as :func:`~gcond.graph.column_tasks.work_on`; here its columns are read and written.

        They are put when a machine is free for them, and let go of when they are done.
        """

        def taken(outcome: Outcome[SentColumns, np.ndarray]) -> Outcome[tuple[int, int], Any]:
            job = (outcome.job.start, outcome.job.stop)
            if outcome.result is None:
                return Outcome(job, error=outcome.error)
            made = _own(outcome.result)
            return Outcome(job, made if tasks.into is None else written(tasks, tasks.into, job[0], made))

        shared = SentTasks(tasks.work, tasks.form, self.adjacency)
        sent = (SentColumns(*job, self.engine.put(tasks.base.columns(*job).numpy())) for job in jobs)
        return map(taken, self.engine.map(work_on_sent, shared, sent))

    def width(self, columns: int) -> int:
        """Columns of a group, of so many in all, with which every object store holds what it has to at once.

        That is the adjacency and, of each task that is at work, the columns and what comes of them.
        """
        arrays, width = self.arrays, columns
        adjacency = sum(
            array.nbytes for array in (arrays.indptr, arrays.indices, arrays.weights, arrays.scale) if array is not None
        )
        column = 2 * 4 * arrays.num_nodes
        for store in self.engine.object_stores():
            room = int(USABLE * store.bytes) - adjacency
            if room >= columns * column:
                continue
            tasks = min(store.jobs, columns)
            width = min(width, room // (tasks * column))
            if width < 1:
                need = int((adjacency + tasks * column) / USABLE)
                raise GcondError(
                    f"to send '{arrays.name}' and a column for each of {tasks} tasks takes {need / 10**6:.0f} MB of a "
                    f"machine's object store, and one has {store.bytes / 10**6:.0f} MB: start Ray there with "
                    f"--object-store-memory {need}, or share the store's folder and leave send_store=True out"
                )
        return width


def _own(sent: np.ndarray) -> torch.Tensor:
    """A tensor of what was fetched, which may be overwritten; others read what was fetched, too."""
    return torch.from_numpy(np.array(sent))
