"""Class scores on a graph past memory: stage by stage for all nodes, or by blocks of nodes with what they look at.

A model that says its pass as stages (:meth:`gcond.models.Model.stages`) is computed for all nodes at once. Row-wise
stages go over blocks of rows and are joined, so that a hidden layer is never taller than a block; what a product with
the graph takes is written to a file, and the product goes over groups of columns, as wide as the memory allows
(:meth:`gcond.graph.stored_inputs.StoredInputs.spread`). A two-layer GCN on dense features writes no more than [N, C].
Several sets of weights stand side by side in these files for as long as their columns fit into one group: they share
every pass over the graph and over the features.

Any other model is computed on neighbourhoods: as many of the wanted nodes at a time as the memory allows.

Both are exact: they differ from :meth:`gcond.models.Model.logits` in memory by the order of sums alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gcond.graph.column_work import Hops
from gcond.graph.stored_inputs import StoredInputs
from gcond.linalg import tall
from gcond.linalg.sparse import Matrix
from gcond.linalg.tall import RowFile
from gcond.models import Model
from gcond.models.model import Parameters, streamable
from gcond.models.stages import Attend, Local, Product, Spread, Stages
from gcond.models.streamed_attention import Attention
from gcond.runtime.progress_tick import Tick, count
from gcond.runtime.threads import deserved, fewer_threads
from gcond.training.neighbourhood_scores import Scored, by_neighbourhoods


@torch.no_grad()
def streamed_scores(
    model: Model, parameters: Sequence[Parameters], inputs: StoredInputs, nodes: Tensor
) -> Iterator[Scored]:
    """The class scores of ``nodes`` (int64 [m]) by each of R sets of weights, a block of nodes at a time."""
    found = [model.stages(one) if streamable(model) else None for one in parameters]
    runs = [stages for stages in found if stages is not None]
    if not runs:
        yield from by_neighbourhoods(model, parameters, inputs, nodes)
        return
    together = _runs_together(runs[0], inputs)
    for first in range(0, len(runs), together):
        for run, places, scores in _Pass(inputs, runs[first : first + together], model.name).scores(nodes):
            yield first + run, places, scores


def _runs_together(stages: Stages, inputs: StoredInputs) -> int:
    """The number of runs whose columns go through the graph in one group, at least one."""
    if any(isinstance(stage, Attend) for stage in stages.then):
        return 1  # each head goes through it alone
    spreads = [stage for stage in stages.then if isinstance(stage, Spread)]
    if inputs.stored.is_sparse:
        spreads += [Spread(Hops(one.hops), one.width, one.form) for one in stages.first if one.hops]
    return max(1, min((inputs.width(spread.work) // spread.columns for spread in spreads), default=_MANY))


_MANY = 16
"""Runs at a time where nothing has to be written between features and scores: they share the reading."""


class _LastBlock:
    """Rows of a tall matrix by :meth:`rows`; those that were asked for last are not read again for the next run."""

    def __init__(self, read: Callable[[int, int], Matrix], entries: float) -> None:
        self._read, self._at = read, (0, 0)
        self._rows: Matrix | None = None
        self.entries = entries
        """Numbers in a row, about."""

    def rows(self, start: int, stop: int) -> Matrix:
        if self._rows is None or self._at != (start, stop):
            self._rows = None  # before another is held
            self._rows, self._at = self._read(start, stop), (start, stop)
        return self._rows


@dataclass(frozen=True, eq=False)
class _Part:
    """Some columns of a run's state, made from rows of what lies in a file."""

    source: _LastBlock
    width: int
    take: Callable[[Matrix], Tensor]

    def rows(self, start: int, stop: int) -> Tensor:
        return self.take(self.source.rows(start, stop))


@dataclass(frozen=True, eq=False)
class _Run:
    """The state of a run: its columns, and the row-wise stages that they have still to go through."""

    parts: tuple[_Part, ...]
    stages: tuple[Local, ...] = ()

    @property
    def width(self) -> int:
        return self.stages[-1].width if self.stages else sum(part.width for part in self.parts)

    @property
    def widest(self) -> int:
        entered = sum(part.width for part in self.parts)
        return max(entered, *(stage.widest for stage in self.stages)) if self.stages else entered

    def rows(self, start: int, stop: int, chosen: Tensor | None) -> Tensor:
        """Rows ``start`` to ``stop`` after all stages, or those ``chosen`` of them: [b, w]."""
        h = torch.cat([part.rows(start, stop) for part in self.parts], 1)
        h = h if chosen is None else h[chosen]
        for stage in self.stages:
            h = stage.function(h)
        return h


