"""A packed store as a source graph: in memory where it fits, else on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcond.data.store_reading import open_store
from gcond.errors import GcondError
from gcond.graph.stored_arrays import StoredArrays, StoredSparseRows
from gcond.graph.streamed_operator import read_piece

if TYPE_CHECKING:
    from gcond.data.load_request import Request
    from gcond.graph import SourceGraph
    from gcond.linalg.sparse import Matrix


def load(folder: Path, request: Request) -> SourceGraph:
    """The graph: in memory, and then the same as from what was packed, or where it does not fit on disk.

    It stays on disk where it would take more than the memory that is asked for or, without a number, than is free.
    """
    from gcond.graph.feature_treatment import treated
    from gcond.graph.stored_graph import StoredGraph
    from gcond.graph.stored_inputs import Streaming
    from gcond.runtime.memory import SAFE_SHARE, available_bytes, held_bytes, map_large_tensors

    stored = open_store(folder)
    free = held_bytes() + int(SAFE_SHARE * available_bytes())
    limit = free if request.memory is None else request.memory
    if request.directed and not stored.directed:
        raise GcondError(f"the graph '{stored.name}' was already made undirected: pack its raw data with directed=True")
    graph: SourceGraph
    raw: Matrix | None
    if stored.memory_when_loaded > limit:
        map_large_tensors()
        graph, raw = StoredGraph.of(stored, Streaming(limit), name=stored.name, setting=request.setting), None
    else:
        graph, raw = as_source_graph(stored)
    if request.setting not in (None, graph.setting):
        graph = graph.with_setting(request.setting)
    if request.features is None and graph.transform.kind != "none":
        return graph
    return treated(graph, request.features or stored.usual, raw)


def as_source_graph(stored: StoredArrays) -> tuple[SourceGraph, Matrix]:
    """A graph in memory of what is stored, and its features in the form in which they are stored."""
    import torch

    from gcond.graph import SourceGraph
    from gcond.graph.features import FeatureTransform, compact
    from gcond.graph.source_graph import PARTS
    from gcond.linalg.sparse import SparseMatrix

    def tensor(array: np.ndarray) -> torch.Tensor:
        # Read and not copied from its map, the pages of which would be held beside it.
        return torch.from_numpy(read_piece(array.reshape(-1), 0, array.size).reshape(array.shape))

    if isinstance(stored.x, StoredSparseRows):
        indptr, indices, values = map(tensor, (stored.x.indptr, stored.x.indices, stored.x.values))
        raw: Matrix = SparseMatrix.from_parts(indptr, indices, values, stored.x.shape)
    else:
        raw = tensor(stored.x)
    n, edges = stored.num_nodes, len(stored.indices)
    weights = torch.ones(edges) if stored.weights is None else tensor(stored.weights)
    split = tensor(stored.split)
    masks: dict[str, Any] = {f"{part}_mask": split == code for code, part in enumerate(PARTS, 1)}
    graph = SourceGraph(
        name=stored.name,
        x=compact(raw),
        adjacency=SparseMatrix.from_parts(
            tensor(stored.indptr), tensor(stored.indices), weights, (n, n), symmetric=not stored.directed
        ),
        y=tensor(stored.y),
        num_classes=stored.num_classes,
        setting=stored.setting,
        directed=stored.directed,
        class_names=stored.class_names,
        transform=stored.transform or FeatureTransform(),
        notes=stored.notes,
        listed_edges=stored.listed_edges,
        ids=stored.node_ids(),
        feature_names=stored.feature_names,
        **masks,
    )
    return graph, raw
