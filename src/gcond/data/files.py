"""A person's own graph: a folder with ``nodes.parquet|csv`` and ``edges.parquet|csv``.

Nodes: an optional ``id`` (whole numbers or text, each once; without it a node's id is its row number from
0), ``label`` (whole number or text; empty or -1 is unlabelled), an optional ``split`` (train, val, test or
empty), and features: every other column, all numeric, or in Parquet one column of equally long lists.
Edges: ``source``, ``target``, and an optional ``weight``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gcond.data import memory
from gcond.data.request import Request
from gcond.data.splits import Split, per_class
from gcond.errors import GcondError
from gcond.graph import PARTS, SourceGraph

if TYPE_CHECKING:
    import pyarrow

KINDS = (".parquet", ".csv")
NODE_COLUMNS = ("id", "label", "split")
EDGE_COLUMNS = ("source", "target", "weight")
TEXT_COLUMNS = ("id", "label", "split", "source", "target")
"""Read as text from CSV, so that the id ``007`` stays what it is."""


@dataclass(frozen=True)
class Table:
    """A table and the file name that messages call it by."""

    data: pyarrow.Table
    file: Path

    def __contains__(self, name: str) -> bool:
        return name in self.data.column_names

    def column(self, name: str) -> pyarrow.ChunkedArray:
        if name not in self:
            have = ", ".join(self.data.column_names[:8])
            raise GcondError(f"'{self.file}' has no column '{name}': it needs one (it has {have})")
        return self.data.column(name)


def holds_tables(folder: Path) -> bool:
    """Whether the folder is of this form, complete or not."""
    return any((folder / f"{part}{kind}").exists() for part in ("nodes", "edges") for kind in KINDS)


def load_folder(folder: Path, request: Request) -> SourceGraph:
    """Read and check both tables; features are used as they are."""
    import pyarrow as pa

    try:
        return _assemble(folder, request)
    except (pa.ArrowException, UnicodeDecodeError) as error:  # damage that shows only when a column is decoded
        raise GcondError(f"the tables in '{folder}' are damaged: {_first_line(error)}") from None


def _assemble(folder: Path, request: Request) -> SourceGraph:
    nodes = _read(_find(folder, "nodes"))
    if nodes.data.num_rows == 0:
        raise GcondError(f"'{nodes.file}' has no rows: there must be at least one node")
    edges = _read(_find(folder, "edges"))
    y, class_names, label_notes = _labels(nodes)
    x = _features(nodes)
    edge_index = _edge_index(nodes, edges)
    weight = _numbers(edges, "weight") if "weight" in edges else None
    extra = [name for name in edges.data.column_names if name not in EDGE_COLUMNS]
    ignored = (f"the edge columns {', '.join(extra)} were not used",) if extra else ()
    split = _split(nodes) if "split" in nodes else per_class(y, request.seed, class_names)
    return SourceGraph.build(
        x=x,
        edge_index=edge_index,
        edge_weight=weight,
        y=y,
        train=split.train,
        val=split.val,
        test=split.test,
        class_names=class_names,
        notes=(split.note, *label_notes, *ignored),
        listed_edges=edges.data.num_rows,
        **request.options(),
    )


def _find(folder: Path, part: str) -> Path:
    for kind in KINDS:
        if (folder / f"{part}{kind}").is_file():
            return folder / f"{part}{kind}"
    raise GcondError(f"the folder '{folder}' has no {part}.parquet or {part}.csv: it needs nodes and edges")


def _read(path: Path) -> Table:
    import pyarrow as pa

    try:
        if path.stat().st_size == 0:
            raise GcondError(f"'{path}' is empty")
        table = _read_csv(path) if path.suffix == ".csv" else _read_parquet(path)
    except GcondError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError, TypeError) as error:
        raise GcondError(f"'{path}' is damaged or not a {path.suffix[1:]} table: {_first_line(error)}") from None
    names = table.column_names
    if any(not name.strip() for name in names):
        raise GcondError(f"'{path}' has a column without a name (an index column?): name it or leave it out")
    if repeated := [name for at, name in enumerate(names) if name in names[:at]]:
        raise GcondError(f"'{path}' has two columns '{repeated[0]}': names must differ")
    return Table(table, path)


def _read_csv(path: Path) -> pyarrow.Table:
    import pyarrow as pa
    from pyarrow import csv

    memory.require(2 * path.stat().st_size, f"'{path}'")
    convert = csv.ConvertOptions(column_types=dict.fromkeys(TEXT_COLUMNS, pa.string()), strings_can_be_null=False)
    return csv.read_csv(path, convert_options=convert)


def _read_parquet(path: Path) -> pyarrow.Table:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        groups = (file.metadata.row_group(at) for at in range(file.metadata.num_row_groups))
        memory.require(2 * sum(group.total_byte_size for group in groups), f"'{path}'")
        return file.read()


def _features(nodes: Table) -> Tensor:
    import pyarrow as pa

    names = [name for name in nodes.data.column_names if name not in NODE_COLUMNS]
    if not names:
        raise GcondError(f"'{nodes.file}' has no feature column: add numeric columns beside {', '.join(NODE_COLUMNS)}")
    lists = [name for name in names if _is_list(nodes.column(name).type)]
    if lists and len(names) > 1:
        raise GcondError(f"'{nodes.file}' has the list column '{lists[0]}' beside other features: use one or the other")
    if lists:
        return _list_features(nodes, lists[0])
    memory.require(4 * nodes.data.num_rows * len(names), f"'{nodes.file}'")
    x = torch.empty(nodes.data.num_rows, len(names))
    for at, name in enumerate(names):
        if pa.types.is_null(nodes.column(name).type):
            raise GcondError(f"the column '{name}' of '{nodes.file}' is empty: features must be numbers")
        x[:, at] = _numbers(nodes, name)
    return x


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _list_features(nodes: Table, name: str) -> Tensor:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = nodes.column(name)
    where = f"the column '{name}' of '{nodes.file}'"
    if not _is_numeric(column.type.value_type):
        raise GcondError(f"{where} holds lists of {column.type.value_type}, and features must be numbers")
    if column.null_count:
        raise GcondError(f"{where} is empty in row {_first(pc.is_null(column)) + 1}: every node needs its features")
    lengths = pc.list_value_length(column).to_numpy()
    width = int(lengths[0])
    if width == 0 or (lengths != width).any():
        at = int((lengths != width).argmax()) if width else 0
        raise GcondError(f"{where} has {lengths[at]} numbers in row {at + 1} and {width} in row 1: all need as many")
    flat = pc.list_flatten(column)
    if flat.null_count:
        raise GcondError(f"{where} has an empty entry in row {_first(pc.is_null(flat)) // width + 1}")
    return torch.from_numpy(np.array(flat.cast(pa.float32(), safe=False).to_numpy())).reshape(-1, width)


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _numbers(table: Table, name: str) -> Tensor:
    """float32 [rows] of a numeric column without gaps."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    where = f"the column '{name}' of '{table.file}'"
    if pa.types.is_null(column.type) and len(column) == 0:
        return torch.empty(0)
    if not _is_numeric(column.type):
        shown = next((str(value) for value in column.to_pylist() if value is not None), "")
        raise GcondError(f"{where} is not numeric (it says '{shown[:40]}'): encode it as numbers or leave it out")
    if column.null_count:
        raise GcondError(f"{where} is empty in row {_first(pc.is_null(column)) + 1}: every row needs a number")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    with np.errstate(over="ignore"):  # too large for float32 becomes inf, which the checks refuse
        return torch.from_numpy(column.to_numpy().astype(np.float32))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["no reason given"])[0][:160]


