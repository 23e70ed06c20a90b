"""A person's own graph: a folder with the tables ``nodes`` and ``edges``, in Parquet or CSV.

A table is one file, ``nodes.parquet``, or many: ``nodes-0.parquet``, ``nodes-1.parquet`` … or ``nodes/*.parquet``, in
the order of their names.
Nodes: an optional ``id`` (whole numbers or text, each once; without it a node's id is its row number from
0), ``label`` (whole number or text; only an empty one is unlabelled), an optional ``split`` (train, val, test or
empty), and features: every other column, all numeric; or in Parquet one column of equally long lists; or, where most
of them are zero, the list column ``feature_index``, the columns from 0 that are not zero, with a list column
``feature_value`` of as many numbers unless each is 1; without any, the graph gets structural features.
Edges: ``source``, ``target``, and an optional ``weight``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gcond.data.load_request import Request
from gcond.data.size_check import require_memory
from gcond.data.splits import OTHER_NAMES, Split
from gcond.data.table_features import SparseRows, feature_form, list_features, sparse_features
from gcond.data.table_file import Table, TableFiles, find_table, first_line, first_true, listed
from gcond.data.table_ids import each_once, has_whole_ids, node_ids
from gcond.data.table_labels import class_ranks, whole_numbers
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.graph.node_ids import NodeIds
from gcond.graph.source_graph import PARTS
from gcond.linalg.sparse import Matrix, SparseMatrix

if TYPE_CHECKING:
    import pyarrow

NODE_COLUMNS = ("id", "label", "split")
EDGE_COLUMNS = ("source", "target", "weight")
OWN_SPLIT = "the split is the table's own"


def holds_tables(folder: Path) -> bool:
    """Whether the folder is of this form, complete or not."""
    return any(find_table(folder, part) for part in ("nodes", "edges"))


def load(folder: Path, request: Request) -> SourceGraph:
    """Read and check both tables."""
    import pyarrow as pa

    try:
        return _assemble(folder, request)
    except (pa.ArrowException, UnicodeDecodeError) as error:  # damage that shows only when a column is decoded
        raise damaged(folder, error) from None


def damaged(folder: Path, error: Exception) -> GcondError:
    return GcondError(f"the tables in '{folder}' are damaged: {first_line(error)}")


def _assemble(folder: Path, request: Request) -> SourceGraph:
    nodes, edge_files = NodeTable(find(folder, "nodes"), labelled=request.labelled), find(folder, "edges")
    for table in (nodes.files, edge_files):
        require_memory(2 * table.unpacked_bytes, f"'{table.shown}'")
    blocks = list(nodes.blocks())
    edges = _whole_table(edge_files)
    words = np.concatenate([block.label for block in blocks])
    lookup, class_names, label_notes = nodes.classes()
    y = torch.from_numpy(lookup[words])
    if blocks[0].split is not None:
        part = np.concatenate([block.split for block in blocks if block.split is not None])
        train, val, test = (torch.from_numpy(part == code) for code in range(1, 1 + len(PARTS)))
        split = Split(train, val, test, OWN_SPLIT)
    else:
        split = request.drawn_split(y, class_names)
    ids = _all_ids(nodes.files, blocks)
    return request.build(
        split,
        x=_whole_features(nodes, blocks),
        edge_index=_edge_index(nodes.files, edges, ids),
        edge_weight=edges.weights() if "weight" in edges else None,
        y=y,
        class_names=class_names,
        notes=(*nodes.feature_notes(), *label_notes, *edge_notes(edges)),
        ids=_as_given(blocks, ids) if ids is not None else None,
        feature_names=nodes.feature_names,
    )


def find(folder: Path, part: str) -> TableFiles:
    """The files of a table that must be there."""
    if (found := find_table(folder, part)) is not None:
        return found
    raise GcondError(f"the folder '{folder}' has no {part}.parquet or {part}.csv: it needs nodes and edges")


def edge_notes(edges: Table) -> tuple[str, ...]:
    """A note on the columns of the edges that say nothing here."""
    extra = [name for name in edges.data.column_names if name not in EDGE_COLUMNS]
    return (f"not used of the edges: {listed(extra)}",) if extra else ()


def _whole_table(files: TableFiles) -> Table:
    """All blocks as one table, in which rows are counted through."""
    import pyarrow as pa

    blocks = list(files.blocks())
    if len(blocks) == 1:
        return blocks[0]
    kept = [name for name in EDGE_COLUMNS if any(name in block for block in blocks)]
    columns = {
        name: pa.array(torch.cat([block.weights() for block in blocks]).numpy())
        if name == "weight"
        else pa.chunked_array([chunk for block in blocks for chunk in block.text(name).chunks], pa.string())
        for name in kept
    }
    for name in blocks[0].data.column_names:
        if name not in EDGE_COLUMNS:  # named in a note, and not looked at
            columns[name] = pa.nulls(sum(block.data.num_rows for block in blocks))
    return Table(pa.table(columns), files.shown)


@dataclass(frozen=True)
class NodeBlock:
    """A block of the node table."""

    label: np.ndarray
    """int64 [k]: places in the list of labels, as :class:`NodeTable` has met them."""
    x: Tensor | SparseRows | None
    split: np.ndarray | None
    """int8 [k]: 0 is no part, then training, validation and test."""
    table: Table

    @property
    def rows(self) -> int:
        return len(self.label)


class NodeTable:
    """The node table, block by block, with what its blocks must have in common."""

    def __init__(self, files: TableFiles, *, labelled: bool = True) -> None:
        self.files = files
        self.labelled = labelled
        """Whether there must be labels."""
        self.width = 0
        """Of the features; of sparse ones known only when all are read."""
        self.labels: dict[str, int] = {}
        """The labels met so far, and the place of each in this list."""
        self._features: list[str] = []
        self._form = ""
        self._kinds: dict[str, str] = {}
        self._first: Table | None = None

    def blocks(self) -> Iterator[NodeBlock]:
        """Every block, checked: a mistake has the sentence that it has in a table that is read at once."""
        rows = 0
        for table in self.files.blocks():
            if table.data.num_rows == 0 and len(self.files.files) > 1:
                continue
            if table.data.num_rows == 0:
                raise GcondError(f"'{table.file}' has no rows: there must be at least one node")
            self._compare(table)
            label = self._labels(table)
            x = self._features_of(table)
            yield NodeBlock(label, x, _split(table) if "split" in table else None, table)
            rows += table.data.num_rows
        if rows == 0:
            raise GcondError(f"'{self.files.shown}' has no rows: there must be at least one node")

    def _compare(self, table: Table) -> None:
        """Refuse a part of the table whose columns are not those of the first."""
        if self._first is None:
            self._first = table
        have, first = set(table.data.column_names), set(self._first.data.column_names)
        if have != first:
            odd = sorted(have ^ first)[0]
            one, other = (self._first, table) if odd in first else (table, self._first)
            raise GcondError(
                f"'{one.file}' has the column '{odd}' and '{other.file}' has not: all parts of a table need the same"
            )

    def _labels(self, table: Table) -> np.ndarray:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.labelled and "label" not in table:
            self.labels.setdefault("", 0)
            return np.zeros(table.data.num_rows, dtype=np.int64)
        column = table.column("label")
        if pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
            column = whole_numbers(table, column)
            table = Table(pa.table({"label": column}), table.file)
        encoded = table.text("label").combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        words = [str(word) for word in encoded.dictionary.to_pylist()]
        places = [self.labels.setdefault(word, len(self.labels)) for word in words]
        return np.array(places, dtype=np.int64)[np.asarray(pc.fill_null(encoded.indices, 0))]

    def classes(self) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
        """The class id of every label met so far, by place; the names where they are not 0 to C - 1; what to note."""
        given = [word for word in self.labels if word]
        if not given and not self.labelled:
            return np.full(len(self.labels), -1), (), ()
        if not given:
            raise GcondError(f"no node is labelled: the column 'label' of '{self.files.shown}' is empty")
        ranks, names, notes = class_ranks(given)
        return np.array([ranks[word] if word else -1 for word in self.labels], dtype=np.int64), names, notes

    def _features_of(self, table: Table) -> Tensor | SparseRows | None:
        names = [name for name in table.data.column_names if name not in NODE_COLUMNS]
        if not self._form:
            self._form = feature_form(table, names)
            self._features = names
        names = self._features  # in the first file's order
        if self._form == "none":
            return None
        if self._form == "sparse":
            rows = sparse_features(table, names)
            self.width = max(self.width, 1 + int(rows.indices.max(initial=-1)))
            return rows
        if self._form == "list":
            x = list_features(table, names[0], self.width or None)
            self.width = x.shape[1]
            return x
        self.width = len(names)
        x = torch.empty(table.data.num_rows, len(names))
        for at, name in enumerate(names):
            self._same_kind(table, name)
            x[:, at] = table.numbers(name)
        return x

    def _same_kind(self, table: Table, name: str) -> None:
        """Refuse a column of text files that has booleans in one piece and numbers in another."""
        import pyarrow as pa

        kind = "booleans" if pa.types.is_boolean(table.column(name).type) else "numbers"
        if self._kinds.setdefault(name, kind) != kind:
            raise GcondError(
                f"the column '{name}' of '{table.file}' has booleans beside numbers: "
                "encode it as numbers or leave it out"
            )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns that the features are, where each is a column of its own."""
        return tuple(self._features) if self._form == "wide" else ()

    def feature_notes(self) -> tuple[str, ...]:
        """A note on which columns the features are."""
        if self._form == "none":
            return ()
        shown = listed(self._features, "feature column")
        if self._form == "list":
            return (f"{shown} (lists of {self.width})",)
        return (f"{shown} (sparse, {self.width} features)",) if self._form == "sparse" else (shown,)


