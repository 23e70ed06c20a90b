"""Raw folders of the Open Graph Benchmark (Hu et al., NeurIPS 2020) for node classification, in both of its forms.

As text (ogbn-arxiv, ogbn-products): ``raw/edge.csv.gz`` (source, target), ``raw/node-feat.csv.gz`` (d numbers per row)
and ``raw/node-label.csv.gz``; none has a header. Binary (ogbn-papers100M): ``raw/data.npz`` with ``edge_index`` [2, E],
``node_feat`` [N, d] and ``num_nodes_list``, and ``raw/node-label.npz`` with ``node_label`` [N, 1], in which NaN is
unlabelled; an array may lie beside them unpacked, as ``raw/node_feat.npy``. In both
``split/NAME/{train,valid,test}.csv.gz`` has one node id per row.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gcond.data.array_stream import ArrayStream
from gcond.data.arrays import finite, tensor
from gcond.data.graph_stream import GraphStream
from gcond.data.load_request import Request
from gcond.data.splits import Split
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.graph.validation import class_ids

if TYPE_CHECKING:
    import pyarrow

LONGEST_LINE = 2**20


def holds_ogb(folder: Path) -> bool:
    """Whether the folder is of this form, complete or not."""
    return any((folder / "raw" / name).exists() for name in ("node-feat.csv.gz", "data.npz", "node_feat.npy"))


def load(folder: Path, request: Request) -> SourceGraph:
    """Standardised by the training nodes by default; the split is OGB's own."""
    return stream(folder).load(request, f"'{folder}'")


def stream(folder: Path) -> GraphStream:
    """The folder piece by piece; labels and split are looked at right away."""
    if (folder / "raw" / "node-feat.csv.gz").exists() or not holds_ogb(folder):
        return _text(folder)
    return _binary(folder)


def _text(folder: Path) -> GraphStream:
    raw = folder / "raw"
    y = _integers(raw / "node-label.csv.gz")
    split = _split(folder, len(y))
    features = raw / "node-feat.csv.gz"
    return GraphStream(
        nodes=len(y),
        features=_count_columns(features),
        x=partial(_features, features, len(y)),
        y=lambda: iter([y]),
        split=split,
        edges=partial(_edges, raw / "edge.csv.gz"),
        about_edges=_about_edges(raw / "edge.csv.gz"),
        usual="standardise",
        listed_once=True,  # a reverse is added on reading
    )


def _binary(folder: Path) -> GraphStream:
    x, edges = _array(folder, "node_feat").must_be_matrix(), _array(folder, "edge_index")
    label = _array(folder, "node_label", "node-label.npz")
    n = x.shape[0]
    if len(edges.shape) != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise GcondError(f"{edges.label} must be whole numbers [2, edges], sources above targets")
    if label.dtype.kind not in "iuf":
        raise GcondError(
            f"{label.label} holds {label.dtype} values, and each must be a class id, or NaN for unlabelled"
        )
    if label.size != n:
        raise GcondError(f"{label.label} has {label.size} labels, and {x.label} has {n} rows: both must agree")
    return GraphStream(
        nodes=n,
        features=x.shape[1],
        x=lambda: (finite(tensor(block, x.label), x.label) for block in x.rows()),
        y=lambda: (_labels(block) for block in label.numbers()),
        split=_split(folder, n),
        edges=partial(_pairs, edges),
        about_edges=edges.shape[1],
        usual="standardise",
        listed_once=True,
    )


def _array(folder: Path, key: str, archive: str = "data.npz") -> ArrayStream:
    unpacked = folder / "raw" / f"{key}.npy"
    return ArrayStream(unpacked) if unpacked.exists() else ArrayStream(folder / "raw" / archive, key)


def _labels(block: np.ndarray) -> Tensor:
    if block.dtype.kind == "f":
        block = np.where(np.isnan(block), -1, block)
    return class_ids(torch.from_numpy(np.ascontiguousarray(block)))


def _pairs(edges: ArrayStream) -> Iterator[Tensor]:
    """Sources and targets side by side, which lie one after the other in the file."""
    count = edges.shape[1]
    for source, target in zip(edges.numbers(0, count), edges.numbers(count, 2 * count), strict=True):
        yield torch.stack([tensor(source, edges.label).long(), tensor(target, edges.label).long()])


def _split(folder: Path, n: int) -> Split:
    splits = sorted(path.parent for path in (folder / "split").glob("*/train.csv.gz"))
    if len(splits) != 1:
        raise GcondError(f"'{folder / 'split'}' must hold one folder with train.csv.gz, valid.csv.gz and test.csv.gz")
    names = {"train": "train", "val": "valid", "test": "test"}
    parts = {part: _integers(splits[0] / f"{file}.csv.gz") for part, file in names.items()}
    for part, ids in parts.items():
        if len(ids) == 0 or int(ids.min()) < 0 or int(ids.max()) >= n:
            raise GcondError(f"'{splits[0] / names[part]}.csv.gz' must list node ids from 0 to {n - 1}")
    return Split(**parts, note=f"the split is OGB's own, by {splits[0].name}")


def _integers(path: Path) -> Tensor:
    """int64 [rows] of a file with one column."""
    blocks = [batch.column(0).to_numpy() for batch in _batches(path, "int64", 1)]
    if not blocks:
        raise GcondError(f"'{path}' is empty")
    return torch.from_numpy(np.concatenate(blocks))


def _about_edges(path: Path) -> int:
    """A guess: two numbers of a few digits take about four bytes in a compressed file."""
    return path.stat().st_size // 4 if path.exists() else 0


def _edges(path: Path) -> Iterator[Tensor]:
    """int64 [2, k]."""
    empty = True
    for batch in _batches(path, "int64", 2):
        empty = False
        yield torch.from_numpy(np.stack([np.asarray(column) for column in batch.columns]))
    if empty:
        raise GcondError(f"'{path}' is empty")


def _features(path: Path, n: int) -> Iterator[Tensor]:
    """float32 [k, d], ``n`` rows in all."""
    columns = _count_columns(path)
    start = 0
    for batch in _batches(path, "float32", columns):
        start += batch.num_rows
        if start > n:
            break
        x = torch.empty(batch.num_rows, columns)
        for at, column in enumerate(batch.columns):
            x[:, at] = torch.from_numpy(column.to_numpy(zero_copy_only=False).copy())
        yield finite(x, f"'{path}'")
    if start != n:
        raise GcondError(f"'{path}' has {'more' if start > n else start} rows, and node-label.csv.gz has {n}")


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