def _first(mask: pyarrow.ChunkedArray) -> int:
    """Position of the first true entry."""
    return int(np.asarray(mask).argmax())


def _text(table: Table, name: str) -> pyarrow.ChunkedArray:
    """A column of text or whole numbers as trimmed text; nothing is the empty text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_null(kind):
        column, kind = column.cast(pa.string()), pa.string()
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise GcondError(f"the column '{name}' of '{table.file}' holds {kind}: use whole numbers or text")
    return pc.utf8_trim_whitespace(pc.fill_null(column.cast(pa.string()), ""))


def _labels(nodes: Table) -> tuple[Tensor, tuple[str, ...], tuple[str, ...]]:
    """Class ids, their names where they are not simply 0 to C - 1, and what to note."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = nodes.column("label")
    if pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
        column = _whole(nodes, column)
        nodes = Table(pa.table({"label": column}), nodes.file)
    encoded = _text(nodes, "label").combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    words = [str(word) for word in encoded.dictionary.to_pylist()]
    codes = np.asarray(pc.fill_null(encoded.indices, 0))

    given = [word for word in words if word]
    if not given:
        raise GcondError(f"no node is labelled: the column 'label' of '{nodes.file}' is empty")
    numbers = _as_integers(given)
    if numbers is None:
        ranks: dict[str, int] = {word: rank for rank, word in enumerate(sorted(given))}
        names, notes = tuple(sorted(given)), ()
    else:
        if low := min([number for number in numbers if number < -1], default=0):
            raise GcondError(
                f"label {low} in '{nodes.file}' is out of range: class ids start at 0, and -1 is unlabelled"
            )
        distinct = sorted({number for number in numbers if number >= 0})
        place = {number: rank for rank, number in enumerate(distinct)} | {-1: -1}
        ranks = {word: place[number] for word, number in zip(given, numbers, strict=True)}
        names, notes = (), ()
        if distinct != list(range(len(distinct))):
            names = tuple(str(number) for number in distinct)
            notes = (f"the {len(names)} labels were numbered 0 to {len(names) - 1} in order",)  # type: ignore[assignment]
    lookup = np.array([ranks[word] if word else -1 for word in words], dtype=np.int64)
    return torch.from_numpy(lookup[codes]), names, notes


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
    """``1`` and ``1.0`` (what a missing value turns whole numbers into) as integers, if all are such."""
    numbers = []
    for word in words:
        whole, _, fraction = word.partition(".")
        digits = whole.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or fraction.strip("0") or len(digits) > 18:
            return None
        numbers.append(int(whole))
    return numbers


