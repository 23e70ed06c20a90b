"""Labelled nodes in parts: layers on what many nodes of a graph past memory see would not be counted by anyone."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gcond.graph import LabelledView
from gcond.graph.stored_neighbourhood import StoredNeighbourhood
from gcond.linalg import tall
from gcond.linalg.sparse import SparseMatrix
from gcond.models import Model


def in_parts(view: LabelledView, model: Model, classes: int) -> list[LabelledView]:
    """The labelled nodes of a focused ``view``, in order, in as many views as keep layers of ``model`` within a block.

    Only of a graph past memory, whose limit leaves room for a block: what is in memory stays one view. Each part has
    rows of its own, so a node that two of them see is computed twice; of a large graph that is hardly any.
    """
    inputs = view.inputs
    if not isinstance(inputs, StoredNeighbourhood):
        return [view]
    assert isinstance(inputs.adjacency, SparseMatrix)
    widths = [shape[-1] for shape in model.shapes(inputs.num_features, classes).values() if len(shape) > 1]
    entries = layer_entries(widths, inputs.num_nodes, inputs.adjacency.nnz)
    nodes = ceil(len(view.nodes) / max(1, ceil(4 * entries / tall.BLOCK_BYTES)))
    if nodes >= len(view.nodes):
        return [view]
    pairs = zip(view.nodes.split(nodes), view.y.split(nodes), strict=True)
    return [replace(view, nodes=own, y=y).focus(model.reach, model.precomputed) for own, y in pairs]


def layer_entries(widths: list[int], nodes: int, edges: int) -> int:
    """Numbers that layers of such ``widths`` hold at once on a graph; an edge may carry as much as a node."""
    return 2 * nodes * sum(widths) + edges * max(widths, default=0)
