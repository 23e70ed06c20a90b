"""Selections that follow their source: chosen nodes stay chosen as long as they can be."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from gcond.condensed import CondensedGraph, Task
from gcond.condensed.source_changes import SourceChanges
from gcond.methods.method import Method, induced_subgraph
from gcond.methods.selection_by_embedding import SelectionByEmbedding

SHORTER = 10
"""The GCN by which nodes are picked is trained for so many times fewer epochs than when all of them are."""


def selected_again(method: Method, task: Task, small: CondensedGraph, changes: SourceChanges) -> CondensedGraph:
    """The selection in ``small`` without the nodes that are gone, filled up by what ``method`` picks now."""
    stayed = still_chosen(small, task, changes)
    per_class = [stayed[_labels(task)[stayed] == label][:count] for label, count in enumerate(task.quota.tolist())]
    if all(len(own) == count for own, count in zip(per_class, task.quota.tolist(), strict=True)):
        return induced_subgraph(task, torch.cat(per_class))
    if isinstance(method, SelectionByEmbedding):
        method = dataclasses.replace(method, epochs=max(1, method.epochs // SHORTER))
    picked = method.reduce(task)
    assert picked.source_index is not None
    fresh = _rows(task)[picked.source_index]
    chosen = []
    for label, (own, count) in enumerate(zip(per_class, task.quota.tolist(), strict=True)):
        others = fresh[picked.hard_labels == label]
        others = others[~torch.isin(others, own)]
        chosen += [own, others[: count - len(own)]]
    return induced_subgraph(task, torch.cat(chosen))


def still_chosen(small: CondensedGraph, task: Task, changes: SourceChanges) -> Tensor:
    """Rows of the training graph that ``small`` has and that are trained on by the same label: int64, in its order."""
    assert small.source_index is not None
    place = torch.full((int(changes.counts["nodes_before"]),), -1)
    place[changes.before[changes.before >= 0]] = (changes.before >= 0).nonzero().squeeze(1)
    now = place[small.source_index]
    there = (now >= 0) & ~changes.unsettled[now.clamp(min=0)]
    rows, wanted = _rows(task)[now.clamp(min=0)], changes.classes[small.hard_labels]
    there &= (rows >= 0) & (wanted >= 0) & (_labels(task)[rows.clamp(min=0)] == wanted)
    return rows[there]


def _rows(task: Task) -> Tensor:
    """The row that each node of the source has in the training graph, -1 for none: int64 [N]."""
    rows = torch.full((task.source_nodes,), -1)
    rows[task.train.source_index] = torch.arange(task.train.inputs.num_nodes)
    return rows


def _labels(task: Task) -> Tensor:
    """The class of each row of the training graph that is trained on, -1 elsewhere: int64."""
    label = torch.full((task.train.inputs.num_nodes,), -1)
    label[task.train.nodes.cpu()] = task.train.y.cpu()
    return label
