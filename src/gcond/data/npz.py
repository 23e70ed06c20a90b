"""``.npz`` files: the gnn-benchmark layout (Shchur et al., 2018), and how any ``.npz`` is read safely.

The layout is CSR: ``adj_data``, ``adj_indices``, ``adj_indptr``, ``adj_shape``; the same four with
``attr_`` or a dense ``attr_matrix``; ``labels``; and, if the file brings its own split, ``train_mask``,
``val_mask`` and ``test_mask`` (boolean masks or node ids; the names ``train``, ``val``, ``test`` do too).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from gcond.checks import unpack_csr
from gcond.data import memory
from gcond.data.arrays import tensor, whole_numbers
from gcond.data.catalogue import Dataset
from gcond.data.mirrors import fetch
from gcond.data.request import Request
from gcond.data.splits import Split, per_class
from gcond.errors import GcondError
from gcond.features import row_normalise
from gcond.graph import PARTS, SourceGraph
from gcond.sparse import Matrix, SparseMatrix


class Archive:
    """An ``.npz`` of which only the arrays that are asked for are read, and no pickle ever."""

    def __init__(self, content: Path | bytes, name: str) -> None:
        self.name = name
        self._content = content
        try:
            with zipfile.ZipFile(self._open()) as archive:
                self._sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.infolist()}
        except OSError as error:
            raise GcondError(f"'{name}' cannot be read: {error.strerror or error}") from None
        except Exception:  # zipfile trips over foreign bytes in many ways, and all mean the same
            raise GcondError(f"'{name}' is damaged, cut short or not an .npz file") from None

    def _open(self) -> Path | BinaryIO:
        return self._content if isinstance(self._content, Path) else io.BytesIO(self._content)

    def __contains__(self, key: str) -> bool:
        return key in self._sizes

    def read(self, keys: Iterable[str]) -> dict[str, np.ndarray]:
        keys = list(keys)
        missing = [key for key in keys if key not in self]
        if missing:
            raise GcondError(
                f"'{self.name}' has no array '{missing[0]}' (it has {', '.join(sorted(self._sizes)[:12]) or 'none'}): "
                "the gnn-benchmark layout is adj_data, adj_indices, adj_indptr, adj_shape, the same with attr_, labels"
            )
        memory.require(2 * sum(self._sizes[key] for key in keys), f"'{self.name}'")
        try:
            with np.load(self._open(), allow_pickle=False) as arrays:
                return {key: self._array(arrays, key) for key in keys}
        except GcondError:
            raise
        except Exception:  # as above: whatever the parser says of foreign bytes, the file is not whole
            raise GcondError(f"'{self.name}' is damaged or cut short") from None

    def _array(self, arrays: np.lib.npyio.NpzFile, key: str) -> np.ndarray:
        try:
            array = arrays[key]
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            raise GcondError(
                f"'{key}' in '{self.name}' is an object array, stored as a pickle, which gcond never opens: "
                "save it with a plain number type"
            ) from None
        if not isinstance(array, np.ndarray):  # a member without the .npy header comes back as bytes
            raise GcondError(f"'{key}' in '{self.name}' is not a numpy array")
        return array

    def label(self, key: str) -> str:
        """How messages name one of its arrays."""
        return f"'{key}' in '{self.name}'"


def load(dataset: Dataset, request: Request, data_dir: str | Path | None) -> SourceGraph:
    """A named set: presence of a word instead of its count as PyG reads it, row-normalised, with a drawn split."""
    (content,) = fetch(dataset.raw, name=dataset.name, data_dir=data_dir).values()
    archive = Archive(content, dataset.raw[0].name)
    x = read_matrix(archive, "attr")
    assert isinstance(x, SparseMatrix)  # the checksum says so
    present, transform = row_normalise(x.with_values((x.values > 0).float(), symmetric=False))
    y = tensor(archive.read(["labels"])["labels"], "labels").long()
    edge_index, _ = _edges(archive)
    split = per_class(y, request.seed)
    graph = SourceGraph.build(
        x=present,
        edge_index=edge_index,
        y=y,
        train=split.train,
        val=split.val,
        test=split.test,
        transform=transform,
        notes=(split.note,),
        **request.options(),
    )
    return replace(graph, listed_edges=graph.num_edges)  # papers on these sets count distinct pairs


def load_file(path: Path, request: Request) -> SourceGraph:
    """A person's own file; features are used as they are."""
    archive = Archive(path, str(path))
    if "node_features" in archive:
        from gcond.data import heterophilous

        return heterophilous.assemble(archive, request)
    x = read_matrix(archive, "attr")
    edge_index, weight = _edges(archive)
    y = _labels(archive)
    split = _own_split(archive) or per_class(y, request.seed)
    return SourceGraph.build(
        x=x,
        edge_index=edge_index,
        edge_weight=weight,
        y=y,
        train=split.train,
        val=split.val,
        test=split.test,
        notes=(split.note,),
        **request.options(),
    )


