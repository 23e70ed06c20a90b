"""What a model predicts for nodes: the probability of each class, and its table as a file."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.graph.node_ids import NodeIds
from gcond.runtime import notebook
from gcond.runtime.files import atomic_path
from gcond.runtime.plain_text import counted
from gcond.runtime.progress_tick import Tick, ignore

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".parquet", ".csv")
ROWS_TOGETHER = 65_536
"""Rows of a row group: what is held at once beside the probabilities themselves."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """The classes of m nodes by one model."""

    nodes: Tensor
    """int64 [m]: row numbers in the graph."""
    probabilities: Tensor
    """float32 [m, C]; every row adds up to 1."""
    ids: NodeIds
    """The nodes' own ids where the graph has such, else their row numbers."""
    class_names: tuple[str, ...]
    """The model's classes: their names, or their numbers as text where they have none."""
    labels: Tensor
    """int64 [m]: the graph's own class ids of these nodes; -1 is unlabelled."""
    label_names: tuple[str, ...]
    """The names of these, as of :attr:`class_names`."""
    computed_on: str
    """The graph that was computed on, in words."""

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return (
            f"Predictions({len(self)} nodes, {counted(len(self.class_names), 'class')}, computed on {self.computed_on})"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the first few of them."""
        few = self.nodes.new_tensor(range(min(len(self), 8)))
        surest = self.probabilities[few].max(1).values.tolist()
        names = [self.class_names[each] for each in self.classes[few].tolist()]
        rows = [
            (own, name, notebook.percent(share))
            for own, name, share in zip(self.ids.take(few).to_list(), names, surest, strict=True)
        ]
        return notebook.grid(f"Predictions for {len(self):,} nodes", ("id", "class", "probability"), rows, words=(0, 1))

    @cached_property
    def classes(self) -> Tensor:
        """int64 [m]: the likeliest class of each node."""
        return self.probabilities.argmax(1)

    @property
    def names(self) -> list[str]:
        """The name of the likeliest class of each node."""
        return [self.class_names[each] for each in self.classes.tolist()]

    def counts(self) -> dict[str, int]:
        """How many nodes each class gets, by name."""
        found = torch.bincount(self.classes, minlength=len(self.class_names)).tolist()
        return dict(zip(self.class_names, found, strict=True))

    def accuracy(self, among: Tensor | None = None) -> float | None:
        """The share of labelled nodes that are predicted right, of those that a boolean mask [m] has ``among`` them.

        Labels are compared by name, and a node of a class that the model does not know is wrong. ``None`` where there
        is nothing to compare: no labels, or no class that both have.
        """
        own = {name: place for place, name in enumerate(self.class_names)}
        known = torch.tensor([own.get(name, -1) for name in self.label_names] or [-1])
        labels = known[self.labels.clamp(min=0)]
        labelled = self.labels >= 0
        if not bool((labelled & (labels >= 0)).any()):
            return None
        counted = labelled if among is None else labelled & among
        return float((self.classes == labels)[counted].double().mean()) if bool(counted.any()) else None

    def unknown_classes(self) -> dict[str, int]:
        """How many labelled nodes there are of each class that the model does not know, by name."""
        found = torch.bincount(self.labels[self.labels >= 0], minlength=len(self.label_names)).tolist()
        own = set(self.class_names)
        return {name: n for name, n in zip(self.label_names, found, strict=True) if n and name not in own}

    def save(self, path: str | Path, *, labels: bool = False, on_progress: Tick | None = None) -> None:
        """Write a table, Parquet or CSV by the name's end, atomically and a row group at a time.

        Its columns are ``id``, ``class``, with ``labels`` the graph's own ``label``, and ``probability_NAME`` for each
        class.
        """
        path = check_table_name(path)
        tick, total = on_progress or ignore, len(self)
        with atomic_path(path) as temporary, _writer(temporary, path.suffix, self._schema(labels)) as writer:
            for start in range(0, total, ROWS_TOGETHER):
                end = min(total, start + ROWS_TOGETHER)
                writer.write_batch(self._rows(start, end, labels))
                tick("writing", end, total)

    def to_table(self, *, labels: bool = False) -> pyarrow.Table:
        """The same table in memory."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self._batches(labels)), self._schema(labels))

    def _batches(self, labels: bool) -> Iterator[pyarrow.RecordBatch]:
        for start in range(0, len(self), ROWS_TOGETHER):
            yield self._rows(start, min(len(self), start + ROWS_TOGETHER), labels)

    def _schema(self, labels: bool) -> pyarrow.Schema:
        import pyarrow as pa

        columns: list[tuple[str, Any]] = [("id", self.ids.values.type), ("class", pa.string())]
        columns += [("label", pa.string())] if labels else []
        columns += [(name, pa.float32()) for name in probability_columns(self.class_names)]
        return pa.schema(columns)

    def _rows(self, start: int, end: int, labels: bool) -> pyarrow.RecordBatch:
        import pyarrow as pa

        probabilities = np.ascontiguousarray(self.probabilities[start:end].numpy().T)
        arrays = [self.ids.values[start:end], _named(self.classes[start:end], self.class_names)]
        arrays += [_named(self.labels[start:end], self.label_names)] if labels else []
        arrays += [pa.array(column) for column in probabilities]
        return pa.record_batch(arrays, schema=self._schema(labels))


def check_table_name(path: str | Path) -> Path:
    """``path``, refused unless its end says which kind of table is meant."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise GcondError(f"'{path}' is no name for predictions: end it in {' or '.join(SUFFIXES)}")
    return path


def probability_columns(class_names: tuple[str, ...]) -> list[str]:
    """``probability_NAME`` for each class, all different; control characters, such as line breaks, become spaces."""
    found: list[str] = []
    for name in class_names:
        plain = "".join(" " if unicodedata.category(letter).startswith("C") else letter for letter in name)
        column, again = f"probability_{plain}", 1
        while column in found:
            again += 1
            column = f"probability_{plain} ({again})"
        found.append(column)
    return found


def _named(classes: Tensor, names: tuple[str, ...]) -> pyarrow.Array:
    """The names of class ids as text; nothing for -1."""
    import pyarrow as pa

    ids = classes.numpy()
    codes = pa.array(np.where(ids >= 0, ids, 0), mask=ids < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(names or [""], pa.string())).cast(pa.string())


def _writer(path: Path, suffix: str, schema: pyarrow.Schema) -> Any:
    if suffix == ".csv":
        from pyarrow import csv

        return csv.CSVWriter(str(path), schema)
    from pyarrow import parquet

    return parquet.ParquetWriter(str(path), schema)
