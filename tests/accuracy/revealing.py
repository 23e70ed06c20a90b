"""A graph that is revealed step by step, as a person's own would grow."""

from __future__ import annotations

import torch

from gcond.graph.source_graph import SourceGraph
from gcond.linalg.sparse import take_rows

EARLY = 2
"""Training nodes that every class has from the first step in which it is there."""


def revealed(graph: SourceGraph, steps: int, seed: int, *, late: int) -> list[SourceGraph]:
    """``graph`` in ``steps`` steps of about as many nodes each, drawn by the ``seed``, with the edges among them.

    The last class appears in step ``late`` for the first time, and splits are what is there of them. Nodes keep their
    order from one step to the next, new ones behind. The last step is the whole graph in another order.
    """
    stream = torch.Generator().manual_seed(seed)
    count, last = graph.num_nodes, graph.num_classes - 1
    step = torch.empty(count, dtype=torch.long)
    step[torch.randperm(count, generator=stream)] = torch.arange(count) * steps // count + 1
    own = (graph.y == last).nonzero().squeeze(1)
    own = own[torch.randperm(len(own), generator=stream)]
    step[own] = torch.arange(len(own)) * (steps - late + 1) // len(own) + late
    for label in range(graph.num_classes):
        trained = (graph.train_mask & (graph.y == label)).nonzero().squeeze(1)
        first = late if label == last else 1
        missing = EARLY - int((step[trained] == first).sum())
        step[trained[step[trained] != first][: max(0, missing)]] = first
    order = step.argsort(stable=True)
    shown = [order[: int((step <= each).sum())] for each in range(1, steps + 1)]
    classes = [graph.num_classes - (each < late) for each in range(1, steps + 1)]
    return [_part(graph, *each) for each in zip(shown, classes, range(1, steps + 1), strict=True)]


def _part(graph: SourceGraph, nodes: torch.Tensor, classes: int, step: int) -> SourceGraph:
    among = graph.adjacency.submatrix(nodes)
    return SourceGraph.build(
        name=f"{graph.name}-step-{step}",
        x=take_rows(graph.x, nodes),
        edge_index=among.edge_index,
        edge_weight=among.values,
        y=graph.y[nodes],
        train=graph.train_mask[nodes],
        val=graph.val_mask[nodes],
        test=graph.test_mask[nodes],
        setting=graph.setting,
        num_classes=classes,
        class_names=graph.class_names[:classes],
        transform=graph.transform,
    )
