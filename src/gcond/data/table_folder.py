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
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gcond.data.load_request import Request
from gcond.data.size_check import require_memory
from gcond.data.splits import OTHER_NAMES, Split
from gcond.data.table_file import Table, TableFiles, find_table, first_line, first_true, is_numeric
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.graph.node_ids import NodeIds
from gcond.graph.source_graph import PARTS
from gcond.linalg.sparse import Matrix, SparseMatrix

if TYPE_CHECKING:
    import pyarrow

NODE_COLUMNS = ("id", "label", "split")
EDGE_COLUMNS = ("source", "target", "weight")
MASK_COLUMNS = ("train_mask", "val_mask", "test_mask", "mask")
SPARSE_COLUMNS = ("feature_index", "feature_value")
OWN_SPLIT = "the split is the table's own"
SHOWN = 5
"""Names of columns that a note lists at most."""


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
        edge_weight=edges.numbers("weight") if "weight" in edges else None,
        y=y,
        class_names=class_names,
        notes=(*nodes.feature_notes(), *label_notes, *edge_notes(edges)),
        ids=_as_given(blocks[0].table, ids) if ids is not None else None,
    )


def find(folder: Path, part: str) -> TableFiles:
    """The files of a table that must be there."""
    if (found := find_table(folder, part)) is not None:
        return found
    raise GcondError(f"the folder '{folder}' has no {part}.parquet or {part}.csv: it needs nodes and edges")


def edge_notes(edges: Table) -> tuple[str, ...]:
    """A note on the columns of the edges that say nothing here."""
    extra = [name for name in edges.data.column_names if name not in EDGE_COLUMNS]
    return (f"not used of the edges: {_columns(extra)}",) if extra else ()


def _whole_table(files: TableFiles) -> Table:
    """All blocks as one table, in which rows are counted through."""
    import pyarrow as pa

    blocks = list(files.blocks())
    if len(blocks) == 1:
        return blocks[0]
    kept = [name for name in EDGE_COLUMNS if any(name in block for block in blocks)]
    columns = {
        name: pa.array(torch.cat([block.numbers(name) for block in blocks]).numpy())
        if name == "weight"
        else pa.chunked_array([chunk for block in blocks for chunk in block.text(name).chunks], pa.string())
        for name in kept
    }
    for name in blocks[0].data.column_names:
        if name not in EDGE_COLUMNS:  # named in a note, and not looked at
            columns[name] = pa.nulls(sum(block.data.num_rows for block in blocks))
    return Table(pa.table(columns), files.shown)


def _columns(names: Sequence[str], what: str = "column") -> str:
    """``2 columns: age, size``; long lists are cut."""
    shown = ", ".join([*names[:SHOWN], *(["…"] if len(names) > SHOWN else [])])
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}: {shown}"


@dataclass(frozen=True)
class SparseRows:
    """Sparse features of a block of nodes as CSR arrays, of rows that are sorted and repeat nothing."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


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
            column = _whole(table, column)
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
        ranks, names, notes = _ranks(given)
        return np.array([ranks[word] if word else -1 for word in self.labels], dtype=np.int64), names, notes

    def _features_of(self, table: Table) -> Tensor | SparseRows | None:
        names = [name for name in table.data.column_names if name not in NODE_COLUMNS]
        if not self._form:
            self._form = _form(table, names)
            self._features = names
        names = self._features  # in the first file's order
        if self._form == "none":
            return None
        if self._form == "sparse":
            rows = _sparse_features(table, names)
            self.width = max(self.width, 1 + int(rows.indices.max(initial=-1)))
            return rows
        if self._form == "list":
            x = _list_features(table, names[0], self.width or None)
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

    def feature_notes(self) -> tuple[str, ...]:
        """A note on which columns the features are."""
        if self._form == "none":
            return ()
        shown = _columns(self._features, "feature column")
        if self._form == "list":
            return (f"{shown} (lists of {self.width})",)
        return (f"{shown} (sparse, {self.width} features)",) if self._form == "sparse" else (shown,)


def _form(table: Table, names: Sequence[str]) -> str:
    """How the columns ``names`` hold features: wide, list, sparse or none."""
    import pyarrow as pa

    if not names:
        return "none"
    if masks := [name for name in names if name.strip().lower() in MASK_COLUMNS]:
        raise GcondError(
            f"the column '{masks[0]}' of '{table.file}' looks like a split and not like a feature: "
            "give one column 'split' with train, val, test or nothing"
        )
    lists = [name for name in names if _is_list(table.column(name).type)]
    if SPARSE_COLUMNS[0] in lists and set(names) <= set(SPARSE_COLUMNS) and len(lists) == len(names):
        return "sparse"
    if lists and len(names) > 1:
        raise GcondError(f"'{table.file}' has the list column '{lists[0]}' beside other features: use one or the other")
    if lists:
        return "list"
    for name in names:
        if pa.types.is_null(table.column(name).type):
            raise GcondError(f"the column '{name}' of '{table.file}' is empty: features must be numbers")
    return "wide"


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _list_features(nodes: Table, name: str, width: int | None) -> Tensor:
    """float32 [k, width]; the first row of the table says how wide."""
    import pyarrow.compute as pc

    column, where = _list_column(nodes, name)
    lengths = pc.list_value_length(column).to_numpy()
    width = int(lengths[0]) if width is None else width
    if width == 0 or (lengths != width).any():
        at = int((lengths != width).argmax()) if width else 0
        row = nodes.first_row + at + 1
        raise GcondError(f"{where} has {lengths[at]} numbers in row {row} and {width} in row 1: all need as many")
    return torch.from_numpy(_list_numbers(nodes, column, where, lengths)).reshape(-1, width)


def _list_column(nodes: Table, name: str) -> tuple[pyarrow.ChunkedArray, str]:
    """A column of lists of numbers, one for every node, and its name in messages."""
    import pyarrow.compute as pc

    column = nodes.column(name)
    where = f"the column '{name}' of '{nodes.file}'"
    if not is_numeric(column.type.value_type):
        raise GcondError(f"{where} holds lists of {column.type.value_type}, and features must be numbers")
    if column.null_count:
        raise GcondError(f"{where} is empty in row {nodes.row(pc.is_null(column))}: every node needs its features")
    return column, where


def _list_numbers(nodes: Table, column: pyarrow.ChunkedArray, where: str, lengths: np.ndarray) -> np.ndarray:
    """float32: all numbers of the lists, one after the other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    flat = pc.list_flatten(column)
    if flat.null_count:
        at = int(np.searchsorted(np.cumsum(lengths), first_true(pc.is_null(flat)), side="right"))
        raise GcondError(f"{where} has an empty entry in row {nodes.first_row + at + 1}")
    return np.array(flat.cast(pa.float32(), safe=False).to_numpy())


