"""Sorting and joining more than fits into memory, by DuckDB (Raasveldt and Mühleisen, SIGMOD 2019)."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.errors import GcondError
from gcond.runtime.memory import hand_back

if TYPE_CHECKING:
    import pyarrow

BATCH = 2**20
"""Rows that come back at a time."""
LEAST = 96 * 10**6
"""Bytes below which DuckDB cannot work on two threads."""
OVERHEAD = 80 * 10**6
"""What it takes beside the memory that it counts, however little that is."""
COUNTED = 0.9
"""Of what it may take, the share that it is told of: sorting 200 million entries it took 8 % more than it counted."""


class OutOfCore:
    """DuckDB on ``memory`` bytes, with what does not fit in files below ``folder``."""

    def __init__(self, folder: Path, memory: int, threads: int) -> None:
        duckdb = require_duckdb()
        self._errors: type[Exception] = duckdb.Error
        self._memory = memory
        folder.mkdir()
        self._connection = duckdb.connect(
            config={
                "memory_limit": f"{max(LEAST, int(COUNTED * (memory - OVERHEAD))) // 10**6}MB",
                "temp_directory": str(folder),
                "threads": threads,
                "preserve_insertion_order": False,
            }
        )

    def close(self) -> None:
        self._connection.close()
        hand_back()

    def sorted(self, schema: pyarrow.Schema, batches: Iterable[pyarrow.RecordBatch], key: str) -> Iterator[Any]:
        """All rows of ``batches`` by the column ``key``, as batches."""
        with self._stream("entries", schema, batches):
            yield from self._rows(f'SELECT * FROM entries ORDER BY "{key}"')

    def keep(self, name: str, schema: pyarrow.Schema, batches: Iterable[pyarrow.RecordBatch]) -> None:
        """Make a table ``name`` of ``batches``, for queries to come."""
        with self._stream("kept", schema, batches):
            for _ in self._rows(f"CREATE TEMP TABLE {name} AS SELECT * FROM kept"):
                pass

    def drop(self, name: str) -> None:
        """Let go of a table that was kept, if there is one."""
        self._connection.execute(f"DROP TABLE IF EXISTS {name}")

    def query(self, sql: str, **streams: tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]) -> Iterator[Any]:
        """The rows of a query over tables that are kept and ``streams`` of batches, each of which is read once."""
        with contextlib.ExitStack() as stack:
            for name, (schema, batches) in streams.items():
                stack.enter_context(self._stream(name, schema, batches))
            yield from self._rows(sql)

    def _rows(self, sql: str) -> Iterator[Any]:
        found = self._connection.sql(sql)
        if found is not None:
            read = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch  # the name before version 1.5
            yield from read(BATCH)

    @contextlib.contextmanager
    def _stream(self, name: str, schema: pyarrow.Schema, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[None]:
        """``batches`` as the table ``name``; what fails while they are made is raised as it was."""
        import pyarrow as pa

        failures: list[BaseException] = []

        def watched() -> Iterator[pyarrow.RecordBatch]:
            try:
                yield from batches
            except BaseException as failure:
                failures.append(failure)
                raise

        self._connection.register(name, pa.RecordBatchReader.from_batches(schema, watched()))
        try:
            yield
        except (self._errors, pa.ArrowException) as error:
            if failures:
                raise failures[0] from None
            raise self._said(error) from None
        finally:
            self._connection.unregister(name)

    def _said(self, error: Exception) -> Exception:
        text = str(error)
        if "No space left" in text or "max_temp_directory_size" in text:
            return OSError(errno.ENOSPC, "No space left on device")
        if type(error).__name__ == "OutOfMemoryException":
            return GcondError(
                f"{self._memory / 10**6:.0f} MB are too little to sort the edges within: allow more with memory, "
                f"for example {max(1, round(2 * self._memory / 10**9))}GB more"
            )
        return error


def require_duckdb() -> Any:
    """The library, or a sentence on how to get it."""
    try:
        import duckdb
    except ImportError:
        raise GcondError("packing tables needs DuckDB, which is not installed: pip install 'gcond[pack]'") from None
    return duckdb
