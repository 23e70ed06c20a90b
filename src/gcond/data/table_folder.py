"""A person's own graph: a folder with ``nodes.parquet|csv`` and ``edges.parquet|csv``.

Nodes: an optional ``id`` (whole numbers or text, each once; without it a node's id is its row number from
0), ``label`` (whole number or text; only an empty one is unlabelled), an optional ``split`` (train, val, test or
empty), and features: every other column, all numeric, or in Parquet one column of equally long lists; without any,
the graph gets structural features.
Edges: ``source``, ``target``, and an optional ``weight``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gcond.data.load_request import Request
from gcond.data.size_check import require_memory
from gcond.data.splits import Split, per_class
from gcond.data.table_file import KINDS, Table, first_line, first_true, is_numeric, read_table
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.graph.source_graph import PARTS

if TYPE_CHECKING:
    import pyarrow

NODE_COLUMNS = ("id", "label", "split")
EDGE_COLUMNS = ("source", "target", "weight")
MASK_COLUMNS = ("train_mask", "val_mask", "test_mask", "mask")
SHOWN = 5
"""Names of columns that a note lists at most."""


def holds_tables(folder: Path) -> bool:
    """Whether the folder is of this form, complete or not."""
    return any((folder / f"{part}{kind}").exists() for part in ("nodes", "edges") for kind in KINDS)


def load(folder: Path, request: Request) -> SourceGraph:
    """Read and check both tables."""
    import pyarrow as pa

    try:
        return _assemble(folder, request)
    except (pa.ArrowException, UnicodeDecodeError) as error:  # damage that shows only when a column is decoded
        raise GcondError(f"the tables in '{folder}' are damaged: {first_line(error)}") from None


def _assemble(folder: Path, request: Request) -> SourceGraph:
    nodes = read_table(_find(folder, "nodes"))
    if nodes.data.num_rows == 0:
        raise GcondError(f"'{nodes.file}' has no rows: there must be at least one node")
    edges = read_table(_find(folder, "edges"))
    y, class_names, label_notes = _labels(nodes)
    x, feature_notes = _features(nodes)
    split = _split(nodes) if "split" in nodes else per_class(y, request.seed, class_names)
    extra = [name for name in edges.data.column_names if name not in EDGE_COLUMNS]
    ignored = (f"not used of the edges: {_columns(extra)}",) if extra else ()
    return request.build(
        split,
        x=x,
        edge_index=_edge_index(nodes, edges),
        edge_weight=edges.numbers("weight") if "weight" in edges else None,
        y=y,
        class_names=class_names,
        notes=(*feature_notes, *label_notes, *ignored),
    )


def _find(folder: Path, part: str) -> Path:
    for kind in KINDS:
        if (folder / f"{part}{kind}").is_file():
            return folder / f"{part}{kind}"
    raise GcondError(f"the folder '{folder}' has no {part}.parquet or {part}.csv: it needs nodes and edges")


def _columns(names: Sequence[str], what: str = "column") -> str:
    """``2 columns: age, size``; long lists are cut."""
    shown = ", ".join([*names[:SHOWN], *(["…"] if len(names) > SHOWN else [])])
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}: {shown}"


def _features(nodes: Table) -> tuple[Tensor | None, tuple[str, ...]]:
    """float32 [N, d], or None where there are none, and notes on which columns they are."""
    import pyarrow as pa

    names = [name for name in nodes.data.column_names if name not in NODE_COLUMNS]
    if not names:
        return None, ()
    if masks := [name for name in names if name.strip().lower() in MASK_COLUMNS]:
        raise GcondError(
            f"the column '{masks[0]}' of '{nodes.file}' looks like a split and not like a feature: "
            "give one column 'split' with train, val, test or nothing"
        )
    lists = [name for name in names if _is_list(nodes.column(name).type)]
    if lists and len(names) > 1:
        raise GcondError(f"'{nodes.file}' has the list column '{lists[0]}' beside other features: use one or the other")
    if lists:
        x = _list_features(nodes, lists[0])
        return x, (f"{_columns(lists, 'feature column')} (lists of {x.shape[1]})",)
    require_memory(4 * nodes.data.num_rows * len(names), f"'{nodes.file}'")
    x = torch.empty(nodes.data.num_rows, len(names))
    for at, name in enumerate(names):
        if pa.types.is_null(nodes.column(name).type):
            raise GcondError(f"the column '{name}' of '{nodes.file}' is empty: features must be numbers")
        x[:, at] = nodes.numbers(name)
    return x, (_columns(names, "feature column"),)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _list_features(nodes: Table, name: str) -> Tensor:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = nodes.column(name)
    where = f"the column '{name}' of '{nodes.file}'"
    if not is_numeric(column.type.value_type):
        raise GcondError(f"{where} holds lists of {column.type.value_type}, and features must be numbers")
    if column.null_count:
        raise GcondError(f"{where} is empty in row {first_true(pc.is_null(column)) + 1}: every node needs its features")
    lengths = pc.list_value_length(column).to_numpy()
    width = int(lengths[0])
    if width == 0 or (lengths != width).any():
        at = int((lengths != width).argmax()) if width else 0
        raise GcondError(f"{where} has {lengths[at]} numbers in row {at + 1} and {width} in row 1: all need as many")
    flat = pc.list_flatten(column)
    if flat.null_count:
        raise GcondError(f"{where} has an empty entry in row {first_true(pc.is_null(flat)) // width + 1}")
    return torch.from_numpy(np.array(flat.cast(pa.float32(), safe=False).to_numpy())).reshape(-1, width)


def _labels(nodes: Table) -> tuple[Tensor, tuple[str, ...], tuple[str, ...]]:
    """Class ids, their names where they are not simply 0 to C - 1, and what to note."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = nodes.column("label")
    if pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
        column = _whole(nodes, column)
        nodes = Table(pa.table({"label": column}), nodes.file)
    encoded = nodes.text("label").combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    words = [str(word) for word in encoded.dictionary.to_pylist()]
    codes = np.asarray(pc.fill_null(encoded.indices, 0))

    given = [word for word in words if word]
    if not given:
        raise GcondError(f"no node is labelled: the column 'label' of '{nodes.file}' is empty")
    ranks, names, notes = _ranks(given)
    lookup = np.array([ranks[word] if word else -1 for word in words], dtype=np.int64)
    return torch.from_numpy(lookup[codes]), names, notes


