"""Digests of a source graph's nodes: a few bytes each, by which a later version of the graph is compared with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcond.errors import GcondError
from gcond.graph.node_ids import NodeIds
from gcond.graph.source_graph import SourceGraph
from gcond.graph.stored_features import StoredFeatures
from gcond.graph.streamed_operator import RowBlocks
from gcond.linalg.sparse import Matrix, SparseMatrix
from gcond.runtime.memory import hand_back

Words = NDArray[np.uint64]
IDS = 2**18
"""Ids that are made into text at a time."""


@dataclass(frozen=True, eq=False)
class NodeDigests:
    """What every node was when a graph was condensed: equal numbers mean the same, but for one chance in 2³².

    Of what condensing may not see there is nothing: labels are those of training nodes alone, and in the inductive
    setting all other nodes have 0 everywhere.
    """

    features: Tensor
    """int32 [N]: of the row of X."""
    edges: Tensor
    """int32 [N]: of the neighbours, by their ids or rows, and the weights."""
    labels: Tensor
    """int32 [N]: of the class, by its name or number; 0 for nodes that are not trained on."""
    ids: Tensor | None = None
    """int64 [N]: of the id, where nodes have ids."""

    def __len__(self) -> int:
        return len(self.features)

    @classmethod
    def of(cls, graph: SourceGraph) -> NodeDigests:
        """The digests of ``graph``, the same whether it is in memory or read from its store block by block."""
        ids = None if graph.ids is None else _of_ids(graph.ids)
        seen = graph.training_graph()  # in the inductive setting others may not even be looked at
        names = ids if graph.setting == "transductive" or ids is None else ids[graph.train_mask.numpy()]
        keys = np.arange(seen.num_nodes, dtype=np.uint64) if names is None else names
        own = {
            "features": _of_rows(seen.x),
            "edges": _of_rows(seen.adjacency, keys),
            "labels": np.where(seen.train_mask.numpy(), _of_classes(seen)[seen.y.numpy()], 0),
        }
        if seen is not graph:
            own = {name: _spread(values, graph.train_mask.numpy()) for name, values in own.items()}
        tensors = {name: torch.from_numpy(values.astype(np.uint32).view(np.int32)) for name, values in own.items()}
        return cls(**tensors, ids=None if ids is None else torch.from_numpy(ids.view(np.int64)))

    def tensors(self) -> dict[str, Tensor]:
        """Under their names in a file."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> NodeDigests | None:
        """What :meth:`tensors` gave; nothing where a file has none, and a refusal where they do not fit together."""
        if not tensors:
            return None
        kinds = {field.name: torch.int64 if field.name == "ids" else torch.int32 for field in fields(cls)}
        needed = [name for name in kinds if name != "ids"]
        if set(tensors) - set(kinds) or any(name not in tensors for name in needed):
            raise GcondError("the digests of its source's nodes are not complete: the file is damaged")
        count = tensors["features"].shape
        if len(count) != 1 or any(
            tensor.shape != count or tensor.dtype != kinds[name] for name, tensor in tensors.items()
        ):
            raise GcondError("the digests of its source's nodes do not fit together: the file is damaged")
        return cls(**tensors)


def _mixed(values: Words) -> Words:
    """Whole numbers made into ones that look random, each always the same (splitmix64, Steele et al., OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        mixed = values + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _of_rows(matrix: Matrix | StoredFeatures | RowBlocks, columns: Words | None = None) -> Words:
    """A sum over the entries of each row, of the number times a factor of its column; uint64 [N] below 2³².

    ``columns`` are the names of the columns, their numbers by default. A zero counts nothing, so that dense and sparse
    forms of the same numbers agree.
    """
    if columns is None:
        assert not isinstance(matrix, RowBlocks)  # whoever has edges names their ends
        columns = np.arange(matrix.shape[1], dtype=np.uint64)
    factors = _mixed(columns) | np.uint64(1)
    sums = np.concatenate([np.zeros(0, np.uint64), *(_sums(rows, factors) for rows in _blocks(matrix))])
    return _mixed(sums) >> np.uint64(32)


def _blocks(matrix: Matrix | StoredFeatures | RowBlocks) -> Iterator[Matrix]:
    """The matrix, or where it is in a file one block of its rows after the other."""
    if not isinstance(matrix, StoredFeatures | RowBlocks):
        yield matrix
        return
    for _, rows in matrix.matrices() if isinstance(matrix, StoredFeatures) else matrix:
        hand_back()
        yield rows


def _sums(matrix: Matrix, factors: Words) -> Words:
    with np.errstate(over="ignore"):
        if not isinstance(matrix, SparseMatrix):
            return np.concatenate([_bits(rows) @ factors for rows in matrix.split(4096)])
        entries = _bits(matrix.values) * factors[matrix.indices.cpu().numpy()]
        ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
        pointer = matrix.indptr.cpu().numpy()
        return ends[pointer[1:]] - ends[pointer[:-1]]


def _bits(values: Tensor) -> Words:
    """float32 as whole numbers, both zeros as 0."""
    return (values.cpu().numpy() + np.float32(0)).view(np.uint32).astype(np.uint64)


def _of_classes(graph: SourceGraph) -> Words:
    """A number above 0 for each class, by its name or else its number, and 0 for none: uint64 [C + 1]."""
    names = graph.class_names or tuple(map(str, range(graph.num_classes)))
    return np.array([*(_of_text(name) >> 33 | 1 for name in names), 0], dtype=np.uint64)


def _of_ids(ids: NodeIds) -> Words:
    pieces = (ids.values.slice(start, IDS).to_pylist() for start in range(0, len(ids.values), IDS))
    return np.fromiter((_of_text(str(each)) for piece in pieces for each in piece), np.uint64, len(ids.values))


def _of_text(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _spread(values: Words, mask: NDArray[np.bool_]) -> Words:
    whole = np.zeros(len(mask), np.uint64)
    whole[mask] = values
    return whole
