"""The class scores of any nodes of a source graph: the one place where a trained model meets it."""

from __future__ import annotations

import torch
from torch import Tensor

from gcond.graph import LabelledView, SourceGraph
from gcond.graph.source_graph import PARTS
from gcond.models import Model
from gcond.models.model import Parameters
from gcond.runtime.device import choose_device
from gcond.runtime.threads import threads_for
from gcond.training.class_scores import class_scores
from gcond.training.largest_product import largest_product


@torch.no_grad()
def node_scores(
    model: Model,
    parameters: Parameters,
    graph: SourceGraph,
    nodes: Tensor,
    *,
    classes: int,
    device: str = "auto",
    threads: int | None = None,
) -> Tensor:
    """Class scores of ``nodes``, int64 [m], on the CPU: float32 [m, C].

    Transductive: on the whole graph. Inductive: on the graph induced by each node's own part, as validation and test
    are; nodes in no part are a part, too. A node has the same scores whichever are asked for beside it.
    """
    place = choose_device(device)
    weights = {key: tensor.to(place) for key, tensor in parameters.items()}
    scores = torch.empty(len(nodes), classes)
    for view in _views(graph):
        where = torch.full((graph.num_nodes,), -1)
        where[view.source_index] = torch.arange(len(view.source_index))
        row = where[nodes]
        asked = row >= 0
        if not bool(asked.any()):
            continue
        there = view.to(place)
        with threads_for(largest_product(model, there, classes), threads):
            asked = asked.nonzero().squeeze(1)
            for _, places, found in class_scores(model, [weights], there.inputs, row[asked].to(place)):
                scores[asked[places.cpu()]] = found.to("cpu", torch.float32)
    return scores


def computed_on(graph: SourceGraph) -> str:
    """The graph that :func:`node_scores` computes on, in words."""
    if graph.setting == "transductive":
        return f"the whole graph '{graph.name}'"
    return f"the graphs induced by each part of '{graph.name}': a node sees neighbours of its own part alone"


def _views(graph: SourceGraph) -> list[LabelledView]:
    """The graphs to compute on, disjoint and of all nodes together."""
    everyone = torch.arange(graph.num_nodes)
    if graph.setting == "transductive":
        return [LabelledView(graph.view("train").inputs, everyone, graph.y, everyone)]
    others = ~torch.stack([graph.mask(part) for part in PARTS]).any(0)
    views = [graph.view(part) for part in PARTS if bool(graph.mask(part).any())]
    return [*views, graph.induced_view(others)] if bool(others.any()) else views
