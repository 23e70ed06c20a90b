"""Features in a table of nodes: every other column, one column of lists, or lists of what is not zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gcond.data.table_file import Table, first_true, is_numeric
from gcond.errors import GcondError

if TYPE_CHECKING:
    import pyarrow

MASK_COLUMNS = ("train_mask", "val_mask", "test_mask", "mask")
SPARSE_COLUMNS = ("feature_index", "feature_value")


@dataclass(frozen=True)
class SparseRows:
    """Sparse features of a block of nodes as CSR arrays, of rows that are sorted and repeat nothing."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def feature_form(table: Table, names: Sequence[str]) -> str:
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


def list_features(nodes: Table, name: str, width: int | None) -> Tensor:
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
        raise GcondError(f"{where} has an entry that is empty or nan in row {nodes.first_row + at + 1}")
    return np.array(flat.cast(pa.float32(), safe=False).to_numpy())


def sparse_features(nodes: Table, names: Sequence[str]) -> SparseRows:
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
