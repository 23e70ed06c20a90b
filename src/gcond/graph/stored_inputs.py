"""The inputs of a model on a graph that stays on disk."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.graph.column_tasks import ColumnTasks, work_on
from gcond.graph.column_work import ColumnWork, Hops
from gcond.graph.inputs import MOST_OF_ALL, Chain, Form, Inputs
from gcond.graph.kept_products import KeptProduct, Piece, writing
from gcond.graph.sent_store import SentStore
from gcond.graph.stored_arrays import NOT_THERE, StoredArrays
from gcond.graph.stored_features import StoredFeatures
from gcond.graph.stored_neighbourhood import StoredNeighbourhood
from gcond.graph.streamed_operator import RowBlocks, StreamedOperator
from gcond.linalg.random_projection import folding
from gcond.linalg.sparse import Adjacency, Matrix, dense
from gcond.linalg.tall import Columns, RowFile, Tall, row_blocks
from gcond.runtime.engines.engine import Engine
from gcond.runtime.memory import held_bytes
from gcond.runtime.progress_tick import Tick, count, ignore
from gcond.runtime.scratch import ScratchFolder
from gcond.runtime.threads import SPARSE, threads_for

SLACK = 300 * 10**6
"""Bytes for what is not counted one by one: a block of the adjacency and of rows, and what products take beside."""
VECTOR = 8
"""Columns in a group are a multiple of this: whole vectors of the product's kernel."""
MARGIN = 30 * 10**6
"""Bytes that are added to a limit that is advised, since no process holds exactly what the one before it held."""
AT_START = 400 * 10**6
"""Bytes of what a process holds before it works on a graph, and of the blocks that it reads."""
LEAST_SHARE = 16
"""Of the limit, one part in so many may always be taken."""
UNTURNED = 3
"""Groups up to which each reads all features for its own columns: to turn them is to read, to write and to read."""
DERIVED = "derived"
"""The folder in a store for what was computed from it."""


@dataclass(frozen=True, eq=False)
class Streaming:
    """How a graph past memory is worked on."""

    memory: int
    """Bytes that this process may hold in all."""
    engine: Engine | None = None
    """Where groups of columns are worked on; ``None`` is this process."""
    tick: Tick = ignore
    sent: SentStore | None = None
    """The store as it is sent to the engine's machines; ``None`` where they read its files themselves."""

    def __reduce__(self) -> tuple[type[Streaming], tuple[int]]:
        """For other processes: each works on its own there, and whoever watches is here."""
        return Streaming, (self.memory,)


