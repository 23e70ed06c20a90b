"""Class scores on a graph past memory by blocks of nodes, each with all that it looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import TypeAlias

import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.graph.inputs import Inputs
from gcond.graph.settled_inputs import settled
from gcond.graph.stored_inputs import SLACK, StoredInputs
from gcond.linalg.sparse import SparseMatrix
from gcond.models import Model
from gcond.models.model import Parameters
from gcond.runtime.memory import held_bytes
from gcond.runtime.progress_tick import count
from gcond.training.view_parts import layer_entries

Scored: TypeAlias = tuple[int, Tensor, Tensor]
"""Which set of weights; which of the wanted nodes, int64 [b], by their places; and their class scores [b, C]."""


def by_neighbourhoods(
    model: Model, parameters: Sequence[Parameters], inputs: StoredInputs, nodes: Tensor
) -> Iterator[Scored]:
    """Blocks of nodes with all that their scores depend on; a block that does not fit is halved."""
    order = nodes.argsort()
    done, size = 0, len(nodes)
    tick, what = inputs.streaming.tick, f"scores of {model.name}"
    tick(what, done, len(nodes), detail=count(done, len(nodes), "nodes"))
    while done < len(nodes):
        places = order[done : done + size]
        try:
            around, rows = inputs.around(nodes[places], model.reach, model.precomputed)
            _check_room(model, parameters, inputs, around)
        except GcondError:
            if len(places) == 1:
                raise
            size = ceil(len(places) / 2)
            continue
        own = torch.searchsorted(rows, nodes[places])
        for run, one in enumerate(parameters):
            yield run, places, model.logits(one, settled(around))[own]
        done += len(places)
        tick(what, done, len(nodes), detail=count(done, len(nodes), "nodes"))


def _check_room(model: Model, parameters: Sequence[Parameters], inputs: StoredInputs, around: Inputs) -> None:
    """Refuse a neighbourhood on which the model's layers do not fit; an edge may carry as much as a node."""
    widths = [tensor.shape[-1] for tensor in parameters[0].values() if tensor.dim() > 1]
    assert isinstance(around.adjacency, SparseMatrix)
    need = held_bytes() + 4 * layer_entries(widths, around.num_nodes, around.adjacency.nnz) + SLACK
    if need > inputs.streaming.memory:
        raise GcondError(
            f"'{model.name}' does not say its stages, so its layers would have to be in memory on the "
            f"{around.num_nodes:,} nodes of '{inputs.arrays.name}' that one node looks at, which takes about "
            f"{need / 10**6:.0f} MB: use memory='{ceil(need / 10**6)}MB' or more"
        )