def _whole_features(nodes: NodeTable, blocks: list[NodeBlock]) -> Matrix | None:
    """All features of the table; the blocks are let go of."""
    parts = [block.x for block in blocks]
    blocks[:] = [replace(block, x=None) for block in blocks]
    dense = [part for part in parts if isinstance(part, Tensor)]
    if dense:
        return torch.cat(dense) if len(dense) > 1 else dense[0]
    sparse = [part for part in parts if isinstance(part, SparseRows)]
    if not sparse:
        return None
    lengths = np.concatenate([np.diff(part.indptr) for part in sparse])
    indptr, indices, values = (
        torch.from_numpy(array)
        for array in (
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([part.indices for part in sparse]),
            np.concatenate([part.values for part in sparse]),
        )
    )
    return SparseMatrix.from_parts(indptr, indices, values, (len(lengths), nodes.width))


def _split(nodes: Table) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.utf8_lower(nodes.text("split"))
    for part, others in OTHER_NAMES.items():
        words = pc.if_else(pc.is_in(words, value_set=pa.array(others)), part, words)
    known = ("", *PARTS)
    for word in pc.unique(words).to_pylist():
        if word not in known:
            raise GcondError(f"the split '{word}' in '{nodes.file}' is unknown: write train, val, test or nothing")
    return pc.index_in(words, value_set=pa.array(known)).to_numpy().astype(np.int8)