@dataclass(frozen=True, eq=False)
class _SideBySide:
    """The states of all runs as one tall matrix: the first ``cut`` columns of each, and then the rest of each."""

    runs: tuple[_Run, ...]
    cut: int
    num_nodes: int
    what: str
    tick: Tick

    @property
    def shape(self) -> tuple[int, int]:
        return (self.num_nodes, len(self.runs) * self.runs[0].width)

    @property
    def step(self) -> int:
        """Rows at a time: a block's worth of the widest that is held for them."""
        run = self.runs[0]
        read = sum(source.entries for source in {part.source for part in run.parts})
        return max(1, int(tall.BLOCK_BYTES // (4 * max(2 * run.widest, self.shape[1], read))))

    def rows(self, start: int, stop: int) -> Tensor:
        found = torch.empty(stop - start, self.shape[1])
        for first in range(start, stop, self.step):
            last = min(first + self.step, stop)
            found[first - start : last - start] = self._made(first, last, None)
        return found

    def chosen(self, nodes: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """The rows ``nodes`` (int64 [m]), block by block: the places in ``nodes`` [b], and the rows [b, w]."""
        order = nodes.argsort()
        ahead = nodes[order]
        for first in range(0, self.num_nodes, self.step):
            last = min(first + self.step, self.num_nodes)
            low, high = torch.searchsorted(ahead, torch.tensor([first, last])).tolist()
            if low < high:
                yield order[low:high], self._made(first, last, ahead[low:high] - first)

    def __getitem__(self, index: Tensor) -> Tensor:
        found = torch.empty(len(index), self.shape[1])
        for places, rows in self.chosen(index):
            found[places] = rows
        return found

    def _made(self, first: int, last: int, chosen: Tensor | None) -> Tensor:
        """Rows ``first`` to ``last``, no more than a step of them."""
        widest = self.runs[0].widest
        with fewer_threads(deserved((last - first) * widest**2)):
            made = [run.rows(first, last, chosen) for run in self.runs]
        self.tick(self.what, last, self.num_nodes, detail=count(last, self.num_nodes, "rows"))
        return torch.cat([*(rows[:, : self.cut] for rows in made), *(rows[:, self.cut :] for rows in made)], 1)


@dataclass(frozen=True, eq=False)
class _ColumnsOf:
    """Columns ``start`` to ``stop`` of a file."""

    file: RowFile
    start: int
    stop: int

    @property
    def shape(self) -> tuple[int, int]:
        return (self.file.shape[0], self.stop - self.start)

    def rows(self, start: int, stop: int) -> Tensor:
        return self.file.rows(start, stop)[:, self.start : self.stop]

    def columns(self, start: int, stop: int) -> Tensor:
        return self.file.columns(self.start + start, self.start + stop)

    def __getitem__(self, index: Tensor) -> Tensor:
        return self.file[index][:, self.start : self.stop]


class _Pass:
    """One pass of some runs through the stages."""

    def __init__(self, inputs: StoredInputs, runs: Sequence[Stages], name: str) -> None:
        self.inputs, self.stages, self.name = inputs, runs, name
        self._files: list[RowFile] = []

    def scores(self, nodes: Tensor) -> Iterator[Scored]:
        try:
            runs = self._first()
            for at in zip(*(stages.then for stages in self.stages), strict=True):
                stage = at[0]
                if isinstance(stage, Local):
                    pairs = zip(runs, at, strict=True)
                    runs = [_Run(run.parts, (*run.stages, one)) for run, one in pairs if isinstance(one, Local)]
                else:
                    before = list(self._files)
                    runs = self._spread(runs, stage) if isinstance(stage, Spread) else self._attended(runs, stage)
                    self._remove(before)
            classes = runs[0].width
            for places, rows in self._side_by_side(runs, classes, f"scores of {self.name}").chosen(nodes):
                for run, scores in enumerate(rows.split(classes, 1)):
                    yield run, places, scores
        finally:
            self._remove(list(self._files))

    def _first(self) -> list[_Run]:
        """The first products of each run; sparse features meet the weights before the graph, as they would fill in."""
        inputs, x = self.inputs, self.inputs.stored
        sources: dict[tuple[str, int], _LastBlock] = {}
        parts: list[list[_Part]] = [[] for _ in self.stages]
        for products in zip(*(stages.first for stages in self.stages), strict=True):
            form, hops = products[0].form, products[0].hops
            later = hops if x.is_sparse else 0
            key = (form, hops - later) if hops - later else ("", 0)
            if key not in sources:
                read = _unheard(inputs.kept(form, hops)).rows if key[1] else x.block
                sources[key] = _LastBlock(read, x.nbytes / (4 * max(1, inputs.num_nodes)))
            made = [_Part(sources[key], one.width, partial(_times, one)) for one in products]
            if later:
                spread = Spread(Hops(later), products[0].width, form)
                made = [run.parts[0] for run in self._spread([_Run((part,)) for part in made], spread)]
            for own, part in zip(parts, made, strict=True):
                own.append(part)
        return [_Run(tuple(own)) for own in parts]

    def _spread(self, runs: Sequence[_Run], stage: Spread) -> list[_Run]:
        """Their first columns go through the graph side by side."""
        cut, stay = stage.columns, runs[0].width - stage.columns
        moving = len(runs) * cut
        file = self._written(runs, cut)
        moved = self.inputs.spread(file if not stay else _ColumnsOf(file, 0, moving), stage.work, stage.form)
        moved = _unheard(moved)
        self._files.append(moved)
        parts = [(part,) for part in _cut(moved, 0, cut, len(runs))]
        if not stay:
            self._remove([file])
            return [_Run(part) for part in parts]
        return [_Run((*part, own)) for part, own in zip(parts, _cut(file, moving, stay, len(runs)), strict=True)]

    def _attended(self, runs: Sequence[_Run], stage: Attend) -> list[_Run]:
        """Each head of each run goes through the graph alone, a group of its columns at a time."""
        width, heads = runs[0].width, stage.heads
        each = width // heads - 2
        file = self._written(runs, width)
        attended = []
        for start in range(0, len(runs) * width, width):
            parts = []
            for head in range(heads):
                to, off = (_column(file, start + heads * (each + which) + head) for which in range(2))
                z = _ColumnsOf(file, start + each * head, start + each * (head + 1))
                moved = self.inputs.spread(z, Attention(to, off, stage.slope))
                moved = _unheard(moved)
                self._files.append(moved)
                parts += _cut(moved, 0, each, 1)
            attended.append(_Run(tuple(parts)))
        self._remove([file])
        return attended

    def _written(self, runs: Sequence[_Run], cut: int) -> RowFile:
        file = self.inputs.by_columns(self._side_by_side(runs, cut, f"a layer of {self.name}"))
        assert isinstance(file, RowFile)
        self._files.append(file)
        return file

    def _remove(self, files: Sequence[RowFile]) -> None:
        for file in files:
            file.path.unlink(missing_ok=True)
            self._files.remove(file)

    def _side_by_side(self, runs: Sequence[_Run], cut: int, what: str) -> _SideBySide:
        return _SideBySide(tuple(runs), cut, self.inputs.num_nodes, what, self.inputs.streaming.tick)


def _unheard(file: object) -> RowFile:
    """A file of which only what is made of its rows is told."""
    assert isinstance(file, RowFile)
    return RowFile(file.path, file.shape, file.offset)


def _times(product: Product, rows: Matrix) -> Tensor:
    return rows @ product.weight


def _column(file: RowFile, at: int) -> Tensor:
    return file.columns(at, at + 1).squeeze(1)


def _cut(file: RowFile, start: int, width: int, count: int) -> list[_Part]:
    """``count`` pieces of so many columns, one after the other."""
    source = _LastBlock(file.rows, file.shape[1])

    def take(first: int, rows: Matrix) -> Tensor:
        assert isinstance(rows, Tensor)
        return rows[:, first : first + width]

    return [_Part(source, width, partial(take, start + place * width)) for place in range(count)]
