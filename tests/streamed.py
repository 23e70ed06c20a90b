"""Graphs that are streamed from their stores, however small, in pieces that are smaller still."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import gcond
from gcond.data.store_writing import write_store
from gcond.graph import SourceGraph, stored_inputs, streamed_operator
from gcond.graph.stored_graph import StoredGraph
from gcond.linalg import tall

PLENTY = 10**10


@contextmanager
def small_pieces(*, columns: int | None = None) -> Iterator[None]:
    """Blocks of a few rows and edges and, if that is given, groups of at most so many columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tall, "BLOCK_BYTES", 2000)
        patch.setattr("gcond.graph.stored_features.BLOCK_BYTES", 2000)
        patch.setattr(streamed_operator, "BLOCK_ENTRIES", 100)
        if columns is not None:
            patch.setattr(stored_inputs, "VECTOR", 1)
            patch.setattr(stored_inputs.StoredInputs, "width", lambda self, work: columns)
        yield


def streamed(path: Path, features: str | None = None, memory: int = PLENTY) -> StoredGraph:
    """The store at ``path`` on disk, with ``memory`` to work in."""
    graph = gcond.load(path, features=features, memory_limit="1MB")
    assert isinstance(graph, StoredGraph)
    return graph.with_streaming(dataclasses.replace(graph.streaming, memory=memory))


def packed(graph: SourceGraph, folder: Path) -> StoredGraph:
    """``graph``, as it is, from a store."""
    path = folder / f"{graph.name}.gcond"
    write_store(path, graph)
    return streamed(path)
