"""Learned graphs that follow their source: X' learns on from where it was, for a few epochs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from gcond.condensed import CondensedGraph, Task
from gcond.condensed.provenance import KEPT_EPOCH
from gcond.condensed.source_changes import SourceChanges
from gcond.errors import GcondError
from gcond.graph.group_heirs import continued
from gcond.matching.callback import Callback
from gcond.matching.probe import Probe
from gcond.matching.sparsification import shipped_delta
from gcond.matching.start import Init, initial_features
from gcond.matching.synthetic import Synthetic
from gcond.methods.cluster_updates import groups_before, taught_again, updated_clusters
from gcond.methods.clusters import Clusters, labelled_by
from gcond.methods.gcond import GCond
from gcond.methods.gradient_matching import GradientMatching

SHORTER = 10
"""X' learns for so many times fewer epochs than when it starts from nothing."""
START: Init = "sample"
"""Start of new nodes where there are no clusters and the method would have tried several starts."""


def check_structure(method: GradientMatching, small: CondensedGraph) -> None:
    """Refuse a graph whose structure says nothing of new nodes."""
    if isinstance(method, GCond) and method.structure == "free":
        raise GcondError(
            "structure=free has one number per pair of nodes, which says nothing of other ones: "
            "only graphs made with structure=mlp can be updated"
        )
    if isinstance(method, GCond) and not small.structure:
        raise GcondError(
            "the weights of its structure were dropped when it was compacted: update the graph that it was compacted "
            "from, or compact that again and keep the structure"
        )


def learned_again(
    method: GradientMatching,
    task: Task,
    small: CondensedGraph,
    changes: SourceChanges,
    callbacks: Sequence[Callback],
) -> CondensedGraph:
    """What ``method`` makes of ``task`` in a tenth of its epochs, from X' and Φ of ``small``.

    Where nothing that it learned was better than the clusters that it started from, it does not try again.
    """
    if isinstance(method, GCond):
        method = _with_fixed_structure(method, task, small)
    origin, from_clusters = small.provenance, method.init == "clusters" and small.cluster is not None
    # A run that had no time for an epoch has tried nothing.
    tried = origin is not None and (bool(origin.history.get("loss")) or bool(origin.updates))
    kept_clusters = from_clusters and origin is not None and tried and origin.kept_epoch == 0
    epochs = 0 if kept_clusters else -(-method.epochs // SHORTER)
    every = min(method.probe_every, epochs)
    method = dataclasses.replace(method, epochs=epochs, probe_every=every)
    cluster, shown = None, None
    if from_clusters:
        assert small.cluster is not None
        assert method.teacher != "none", "refused when the settings were made"
        clustered = updated_clusters(Clusters(teacher=method.teacher, metric=method.metric), task, small, changes)
        task, cluster = clustered.task, clustered.graph.cluster
        shown = clustered.graph.y if clustered.graph.y.dim() == 2 else None
        assert cluster is not None
        heirs, _ = continued(groups_before(small.cluster, changes), cluster, small.num_nodes, len(clustered.graph.x))
        starts = {"clusters": clustered.graph.x}
        if not kept_clusters:
            starts = {"update": _taken_up(clustered.graph.x, small, heirs)} | starts
    else:
        task = _labelled(method, task, small, changes)
        fresh = initial_features(task, START if method.init in {"auto", "clusters"} else method.init)  # type: ignore[arg-type]
        starts = {"update": _taken_up(fresh, small, _of_the_same_class(task, small, changes))}
    method.check_memory(task, method.structure_for(task), int(task.quota.sum()), START)
    made = {name: _synthetic(method, task, x, small, shown) for name, x in starts.items()}
    name = _better(method, task, made)
    synthetic = made[name]
    run = method.learn(task, synthetic, callbacks, start=name)
    task.notes.start, task.notes.history, task.notes.ended = name, run.history, run.reason
    if kept_clusters or (name == "clusters" and run.kept == 0):
        task.notes.choices[KEPT_EPOCH] = 0
    return dataclasses.replace(synthetic.finish(method.ship), cluster=cluster)


def _with_fixed_structure(method: GCond, task: Task, small: CondensedGraph) -> GCond:
    """One turn of X' as long as the whole run, so that Φ never has one, and δ as it was shipped with."""
    method = dataclasses.replace(method, schedule="features-first", features_epochs=max(1, method.epochs))
    if method.delta == "auto" and (delta := shipped_delta(small)) is not None:
        method = dataclasses.replace(method, delta=delta)
        task.notes.choices["delta"] = delta
    return method


def _labelled(method: GradientMatching, task: Task, small: CondensedGraph, changes: SourceChanges) -> Task:
    """The task with all nodes labelled by the refreshed teacher; as it is without one."""
    if method.teacher == "none":
        return task
    taught = taught_again(method.teacher, task, small, changes.classes, method.metric)
    task.notes.choices |= taught.choices
    return labelled_by(task, taught)


def _taken_up(x: Tensor, small: CondensedGraph, heirs: Tensor) -> Tensor:
    """``x`` [n, d] with the rows of ``small`` that ``heirs`` (int64 [n]) names, where it names any."""
    return torch.where((heirs >= 0)[:, None], small.x[heirs.clamp(min=0)], x)


def _of_the_same_class(task: Task, small: CondensedGraph, changes: SourceChanges) -> Tensor:
    """For every node to be made one of ``small`` of the same class, each once, or -1: int64 [n]."""
    labels, old = task.labels, changes.classes[small.hard_labels]
    heirs = torch.full_like(labels, -1)
    for label in range(task.num_classes):
        places, rows = (labels == label).nonzero().squeeze(1), (old == label).nonzero().squeeze(1)
        count = min(len(places), len(rows))
        heirs[places[:count]] = rows[:count]
    return heirs


def _synthetic(
    method: GradientMatching, task: Task, x: Tensor, small: CondensedGraph, shown: Tensor | None
) -> Synthetic:
    structure = method.structure_for(task)
    phi = structure.kept(small.structure, x.shape[1])
    made = Synthetic(
        x.clone(), task.labels, structure, phi, method.rates(x), shown=shown, entries=method.entries or None
    )
    return made.to(task.train.y.device)


def _better(method: GradientMatching, task: Task, made: dict[str, Synthetic]) -> str:
    """The start that probes better; the first of equals, and where nobody can be asked."""
    if len(made) == 1 or not method.probe_every or not len(task.val.nodes):
        return next(iter(made))
    probe = Probe(task.val, task.num_classes, task.seed, method.metric, importance=task.importance)
    return max(made, key=lambda name: probe.accuracy(made[name].view(method.ship)))
