"""Clusters that follow their source: the same choices, a refreshed teacher, and groups that go on from earlier ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.condensed import CondensedGraph, Task
from gcond.condensed.source_changes import SourceChanges
from gcond.config.metric import Metric
from gcond.graph import Inputs, LabelledView
from gcond.graph.column_work import Hops
from gcond.graph.kept_groups import KeptGroups
from gcond.graph.some_rows import some_rows
from gcond.linalg.random_projection import MOST_ENTRIES
from gcond.linalg.sparse import Identity
from gcond.matching.probe import Probe
from gcond.methods.clusters import CHOICES, Clustered, Clusters, labelled_by
from gcond.models import MLP
from gcond.runtime.seeds import generator
from gcond.teaching import Taught, TeacherName, candidates
from gcond.teaching.random_propagation import RandomPropagation
from gcond.teaching.refresher import teach_again
from gcond.training import Recipe

OUTGROWN = 1.8
"""Choices are made again once the source has so many times the nodes that it had when they were made, or at once where
looking is cheap."""
CHEAP = 5e8
"""Multiply-adds with the features that a glance may take for that: less than a tenth of a second. Where condensing anew
would train a network, glances are always cheap beside it."""
SLOW = 1.1e10
"""Multiply-adds of a network on the graph itself from which glances are long ones: it takes seconds then."""
GLANCED_AT = 500
"""Validation nodes that a glance looks at, at most."""


@dataclass(frozen=True, eq=False)
class Glance(Probe):
    """A probe for a choice between two: one narrow network, looked at now and then, on rows of a few validation nodes.

    It learns to the end, since graphs that are learned more slowly are not worse ones: on graphs of Cora and CiteSeer
    it finds 0.8 points less than a GCN by the usual recipe, give or take 1.1; two networks for 80 epochs at a rate of
    0.03 took as long and found 7 points less, give or take 6.
    """

    on_rows: bool | None = True
    runs: ClassVar[int] = 1
    row_model: ClassVar[MLP] = MLP(layers=2, hidden=32)
    row_recipe: ClassVar[Recipe] = Recipe(epochs=120, lr=0.05, patience=0, validate_every=10)

    @property
    def scored(self) -> int:
        room = max(100, MOST_ENTRIES // max(1, self.val.inputs.num_nodes))
        return min(len(self.val.nodes), GLANCED_AT, room)

    @cached_property
    def rows(self) -> LabelledView:
        drawn = torch.randperm(len(self.val.nodes), generator=generator(self.seed, "validation rows"))
        chosen = drawn[: self.scored].sort().values.to(self.val.nodes.device)
        rows = some_rows(self.val.inputs, self.val.nodes[chosen], Hops(self.hops))
        everyone = torch.arange(len(rows), device=rows.device)
        return LabelledView(Inputs(rows, Identity()), everyone, self.val.y[chosen], everyone.cpu())


@dataclass(frozen=True, eq=False)
class LongGlance(Glance):
    """A glance where condensing anew takes long.

    On graphs of Amazon Computers it finds 2.2 points less than a GCN, give or take 1.9; a third of the epochs find 7.2
    less, give or take 3.8.
    """

    row_recipe: ClassVar[Recipe] = Recipe(epochs=360, lr=0.05, patience=0, validate_every=10)


def updated_clusters(method: Clusters, task: Task, small: CondensedGraph, changes: SourceChanges) -> Clustered:
    """What ``method`` makes of ``task``, going on from the groups and the teacher's labels in ``small``."""
    assert small.cluster is not None
    classes_before = changes.classes[small.hard_labels]
    smooth = KeptGroups.following(
        task.train.inputs,
        method.hops,
        task.seed,
        before=groups_before(small.cluster, changes)[task.train.source_index],
        classes_before=classes_before,
    )
    taught = taught_again(method.teacher, task, small, changes.classes, method.metric)
    task.notes.choices |= taught.choices
    graph, quota = _gathered(method, task, small, taught, smooth)
    return Clustered(replace(labelled_by(task, taught), quota=quota), graph)


def taught_again(name: TeacherName, task: Task, small: CondensedGraph, classes: Tensor, metric: Metric) -> Taught:
    """Labels for all nodes of ``task`` by the teacher ``name``, who remembers ``small``; its ``classes`` are so now."""
    said = small.provenance.choices if small.provenance is not None else {}
    return teach_again(
        name,
        task.train,
        task.val,
        task.num_classes,
        task.seed,
        memory=(small.x, labels_now(small, classes, task.num_classes)),
        reached=said.get("val_accuracy") if said.get("teacher") in {"network", "both"} else None,
        metric=metric,
    )


def groups_before(cluster: Tensor, changes: SourceChanges) -> Tensor:
    """The synthetic node that each node of the source now stood behind: int64 [N], -1 for none or no longer."""
    group = cluster[changes.before.clamp(min=0)]
    return torch.where(changes.unsettled, -1, group)


def labels_now(small: CondensedGraph, classes: Tensor, count: int) -> Tensor:
    """The labels of ``small`` as shares of the ``count`` classes that there are now: float32 [n, C].

    A row that was of a class that is gone counts nothing.
    """
    soft = small.y if small.y.dim() == 2 else F.one_hot(small.y, small.num_classes).float()
    there = classes >= 0
    now = torch.zeros(len(soft), count)
    now[:, classes[there]] = soft[:, there]
    return now / now.sum(1, keepdim=True).clamp(min=1e-12)


def _gathered(
    method: Clusters, task: Task, small: CondensedGraph, taught: Taught, smooth: KeptGroups
) -> tuple[CondensedGraph, Tensor]:
    """The condensed graph by what is set, or was chosen before, or is chosen now; and its nodes per class.

    Choices are made as :meth:`Clusters.settle` makes them, on this very graph and by a glance.
    """
    made, notes = small.provenance, task.notes.choices
    assert made is not None
    undecided, settled = [each for each in CHOICES if getattr(method, each[0]) == "auto"], method
    at = int(made.choices.get("settled_at", made.source["nodes"]))
    task = replace(task, importance=taught.importance)
    asked = "network" in candidates(method.teacher, task.train, task.val)
    slow = asked and RandomPropagation().work(task.train) > SLOW
    kind = LongGlance if slow else Glance
    glance = kind(task.val, task.num_classes, task.seed, method.metric, importance=task.importance)
    cheap = asked or task.val.inputs.feature_entries * glance.scored <= CHEAP
    anew = bool(undecided) and len(task.val.nodes) > 0 and (cheap or task.source_nodes >= OUTGROWN * at)
    for setting, simple, other in undecided:
        kept = other if made.choices.get(setting) == other and not anew else simple
        settled = settled.chosen(setting, kept)
    best = settled.gather(task, taught, smooth)
    if anew:

        def reached(graph: CondensedGraph) -> float:
            return glance.accuracy(graph.view().to(task.train.y.device))

        most = reached(best[0])
        tried = {"the simpler": most}
        for setting, _, other in undecided:
            if not method.is_open(setting, task, taught, most):
                continue
            changed = settled.chosen(setting, other)
            graph = changed.gather(task, taught, smooth)
            tried[f"{setting}={other}"] = found = reached(graph[0])
            if found > most + method.margin(most, task, glance.scored):
                settled, best, most = changed, graph, found
        at, notes["tried"] = task.source_nodes, tried
    notes |= {setting: getattr(settled, setting) for setting, *_ in CHOICES} | {"settled_at": at}
    return best