def _split(nodes: Table) -> Split:
    import pyarrow.compute as pc

    words = pc.utf8_lower(_text(nodes, "split"))
    for word in pc.unique(words).to_pylist():
        if word not in ("", *PARTS):
            raise GcondError(f"the split '{word}' in '{nodes.file}' is unknown: write train, val, test or nothing")
    train, val, test = (torch.from_numpy(np.array(pc.equal(words, part).to_numpy())) for part in PARTS)
    return Split(train, val, test, "the split is the table's own")


def _edge_index(nodes: Table, edges: Table) -> Tensor:
    """int64 [2, E]: rows of the node table."""
    ends = [_row_numbers(edges, end) if "id" not in nodes else None for end in ("source", "target")]
    if ends[0] is None or ends[1] is None:
        ids = _ids(nodes)
        ends = [_lookup(nodes, edges, end, ids) for end in ("source", "target")]
    return torch.stack([end for end in ends if end is not None])


def _row_numbers(edges: Table, end: str) -> Tensor:
    import pyarrow as pa

    column = _text(edges, end)
    try:
        return torch.from_numpy(np.array(column.cast(pa.int64()).to_numpy()))
    except pa.ArrowInvalid:
        raise GcondError(
            f"'{edges.file}' names a {end} that is no row number, and the nodes have no column 'id': add one"
        ) from None


def _ids(nodes: Table) -> pyarrow.Array:
    import pyarrow.compute as pc

    ids = _text(nodes, "id").combine_chunks()
    if pc.any(pc.equal(ids, "")).as_py():
        raise GcondError(f"the column 'id' of '{nodes.file}' is empty in row {_first(pc.equal(ids, '')) + 1}")
    if len(pc.unique(ids)) < len(ids):
        counts = pc.value_counts(ids)
        twice = counts.field("values")[_first(pc.greater(counts.field("counts"), 1))].as_py()
        raise GcondError(f"the id '{twice}' appears more than once in '{nodes.file}': every node needs its own")
    return ids


def _lookup(nodes: Table, edges: Table, end: str, ids: pyarrow.Array) -> Tensor:
    import pyarrow.compute as pc

    column = _text(edges, end)
    rows = pc.index_in(column, value_set=ids)
    if rows.null_count:
        at = _first(pc.is_null(rows))
        raise GcondError(
            f"row {at + 1} of '{edges.file}' names the {end} '{column[at].as_py()}', and '{nodes.file}' has no such id"
        )
    return torch.from_numpy(rows.to_numpy().astype(np.int64))