def _all_ids(nodes: TableFiles, blocks: Sequence[NodeBlock]) -> pyarrow.Array | None:
    """The ids of all nodes as text, each once; ``None`` where they have none."""
    import pyarrow as pa

    if "id" not in blocks[0].table:
        return None
    texts = [node_ids(block.table) for block in blocks]
    ids = texts[0] if len(texts) == 1 else pa.concat_arrays(texts)
    each_once(ids, nodes.shown)
    return ids


def _as_given(blocks: Sequence[NodeBlock], ids: pyarrow.Array) -> NodeIds:
    """``ids`` as whole numbers where the table has them so: what is written with them later can be joined by them."""
    import pyarrow as pa

    whole = all(has_whole_ids(block.table) for block in blocks)
    return NodeIds.of(ids.cast(pa.int64()) if whole else ids, len(ids))


def _edge_index(nodes: TableFiles, edges: Table, ids: pyarrow.Array | None) -> Tensor:
    """int64 [2, E]: rows of the node table."""
    if ids is None:
        return torch.stack([row_numbers(edges, end) for end in ("source", "target")])
    return torch.stack([_lookup(nodes, edges, end, ids) for end in ("source", "target")])


def row_numbers(edges: Table, end: str) -> Tensor:
    """int64 [k] of an end of edges between nodes that have no ids."""
    import pyarrow as pa

    column = edges.column(end)
    if not pa.types.is_integer(column.type) or column.null_count:
        column = edges.text(end)
    try:
        return torch.from_numpy(np.array(column.cast(pa.int64()).to_numpy()))
    except pa.ArrowInvalid:
        raise GcondError(
            f"'{edges.file}' names a {end} that is no row number, and the nodes have no column 'id': add one"
        ) from None


def _lookup(nodes: TableFiles, edges: Table, end: str, ids: pyarrow.Array) -> Tensor:
    import pyarrow.compute as pc

    column = edges.text(end)
    rows = pc.index_in(column, value_set=ids)
    if rows.null_count:
        at = first_true(pc.is_null(rows))
        raise unknown_end(at + 1, edges.file, end, column[at].as_py(), nodes.shown)
    return torch.from_numpy(rows.to_numpy().astype(np.int64))


def unknown_end(row: int, edges: Path, end: str, name: str, nodes: Path) -> GcondError:
    return GcondError(f"row {row} of '{edges}' names the {end} '{name}', and '{nodes}' has no such id")
