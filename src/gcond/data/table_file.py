"""Tables in CSV and Parquet files, with their columns as numbers or text; ``table_folder`` knows what they mean.

A table is one file or several, and is read block by block, so that it need not fit into memory.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gcond.errors import GcondError

if TYPE_CHECKING:
    import pyarrow

KINDS = (".parquet", ".csv")
TEXT_COLUMNS = ("id", "label", "split", "source", "target")
"""Read as text from CSV, so that the id ``007`` stays what it is."""
SHOWN = 5
"""Names of columns that a note lists at most."""
BLOCK = 16 * 2**20
"""Bytes of a table that are read at a time."""


@dataclass(frozen=True)
class Table:
    """A table, or a block of one, and the file name that messages call it by."""

    data: pyarrow.Table
    file: Path
    first_row: int = 0
    """Rows of the file before this block."""

    def __contains__(self, name: str) -> bool:
        return name in self.data.column_names

    def column(self, name: str) -> pyarrow.ChunkedArray:
        if name not in self:
            have = ", ".join(self.data.column_names[:8])
            raise GcondError(f"'{self.file}' has no column '{name}': it needs one (it has {have})")
        return self.data.column(name)

    def row(self, mask: pyarrow.ChunkedArray) -> int:
        """The row of the file, counted from 1, at which ``mask`` is true first."""
        return self.first_row + first_true(mask) + 1

    def numbers(self, name: str) -> Tensor:
        """float32 [rows] of a numeric column without gaps."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.column(name)
        where = f"the column '{name}' of '{self.file}'"
        if pa.types.is_null(column.type) and len(column) == 0:
            return torch.empty(0)
        if not is_numeric(column.type):
            said = [(row, str(value)) for row, value in enumerate(column.to_pylist(), 1) if value not in (None, "")]
            if not said:  # a piece of a text file in which every field is empty
                raise GcondError(f"{where} is empty or nan in row {self.first_row + 1}: every row needs a number")
            row, shown = next((one for one in said if not _is_number(one[1])), said[0])
            raise GcondError(
                f"{where} is not numeric (row {self.first_row + row} says '{shown[:40]}'): encode it as numbers or "
                "leave it out"
            )
        if column.null_count:
            raise GcondError(f"{where} is empty or nan in row {self.row(pc.is_null(column))}: every row needs a number")
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        with np.errstate(over="ignore"):  # too large for float32 becomes inf, which the checks refuse
            return torch.from_numpy(column.to_numpy().astype(np.float32))

    def weights(self) -> Tensor:
        """float32 [rows] of the column ``weight``, none of them negative; an edge is called by its row."""
        from gcond.graph.validation import usable_weights

        weight = self.numbers("weight")
        usable_weights(weight, lambda at: f"row {self.first_row + at + 1} of '{self.file}'")
        return weight

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


