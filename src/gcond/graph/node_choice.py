"""Some nodes of a graph, as a person names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gcond.config.registry import suggest
from gcond.errors import GcondError
from gcond.graph import validation as checks
from gcond.graph.node_ids import NodeIds
from gcond.graph.source_graph import PARTS, SourceGraph

NodePart = Literal["all", "train", "val", "test", "unlabelled"]
NODE_PARTS: tuple[NodePart, ...] = ("all", *PARTS, "unlabelled")


def choose_nodes(graph: SourceGraph, nodes: NodePart | Tensor | Sequence[int] | Sequence[str] | None) -> Tensor:
    """The nodes that are meant, int64 [m], in the order in which they are given.

    ``nodes`` are a part by name, a boolean mask [N], row numbers, or ids as the graph's own table has them, which are
    text. Arrays of NumPy's are taken like tensors. Without any, all of them.
    """
    if nodes is None or isinstance(nodes, str):
        return _part(graph, nodes or "all")
    if isinstance(nodes, np.ndarray) and nodes.dtype == np.bool_:
        nodes = torch.from_numpy(nodes)
    if isinstance(nodes, Tensor) and nodes.dtype == torch.bool:
        if nodes.shape != (graph.num_nodes,):
            raise GcondError(f"the mask of nodes has shape {list(nodes.shape)}: it must be [{graph.num_nodes}]")
        return _some(nodes.cpu().nonzero().squeeze(1))
    given: Any = nodes.tolist() if isinstance(nodes, Tensor | np.ndarray) else nodes
    if not isinstance(given, Iterable):
        raise GcondError(f"nodes={given!r} is no list of nodes: write [{given!r}]")
    given = [each.item() if isinstance(each, np.generic) else each for each in given]
    if given and all(isinstance(each, str) for each in given):
        ids = graph.ids if graph.ids is not None else NodeIds.row_numbers(graph.num_nodes)
        return ids.find(given, f"'{graph.name}'")
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in given):
        raise GcondError("nodes are named by row numbers or by ids as text: give one kind or the other")
    found = torch.tensor(given, dtype=torch.long)
    checks.nodes_exist(found, graph.num_nodes, "you ask for")
    return _some(found)


def _part(graph: SourceGraph, part: str) -> Tensor:
    if part not in NODE_PARTS:
        listed = ", ".join(NODE_PARTS)
        raise GcondError(f"unknown part '{part}'{suggest(part, NODE_PARTS)}: choose one of {listed}, or name nodes")
    if part == "all":
        return torch.arange(graph.num_nodes)
    mask = graph.y < 0 if part == "unlabelled" else getattr(graph, f"{part}_mask")
    if not bool(mask.any()):
        raise GcondError(f"'{graph.name}' has no {part} nodes: choose another part, or all")
    found: Tensor = mask.nonzero().squeeze(1)
    return found


def _some(nodes: Tensor) -> Tensor:
    if len(nodes) == 0:
        raise GcondError("no node is named: name some, or leave nodes out for all of them")
    return nodes
