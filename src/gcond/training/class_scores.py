"""Class scores of some nodes of any graph: at once where it is in memory, in streams where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from gcond.graph import Inputs
from gcond.graph.settled_inputs import settled
from gcond.graph.stored_inputs import StoredInputs
from gcond.models import Model
from gcond.models.model import Dropout, Parameters
from gcond.training.neighbourhood_scores import Scored
from gcond.training.streamed_scores import streamed_scores


@torch.no_grad()
def class_scores(
    model: Model | Sequence[Model], parameters: Sequence[Parameters], inputs: Inputs, nodes: Tensor
) -> Iterator[Scored]:
    """The class scores of ``nodes`` (int64 [m]) by each of R sets of weights, of one model or of one model each.

    Yields which set of weights, the places in ``nodes`` (int64 [b]) and the scores [b, C] of what is there: all nodes
    at once on a graph in memory, blocks of them on one that is streamed from its store. Together it is every node once
    for every set.
    """
    if isinstance(inputs, StoredInputs):
        if isinstance(model, Model):
            yield from streamed_scores(model, parameters, inputs, nodes)
            return
        for run, (one, weights) in enumerate(zip(model, parameters, strict=True)):
            for _, places, scores in streamed_scores(one, [weights], inputs, nodes):
                yield run, places, scores
        return
    # One model's sets one at a time: all the scores of a large graph need not be held at once.
    batches = [[one] for one in parameters] if isinstance(model, Model) else [parameters]
    everyone = torch.arange(len(nodes), device=nodes.device)
    found = (each for batch in batches for each in logits(model, batch, settled(inputs)))
    for run, scores in enumerate(found):
        yield run, everyone, scores[nodes]


def logits(
    model: Model | Sequence[Model],
    parameters: Sequence[Parameters],
    inputs: Inputs,
    dropouts: Sequence[Dropout | None] | None = None,
) -> list[Tensor]:
    """Class scores [n, C] for each of ``parameters``, of one model or of one model each."""
    dropouts = dropouts or [None] * len(parameters)
    if isinstance(model, Model):
        return [model.logits(one, inputs, drop) for one, drop in zip(parameters, dropouts, strict=True)]
    return type(model[0]).logits_together(model, parameters, inputs, dropouts)
