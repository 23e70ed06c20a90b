"""Tables in CSV and Parquet files: read, and their columns as numbers or text. What they mean is in ``files``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gcond.data import size_check as memory
from gcond.errors import GcondError

if TYPE_CHECKING:
    import pyarrow

KINDS = (".parquet", ".csv")
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

    def numbers(self, name: str) -> Tensor:
        """float32 [rows] of a numeric column without gaps."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.column(name)
        where = f"the column '{name}' of '{self.file}'"
        if pa.types.is_null(column.type) and len(column) == 0:
            return torch.empty(0)
        if not is_numeric(column.type):
            shown = next((str(value) for value in column.to_pylist() if value is not None), "")
            raise GcondError(f"{where} is not numeric (it says '{shown[:40]}'): encode it as numbers or leave it out")
        if column.null_count:
            raise GcondError(f"{where} is empty in row {first_true(pc.is_null(column)) + 1}: every row needs a number")
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        with np.errstate(over="ignore"):  # too large for float32 becomes inf, which the checks refuse
            return torch.from_numpy(column.to_numpy().astype(np.float32))

    def text(self, name: str) -> pyarrow.ChunkedArray:
        """A column of text or whole numbers as trimmed text; nothing is the empty text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.column(name)
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if pa.types.is_null(kind):
            column, kind = column.cast(pa.string()), pa.string()
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise GcondError(f"the column '{name}' of '{self.file}' holds {kind}: use whole numbers or text")
        return pc.utf8_trim_whitespace(pc.fill_null(column.cast(pa.string()), ""))


def read_table(path: Path) -> Table:
    import pyarrow as pa

    try:
        if path.stat().st_size == 0:
            raise GcondError(f"'{path}' is empty")
        table = _read_csv(path) if path.suffix == ".csv" else _read_parquet(path)
    except GcondError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError, TypeError) as error:
        raise GcondError(f"'{path}' is damaged or not a {path.suffix[1:]} table: {first_line(error)}") from None
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


def is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def first_true(mask: pyarrow.ChunkedArray) -> int:
    """Position of the first true entry."""
    return int(np.asarray(mask).argmax())


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["no reason given"])[0][:160]
