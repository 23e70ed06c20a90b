"""Raw folders of the Open Graph Benchmark (Hu et al., NeurIPS 2020) for node classification.

``raw/edge.csv.gz`` (source, target), ``raw/node-feat.csv.gz`` (d numbers per row), ``raw/node-label.csv.gz``
and ``split/NAME/{train,valid,test}.csv.gz`` (one node id per row); none has a header.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gcond.data.arrays import finite
from gcond.data.load_request import Request
from gcond.data.size_check import require_memory
from gcond.data.splits import Split
from gcond.errors import GcondError
from gcond.graph import SourceGraph

if TYPE_CHECKING:
    import pyarrow

LONGEST_LINE = 2**20


def load(folder: Path, request: Request) -> SourceGraph:
    """Standardised by the training nodes by default; the split is OGB's own."""
    y = _integers(folder / "raw" / "node-label.csv.gz", 1)[0]
    splits = sorted(path.parent for path in (folder / "split").glob("*/train.csv.gz"))
    if len(splits) != 1:
        raise GcondError(f"'{folder / 'split'}' must hold one folder with train.csv.gz, valid.csv.gz and test.csv.gz")
    names = {"train": "train", "val": "valid", "test": "test"}
    parts = {part: _integers(splits[0] / f"{file}.csv.gz", 1)[0] for part, file in names.items()}
    for part, ids in parts.items():
        if len(ids) == 0 or int(ids.min()) < 0 or int(ids.max()) >= len(y):
            raise GcondError(f"'{splits[0] / names[part]}.csv.gz' must list node ids from 0 to {len(y) - 1}")
    edge_index = _integers(folder / "raw" / "edge.csv.gz", 2)
    x = _features(folder / "raw" / "node-feat.csv.gz", len(y))
    split = Split(**parts, note=f"the split is OGB's own, by {splits[0].name}")
    listed = edge_index.shape[1]  # OGB lists an edge once; its reverse is added on reading
    return request.build(split, usual="standardise", x=x, edge_index=edge_index, y=y, listed_edges=listed)


def _integers(path: Path, columns: int) -> Tensor:
    """int64 [columns, rows]."""
    blocks = [np.stack([np.asarray(column) for column in batch.columns]) for batch in _batches(path, "int64", columns)]
    if not blocks:
        raise GcondError(f"'{path}' is empty")
    return torch.from_numpy(np.concatenate(blocks, axis=1))


def _features(path: Path, n: int) -> Tensor:
    """float32 [n, d], filled block by block so that it never stands in memory twice."""
    columns = _count_columns(path)
    require_memory(3 * 4 * n * columns, f"'{path}' ({n} by {columns})")
    x = torch.empty(n, columns)
    start = 0
    for batch in _batches(path, "float32", columns):
        stop = start + batch.num_rows
        if stop > n:
            break
        for at, column in enumerate(batch.columns):
            x[start:stop, at] = torch.from_numpy(column.to_numpy(zero_copy_only=False).copy())
        start = stop
    if start != n or stop > n:
        raise GcondError(f"'{path}' has {'more' if stop > n else start} rows, and node-label.csv.gz has {n}")
    return finite(x, f"'{path}'")


def _count_columns(path: Path) -> int:
    try:
        with gzip.open(path, "rb") as file:
            line = file.readline(LONGEST_LINE)
    except FileNotFoundError:
        raise GcondError(f"there is no file '{path}': an OGB folder has its csv.gz files under raw and split") from None
    except (OSError, EOFError, zlib.error):
        raise _damaged(path) from None
    if not line.strip() or len(line) == LONGEST_LINE:
        raise GcondError(f"'{path}' is empty" if not line.strip() else f"'{path}' is not a table of numbers")
    return line.count(b",") + 1


def _batches(path: Path, kind: str, columns: int) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa
    from pyarrow import csv

    if (found := _count_columns(path)) != columns:
        raise GcondError(f"'{path}' has {found} columns, and {columns} are needed")
    names = [f"column {at + 1}" for at in range(columns)]
    try:
        with pa.input_stream(str(path), compression="gzip") as stream:
            reader = csv.open_csv(
                stream,
                read_options=csv.ReadOptions(column_names=names, use_threads=False),
                convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, kind)),
            )
            for batch in reader:
                if any(column.null_count for column in batch.columns):
                    raise GcondError(f"'{path}' has empty fields, and every field must be a number")
                yield batch
    except pa.ArrowInvalid as error:
        raise GcondError(f"'{path}' is not a table of numbers: {str(error).splitlines()[0]}") from None
    except (pa.ArrowException, OSError):
        raise _damaged(path) from None


def _damaged(path: Path) -> GcondError:
    return GcondError(f"'{path}' is damaged, cut short or not a gzip file")