def read_matrix(archive: Archive, prefix: str) -> Matrix:
    """The CSR matrix under ``prefix``, or the dense ``{prefix}_matrix``, as it is."""
    dense = f"{prefix}_matrix"
    if dense in archive:
        return tensor(archive.read([dense])[dense], archive.label(dense)).float()
    return _csr(archive, prefix)


def _csr(archive: Archive, prefix: str) -> SparseMatrix:
    arrays = archive.read(f"{prefix}_{part}" for part in ("data", "indices", "indptr", "shape"))
    values = tensor(arrays[f"{prefix}_data"], archive.label(f"{prefix}_data"))
    indices, indptr, shape = (
        whole_numbers(arrays[f"{prefix}_{part}"], archive.label(f"{prefix}_{part}"))
        for part in ("indices", "indptr", "shape")
    )
    if shape.shape != (2,) or int(shape.min()) < 1:
        raise GcondError(f"{archive.label(f'{prefix}_shape')} is {shape.tolist()}: it must be two positive numbers")
    size = (int(shape[0]), int(shape[1]))
    if len(indptr.shape) != 1 or len(indptr) != size[0] + 1:
        raise GcondError(f"{archive.label(f'{prefix}_indptr')} must have one entry more than the {size[0]} rows")
    parts = {"indptr": indptr, "indices": indices, "values": values.float()}
    found = unpack_csr(f"{prefix}_*", {f"{prefix}_*.{part}": array for part, array in parts.items()}, size)
    return SparseMatrix.from_scipy(found.to_scipy().sorted_indices())  # repeated entries are summed, as SciPy does


def _edges(archive: Archive) -> tuple[Tensor, Tensor]:
    """int [2, E] and float32 [E]; row i of the matrix lists the targets of node i."""
    matrix = _csr(archive, "adj")
    if matrix.shape[0] != matrix.shape[1]:
        raise GcondError(f"{archive.label('adj_shape')} is {list(matrix.shape)}: an adjacency must be square")
    return torch.stack([matrix.row_index.to(matrix.indices.dtype), matrix.indices]), matrix.values


def _labels(archive: Archive) -> Tensor:
    y = tensor(archive.read(["labels"])["labels"], archive.label("labels"))
    y = y.squeeze(-1) if y.dim() == 2 and y.shape[1] == 1 else y
    if y.dim() != 1:
        raise GcondError(f"{archive.label('labels')} has shape {list(y.shape)}: it must be one class id a node")
    if y.is_floating_point() and not torch.equal(y, y.round()):
        raise GcondError(f"{archive.label('labels')} are not whole numbers: each must be a class id, or -1 for none")
    return y.long()


def _own_split(archive: Archive) -> Split | None:
    names = {part: next((key for key in (f"{part}_mask", part) if key in archive), None) for part in PARTS}
    if not any(names.values()):
        return None
    if absent := [part for part, key in names.items() if key is None]:
        raise GcondError(f"'{archive.name}' has a split without '{absent[0]}_mask': give all three parts or none")
    arrays = archive.read(key for key in names.values() if key)
    train, val, test = (tensor(array, archive.label(key)) for key, array in arrays.items())
    return Split(train, val, test, "the split is the file's own")