def _sparse_features(nodes: Table, names: Sequence[str]) -> SparseRows:
    """CSR of ``feature_index`` and ``feature_value``; repeated entries of a row are summed, as SciPy does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, where = _list_column(nodes, SPARSE_COLUMNS[0])
    if not pa.types.is_integer(column.type.value_type):
        raise GcondError(f"{where} holds lists of {column.type.value_type}: it must list columns, whole numbers from 0")
    lengths = pc.list_value_length(column).to_numpy().astype(np.int64)
    flat = pc.list_flatten(column)
    if flat.null_count:
        _list_numbers(nodes, column, where, lengths)
    indices = np.asarray(flat.cast(pa.int64()))
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= 2**31 - 1):
        wrong = int(indices.min()) if int(indices.min()) < 0 else int(indices.max())
        raise GcondError(f"{where} names the feature {wrong}: features are numbered from 0, up to {2**31 - 2}")
    values = np.ones(len(indices), dtype=np.float32)
    if SPARSE_COLUMNS[1] in names:
        column, other = _list_column(nodes, SPARSE_COLUMNS[1])
        counts = pc.list_value_length(column).to_numpy()
        if (counts != lengths).any():
            at = int((counts != lengths).argmax())
            raise GcondError(
                f"{other} has {counts[at]} numbers in row {nodes.first_row + at + 1} and '{SPARSE_COLUMNS[0]}' has "
                f"{lengths[at]}: both need as many"
            )
        values = _list_numbers(nodes, column, other, lengths)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    width = 1 + int(indices.max(initial=-1))
    matrix = scipy.sparse.csr_matrix((values, indices, indptr), shape=(len(lengths), width))
    matrix.sum_duplicates()
    return SparseRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)


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


def _ranks(words: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """The class id of each distinct label, the names where they are not simply 0 to C - 1, and what to note."""
    numbers = _as_integers(words)
    if numbers is None:
        names = tuple(sorted(words))
        return {word: rank for rank, word in enumerate(names)}, names, ()
    distinct = sorted(set(numbers))
    place = {number: rank for rank, number in enumerate(distinct)}
    ranks = {word: place[number] for word, number in zip(words, numbers, strict=True)}
    if distinct == list(range(len(distinct))):
        return ranks, (), ()
    note = f"the {len(distinct)} labels were numbered 0 to {len(distinct) - 1} in order"
    if -1 in distinct:  # elsewhere it often means unlabelled
        note += ", and -1 is one of them: leave a label empty where there is none"
    return ranks, tuple(map(str, distinct)), (note,)


def _whole(nodes: Table, column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Booleans, and numbers that a missing value turned into floats, as integers; NaN is unlabelled."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(column.type):
        return column.cast(pa.int64())
    column = pc.if_else(pc.is_nan(column), None, column.cast(pa.float64()))
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise GcondError(f"the column 'label' of '{nodes.file}' has labels that are not whole numbers") from None


def _as_integers(words: Sequence[str]) -> list[int] | None:
    """``1``, ``+1`` and ``1.0`` (what a missing value turns whole numbers into) as integers, if all are such."""
    numbers = []
    for word in words:
        whole, _, fraction = word.partition(".")
        digits = whole[1:] if whole.startswith(("-", "+")) else whole
        if not digits.isascii() or not digits.isdigit() or fraction.strip("0") or len(digits) > 18:
            return None
        numbers.append(int(whole))
    return numbers


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
    _each_once(ids, nodes.shown)
    return ids


def _as_given(nodes: Table, ids: pyarrow.Array) -> NodeIds:
    """``ids`` as whole numbers where the table has them so: what is written with them later can be joined by them."""
    import pyarrow as pa

    whole = pa.types.is_integer(nodes.column("id").type)
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


def node_ids(nodes: Table) -> pyarrow.Array:
    """The ids of a block of nodes as text, none of them empty."""
    import pyarrow.compute as pc

    ids = nodes.text("id").combine_chunks()
    if pc.any(pc.equal(ids, "")).as_py():
        raise GcondError(f"the column 'id' of '{nodes.file}' is empty in row {nodes.row(pc.equal(ids, ''))}")
    return ids


def _each_once(ids: pyarrow.Array, shown: Path) -> None:
    import pyarrow.compute as pc

    if len(pc.unique(ids)) < len(ids):
        counts = pc.value_counts(ids)
        raise twice(counts.field("values")[first_true(pc.greater(counts.field("counts"), 1))].as_py(), shown)


def twice(name: str, shown: Path) -> GcondError:
    return GcondError(f"the id '{name}' appears more than once in '{shown}': every node needs its own")


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