@dataclass(frozen=True)
class TableFiles:
    """The files that make up one table, in their order."""

    files: tuple[Path, ...]

    @property
    def shown(self) -> Path:
        """The name that messages call the whole table by: its file, or a pattern that all of them fit."""
        first = self.files[0]
        return first if len(self.files) == 1 else first.with_name(re.sub(r"\d+(?!.*\d)", "*", first.name))

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)

    @property
    def unpacked_bytes(self) -> int:
        """About how many bytes all columns take in memory."""
        return sum(_unpacked_bytes(file) for file in self.files)

    @property
    def rows(self) -> int | None:
        """The number of rows; ``None`` where only reading the files would tell."""
        from pyarrow import parquet

        if any(file.suffix != ".parquet" for file in self.files):
            return None
        counts = []
        for path in self.files:
            with _refusing_damage(path), parquet.ParquetFile(path) as file:
                counts.append(file.metadata.num_rows)
        return sum(counts)

    @property
    def about_rows(self) -> int:
        """The number of rows; of text files about that, by the length of the first lines."""
        if (rows := self.rows) is not None:
            return rows
        with _refusing_damage(self.files[0]), open(self.files[0], "rb") as file:
            start = file.read(2**20)
        return max(1, self.bytes * start.count(b"\n") // max(1, len(start)))

    def blocks(self) -> Iterator[Table]:
        """The table, block by block and file after file; of an empty file one block without rows, for its columns."""
        for path in self.files:
            first_row = 0
            with _refusing_damage(path):
                if path.stat().st_size == 0:
                    raise GcondError(f"'{path}' is empty")
                for data in _csv_blocks(path) if path.suffix == ".csv" else _parquet_blocks(path):
                    if first_row == 0:
                        _check_names(data.column_names, path)
                    yield Table(data, path, first_row)
                    first_row += data.num_rows


def find_table(folder: Path, part: str) -> TableFiles | None:
    """The table ``part``: ``part.parquet``, or in many files ``part-*.parquet`` or ``part/*.parquet``; or the same in
    CSV.
    """
    for kind in KINDS:
        if (folder / f"{part}{kind}").is_file():
            return TableFiles((folder / f"{part}{kind}",))
    for kind in KINDS:
        for pattern in (f"{part}-*{kind}", f"{part}/*{kind}"):
            if files := sorted((path for path in folder.glob(pattern) if path.is_file()), key=_natural):
                return TableFiles(tuple(files))
    return None


def _natural(path: Path) -> list[tuple[int, str]]:
    """A key by which ``part-2`` comes before ``part-10``."""
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", path.name)]


@contextlib.contextmanager
def _refusing_damage(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except GcondError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError, TypeError) as error:
        raise GcondError(f"'{path}' is damaged or not a {path.suffix[1:]} table: {first_line(error)}") from None


def _check_names(names: list[str], path: Path) -> None:
    if any(not name.strip() for name in names):
        raise GcondError(f"'{path}' has a column without a name (an index column?): name it or leave it out")
    if repeated := [name for at, name in enumerate(names) if name in names[:at]]:
        raise GcondError(f"'{path}' has two columns '{repeated[0]}': names must differ")


def _unpacked_bytes(path: Path) -> int:
    from pyarrow import parquet

    if path.suffix == ".csv":
        return path.stat().st_size
    with _refusing_damage(path), parquet.ParquetFile(path) as file:
        groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
        return sum(_decoded_bytes(group.column(place)) for group in groups for place in range(group.num_columns))


def _decoded_bytes(chunk: pyarrow.parquet.ColumnChunkMetaData) -> int:
    """Bytes of a column's piece in memory: its size without compression may still be that of a dictionary."""
    width = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}.get(chunk.physical_type, 4)
    return max(int(chunk.total_uncompressed_size), width * int(chunk.num_values))


def _csv_blocks(path: Path) -> Iterator[pyarrow.Table]:
    """A file in pieces that end with a line; the columns that are not text have the type that suits each piece."""
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(column_types=dict.fromkeys(TEXT_COLUMNS, pa.string()), strings_can_be_null=False)
    names: list[str] | None = None
    with open(path, "rb") as file:
        while piece := file.read(BLOCK):
            piece += file.readline()
            if names is None:  # a row beside the header, however long that is
                piece += file.readline()
            if names is not None and not piece.strip():
                continue
            read = csv.ReadOptions(column_names=names)
            table = csv.read_csv(io.BytesIO(piece), read_options=read, convert_options=convert)
            names = table.column_names
            yield table


def _parquet_blocks(path: Path) -> Iterator[pyarrow.Table]:
    import pyarrow as pa
    from pyarrow import parquet

    # Without a buffer for each column, all of a row group, which may be the whole file, is read at once.
    with parquet.ParquetFile(path) as file:
        buffer = min(2**20, max(2**12, BLOCK // max(1, file.metadata.num_columns)))
    with parquet.ParquetFile(path, buffer_size=buffer, pre_buffer=False) as file:
        rows = file.metadata.num_rows
        wide = _unpacked_bytes(path) // max(1, rows)
        empty = True
        for batch in file.iter_batches(max(1, BLOCK // max(1, wide))):
            empty = False
            yield pa.Table.from_batches([batch])
        if empty:
            yield file.schema_arrow.empty_table()


def is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def first_true(mask: pyarrow.ChunkedArray) -> int:
    """Position of the first true entry."""
    return int(np.asarray(mask).argmax())


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["no reason given"])[0][:160]


def listed(names: Sequence[str], what: str = "column") -> str:
    """``2 columns: age, size``; long lists are cut."""
    shown = ", ".join([*names[:SHOWN], *(["…"] if len(names) > SHOWN else [])])
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}: {shown}"