class StoredInputs(Inputs):
    """Features and adjacency of a packed store; what is computed for all nodes goes through files beside it.

    Every product with the graph goes over groups of columns, as wide as the memory allows, through all of its hops
    (:meth:`spread`). ``S^hops X`` is kept in the store, by its settings, and found by the next command.
    """

    def __init__(self, x: StoredFeatures, streaming: Streaming) -> None:
        super().__init__(x, RowBlocks(x.arrays))  # type: ignore[arg-type]  # they are read and multiplied alike
        self.arrays: StoredArrays = x.arrays
        self.stored: StoredFeatures = x
        self.streaming = streaming
        self._operators: dict[Form, StreamedOperator] = {}
        self._scratched = 0
        self._around: tuple[object, Inputs, Tensor] | None = None
        self._promised: object = None

    @property
    def feature_entries(self) -> int:
        entries = self.stored.sparse_entries
        return self.num_nodes * self.num_features if entries is None else entries

    @property
    def edge_entries(self) -> int:
        return len(self.arrays.indices)

    @property
    def may_hold(self) -> int:
        return self.streaming.memory

    @property
    def may_take(self) -> int:
        # By the limit and the graph alone: what is drawn to fit must not depend on what else has been done before.
        return max(self.may_hold // LEAST_SHARE, self.may_hold - AT_START - 40 * self.num_nodes)

    def loaded(self) -> Inputs:
        """The same in memory, and the very numbers that a graph which fits has; for whoever has seen that they fit."""
        return Inputs(self.stored.block(0, self.num_nodes), RowBlocks(self.arrays).whole())

    def _normalised(self, form: Form) -> Adjacency:
        return self.operator(form)  # type: ignore[return-value]

    def operator(self, form: Form) -> StreamedOperator:
        """The adjacency form S, which multiplies."""
        if form not in self._operators:
            self._operators[form] = StreamedOperator.of(RowBlocks(self.arrays), form)
        return self._operators[form]

    def _propagate(self, form: Form, hops: int) -> Matrix | Chain:
        return self.kept(form, hops)  # type: ignore[return-value]

    def kept(self, form: Form, hops: int) -> Columns:
        """``S^hops X`` in a file that stays in the store; made if it is not there."""
        if hops == 0:
            return self.stored
        facts = [self.arrays.sha256, self.stored.transform.to_json(), form, hops]
        name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]

        def in_folder(folder: Path) -> KeptProduct:
            return KeptProduct(folder / f"{form}-{hops}-{name}.npy", self.stored.shape, self.streaming.tick)

        def write(path: Path) -> list[Piece]:
            return self._written(self.stored, Hops(hops), form, path, hashed=True)[1]

        # What is there is of use in a store that may not be written to, too.
        kept = in_folder(self.arrays.folder / DERIVED).find() or in_folder(self._derived).make(write)
        return self._heard(kept, f"rows after {hops} hop{'s' if hops > 1 else ''}")

    def copied(self) -> RowFile:
        """X itself by columns, in a file that is gone with these inputs."""
        return self._written(self.stored, Hops(0), "gcn", self.scratch_path())[0]

    def spread(self, base: Tensor | Columns, work: ColumnWork, form: Form = "gcn") -> Tall:
        if isinstance(base, Tensor):
            return work(self.operator(form), base.clone())
        if base is self.stored and isinstance(work, Hops):
            return self.kept(form, work.hops)
        if not work.keeps_rows:
            return torch.cat([made for _, made in self._groups(base, work, form, None)], dim=1)
        return self._heard(self._written(base, work, form, self.scratch_path())[0], f"rows of {work}")

    def _heard(self, file: RowFile, what: str) -> RowFile:
        """The same file; whoever watches hears how much of it has been read."""
        tick = self.streaming.tick
        if tick is ignore:
            return file
        return replace(file, hear=lambda done, total: tick(what, done, total, detail=count(done, total, "rows")))

    def folded(self, stream: torch.Generator, *, labelled: int = 0, within: int | None = None) -> Tensor | Columns:
        signs = folding(self.stored.shape, stream, sparse=self.stored.is_sparse, labelled=labelled, within=within)
        if signs is None:
            return self.stored
        self._check_disk(4 * self.num_nodes * signs.shape[1])
        path = self.scratch_path()
        with writing(path):
            folded = RowFile.create(path, (self.num_nodes, signs.shape[1]))
            for where, rows in self.stored.matrices():
                folded.write_rows(where.start, rows @ signs)
        return folded

    def by_columns(self, tall: Tall) -> Tensor | Columns:
        if isinstance(tall, Tensor) or hasattr(tall, "columns"):
            return tall  # type: ignore[return-value]
        self._check_disk(4 * tall.shape[0] * tall.shape[1])
        path = self.scratch_path()
        with writing(path):
            file = RowFile.create(path, tall.shape)
            for where, rows in row_blocks(tall):
                file.write_rows(where.start, rows)
        return file

    def around(self, nodes: Tensor, reach: int, precomputed: int = 0) -> tuple[Inputs, Tensor]:
        """As in memory, and in memory; what would not fit is refused with what it needs."""
        key = (reach, precomputed, nodes.numpy().tobytes())
        if self._around is None or self._around[0] != key:  # probes ask for the same again and again
            # Sparse features are propagated with the rows that are read, as they would fill in; dense ones are kept.
            rows, inner = self.within(nodes, reach if self.stored.is_sparse else reach - precomputed)
            if len(rows) > MOST_OF_ALL * self.num_nodes:  # as in memory, so that the same is drawn at random
                rows = inner = torch.arange(self.num_nodes)
            # What there was room for at the start may take half of the slack, rather than be refused after all.
            self.check_room(len(rows), len(inner), SLACK // 2 if key == self._promised else SLACK)
            self._around = key, StoredNeighbourhood(self, rows, inner), rows
        return self._around[1], self._around[2]

    def promise(self, nodes: Tensor, reach: int, precomputed: int = 0) -> None:
        """Refuse before any work what :meth:`around` would refuse later, when more is held."""
        rows, inner = self.within(nodes, reach if self.stored.is_sparse else reach - precomputed)
        if len(rows) > MOST_OF_ALL * self.num_nodes:
            rows = inner = torch.arange(self.num_nodes)
        self.check_room(len(rows), len(inner))
        self._promised = (reach, precomputed, nodes.numpy().tobytes())

    def within(self, nodes: Tensor, hops: int) -> tuple[Tensor, Tensor]:
        """Every node that at most ``hops`` edges lead from into ``nodes``, sorted: int64.

        Beside them those of one hop less, all of whose neighbours are among them; without hops they are the same.
        """
        inner = reached = fresh = nodes.unique()
        for _ in range(hops):
            found = RowBlocks(self.arrays).chosen(fresh).indices.long().unique()
            fresh = found[~torch.isin(found, reached)]
            inner, reached = reached, torch.cat([reached, fresh]).sort().values
        return reached, inner

    def check_room(self, rows: int, inner: int, slack: int = SLACK) -> None:
        """Refuse to hold so many rows of the graph, edges of those that are ``inner``, past the limit."""
        arrays = self.arrays
        share = inner / max(1, arrays.num_nodes)
        row = self.stored.nbytes / max(1, arrays.num_nodes) if self.stored.is_sparse else 4 * self.num_features
        # Features and what they are after some hops, and both once more where nodes are looked at in parts.
        need = held_bytes() + int(4 * rows * row + 24 * share * len(arrays.indices)) + slack
        if need > self.streaming.memory:
            raise GcondError(
                f"{rows:,} of {arrays.num_nodes:,} nodes of '{arrays.name}' would have to be in memory at once, which "
                f"takes about {need / 10**6:.0f} MB, and the limit is {self.streaming.memory / 10**6:.0f}: "
                f"use memory_limit='{ceil((need + MARGIN) / 10**6)}MB' or more"
            )

    def width(self, work: ColumnWork) -> int:
        """Columns that ``work`` may take at a time within the memory."""
        column = 4 * self.num_nodes * work.held
        room = self.streaming.memory - held_bytes() - SLACK - 12 * self.num_nodes
        width = int(room // column)
        if width < 1:  # what other steps have left behind may take half of the slack, rather than end the work here
            width = min(VECTOR, int((room + SLACK // 2) // column))
        if width < 1:
            raise _too_small(self.num_nodes, self.streaming.memory, int(self.streaming.memory - room + column))
        return _whole_vectors(width)

    @cached_property
    def _derived(self) -> Path:
        """The folder in the store for what is kept, or where nothing may be written there, one that is not kept."""
        folder = self.arrays.folder / DERIVED
        try:
            folder.mkdir(exist_ok=True)
            (folder / "lock").touch()
            return folder
        except OSError:
            self._elsewhere_folder = ScratchFolder(None)
            return self._elsewhere_folder.path

    @cached_property
    def _scratch(self) -> ScratchFolder:
        return ScratchFolder(self._derived)

    def scratch_path(self) -> Path:
        """A new file's path in a folder that is gone with these inputs."""
        self._scratched += 1
        return self._scratch.path / f"{self._scratched}.npy"

    def _written(
        self, base: Columns, work: ColumnWork, form: Form, path: Path, *, hashed: bool = False
    ) -> tuple[RowFile, list[Piece]]:
        """A file of what ``work`` makes, and with ``hashed`` the sha256 of each group of its columns."""
        self._check_disk(4 * self.num_nodes * base.shape[1])
        with writing(path):
            file = RowFile.create(path, (self.num_nodes, base.shape[1]))
            try:
                with self._turned(base, work, file) as columns:
                    groups = self._groups(columns, work, form, file, hashed=hashed)
                    pieces = [(*job, made) for job, made in groups]
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        return file, pieces

    @contextmanager
    def _turned(self, base: Columns, work: ColumnWork, result: RowFile) -> Iterator[Columns]:
        """``base``, or where each of many groups would read all rows for its few columns, a file of its columns.

        They are turned in the file that will hold the ``result``: the columns of a group are read from where what
        comes of them is written. An engine may do a task twice, so where tasks read it the file is another.
        """
        if base is not self.stored or ceil(base.shape[1] / self._width(base, work)) <= UNTURNED:
            yield base
            return
        file = result
        if self.streaming.engine is not None and self.streaming.sent is None:
            self._check_disk(2 * result.nbytes)
            file = RowFile.create(self.scratch_path(), result.shape)
        for where, rows in self.stored.matrices():
            file.write_rows(where.start, dense(rows))
            told = count(where.stop, self.num_nodes, "rows")
            self.streaming.tick("turning features", where.stop, self.num_nodes, detail=told)
        yield file
        if file is not result:
            file.path.unlink()

    def _groups(
        self, base: Columns, work: ColumnWork, form: Form, into: RowFile | None, *, hashed: bool = False
    ) -> Iterator[tuple[tuple[int, int], Any]]:
        """Work on all columns, group by group, in order: which, and what comes of them, or the sha256 of what was
        written ``into`` a file.
        """
        columns, width = base.shape[1], self._width(base, work)
        jobs = [(start, min(start + width, columns)) for start in range(0, columns, width)]
        shared = ColumnTasks(base, work, form, self.arrays, into, hashed)
        engine, tick, what = self.streaming.engine, self.streaming.tick, f"{work} of the graph"
        if engine is None:
            total, done = len(self.arrays.indices) * work.products * len(jobs), 0

            def hear(entries: int) -> None:
                nonlocal done
                done += entries
                tick(what, done, total, detail=count(done, total, "entries"))

            operator = replace(self.operator(form), hear=hear)
            with threads_for(SPARSE * (len(self.arrays.indices) + self.num_nodes) * width):
                yield from ((job, work_on(shared, job, lambda fraction: None, operator)) for job in jobs)
            return
        tick(what, 0, len(jobs))
        results: dict[tuple[int, int], Any] = {}
        sent = self.streaming.sent
        outcomes = engine.map(work_on, shared, jobs) if sent is None else sent.work_off(shared, jobs)
        for done, outcome in enumerate(outcomes, 1):
            if outcome.result is None:
                otherwise = (
                    ", or be sent there with send_store=True" if (outcome.error or "").endswith(NOT_THERE) else ""
                )
                raise GcondError(f"columns {outcome.job[0]} to {outcome.job[1]} failed: {outcome.error}{otherwise}")
            results[outcome.job] = outcome.result
            tick(what, done, len(jobs))
        yield from ((job, results[job]) for job in jobs)

    def _width(self, base: Columns, work: ColumnWork) -> int:
        """Columns of a group: as many as fit, or as make groups of about the same size.

        An engine gets a group for each of its workers at least, and where it does not say how many there are, the
        smallest that are worth a task. What is sent has to fit the machines' object stores.
        """
        columns = base.shape[1]
        width = min(self.width(work), columns)
        if (engine := self.streaming.engine) is not None:
            share = ceil(columns / engine.workers) if engine.workers else VECTOR
            width = min(width, VECTOR * ceil(share / VECTOR))
        if self.streaming.sent is not None:
            width = _whole_vectors(min(width, self.streaming.sent.width(columns)))
        even = ceil(columns / ceil(columns / width))
        return min(width, VECTOR * ceil(even / VECTOR))

    def _check_disk(self, size: int) -> None:
        free = shutil.disk_usage(self._derived).free
        if size > free:
            raise GcondError(
                f"what is computed from '{self.arrays.name}' takes {size / 10**6:.0f} MB, and the disk of "
                f"'{self._derived}' has {free / 10**6:.0f} MB free: free some, or move the store"
            )

    def to(self, device: torch.device | str) -> Inputs:
        if torch.device(device).type != "cpu":
            raise GcondError("a graph that is streamed from its store is computed on the CPU: use device='cpu'")
        return self


def require_column(nodes: int, limit: int) -> None:
    """Refuse a limit within which not even a column of so many nodes could be propagated, before any work."""
    if (need := held_bytes() + SLACK + 24 * nodes) > limit:
        raise _too_small(nodes, limit, need)


def _too_small(nodes: int, limit: int, need: int) -> GcondError:
    return GcondError(
        f"a memory limit of {limit / 10**6:.0f} MB is too small for {nodes} nodes: one column at a time takes "
        f"{ceil(need / 10**6)} MB: use memory_limit='{ceil((need + MARGIN) / 10**6)}MB' or more"
    )


def _whole_vectors(width: int) -> int:
    return width - width % VECTOR if width > VECTOR else width