def _ranks(words: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """The class id of each distinct label, and the names and notes of :func:`_labels`."""
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


def _split(nodes: Table) -> Split:
    import pyarrow.compute as pc

    words = pc.utf8_lower(nodes.text("split"))
    for word in pc.unique(words).to_pylist():
        if word not in ("", *PARTS):
            raise GcondError(f"the split '{word}' in '{nodes.file}' is unknown: write train, val, test or nothing")
    train, val, test = (torch.from_numpy(np.array(pc.equal(words, part).to_numpy())) for part in PARTS)
    return Split(train, val, test, "the split is the table's own")


def _edge_index(nodes: Table, edges: Table) -> Tensor:
    """int64 [2, E]: rows of the node table."""
    if "id" not in nodes:
        return torch.stack([_row_numbers(edges, end) for end in ("source", "target")])
    ids = _ids(nodes)
    return torch.stack([_lookup(nodes, edges, end, ids) for end in ("source", "target")])


def _row_numbers(edges: Table, end: str) -> Tensor:
    import pyarrow as pa

    column = edges.text(end)
    try:
        return torch.from_numpy(np.array(column.cast(pa.int64()).to_numpy()))
    except pa.ArrowInvalid:
        raise GcondError(
            f"'{edges.file}' names a {end} that is no row number, and the nodes have no column 'id': add one"
        ) from None


def _ids(nodes: Table) -> pyarrow.Array:
    import pyarrow.compute as pc

    ids = nodes.text("id").combine_chunks()
    if pc.any(pc.equal(ids, "")).as_py():
        raise GcondError(f"the column 'id' of '{nodes.file}' is empty in row {first_true(pc.equal(ids, '')) + 1}")
    if len(pc.unique(ids)) < len(ids):
        counts = pc.value_counts(ids)
        twice = counts.field("values")[first_true(pc.greater(counts.field("counts"), 1))].as_py()
        raise GcondError(f"the id '{twice}' appears more than once in '{nodes.file}': every node needs its own")
    return ids


def _lookup(nodes: Table, edges: Table, end: str, ids: pyarrow.Array) -> Tensor:
    import pyarrow.compute as pc

    column = edges.text(end)
    rows = pc.index_in(column, value_set=ids)
    if rows.null_count:
        at = first_true(pc.is_null(rows))
        raise GcondError(
            f"row {at + 1} of '{edges.file}' names the {end} '{column[at].as_py()}', and '{nodes.file}' has no such id"
        )
    return torch.from_numpy(rows.to_numpy().astype(np.int64))
