"""Graphs in an ``.npz`` of the gnn-benchmark layout (Shchur et al., 2018).

The layout is CSR: ``adj_data``, ``adj_indices``, ``adj_indptr``, ``adj_shape``; the same four with
``attr_`` or a dense ``attr_matrix``; ``labels``; and, if the file brings its own split, ``train_mask``,
``val_mask`` and ``test_mask`` (boolean masks or node ids; the names ``train``, ``val``, ``test`` do too).
"""

from __future__ import annotations

from collections.abc import Mapping

from gcond.data.load_request import Request
from gcond.data.npz_archive import Archive, edges_of, own_split
from gcond.data.splits import per_class
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.graph.validation import class_ids
from gcond.linalg.sparse import Matrix, SparseMatrix


def load(files: Mapping[str, bytes], request: Request) -> SourceGraph:
    """A named set: presence of a word instead of its count, as PyG reads it; row-normalised by default."""
    ((name, content),) = files.items()
    archive = Archive(content, name)
    x = _attributes(archive)
    assert isinstance(x, SparseMatrix)  # the checksum says so
    present = x.with_values((x.values > 0).float(), symmetric=False)
    y = class_ids(archive.tensor("labels"))
    edge_index = edges_of(_adjacency(archive))
    split = per_class(y, request.seed)
    return request.build(split, usual="row-normalise", x=present, edge_index=edge_index, y=y)


def assemble(archive: Archive, request: Request) -> SourceGraph:
    """A person's own file; without attributes it gets structural features."""
    adjacency = _adjacency(archive)
    y = class_ids(archive.tensor("labels"))
    split = own_split(archive) or per_class(y, request.seed)
    edge_index, weight = edges_of(adjacency), adjacency.values
    return request.build(split, x=_attributes(archive), edge_index=edge_index, edge_weight=weight, y=y)


def _attributes(archive: Archive) -> Matrix | None:
    """``attr_matrix``, or the CSR matrix, in which repeated entries are summed, as SciPy does, or None."""
    if "attr_matrix" in archive:
        return archive.tensor("attr_matrix").float()
    if not any(f"attr_{part}" in archive for part in ("data", "indices", "indptr", "shape")):
        return None
    return SparseMatrix.from_scipy(archive.csr("attr_").to_scipy().sorted_indices())


def _adjacency(archive: Archive) -> SparseMatrix:
    """Row = source, column = target, as it is stored: the graph's own checks see to what is repeated."""
    matrix = archive.csr("adj_")
    if matrix.shape[0] != matrix.shape[1]:
        raise GcondError(f"{archive.label('adj_shape')} is {list(matrix.shape)}: an adjacency must be square")
    return matrix
