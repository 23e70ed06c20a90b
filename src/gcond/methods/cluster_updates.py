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
from gcond.errors import DivergedError
from gcond.graph import LabelledView
from gcond.graph.kept_groups import KeptGroups
from gcond.graph.spread_features import SpreadFeatures
from gcond.methods.clusters import Clustered, Clusters, labelled_by, sampled
from gcond.models import MLP
from gcond.runtime.seeds import generator
from gcond.teaching import Taught, TeacherName
from gcond.teaching.refresher import teach_again
from gcond.training import Recipe
from gcond.training.metrics import clearly_more
from gcond.training.side_by_side_perceptrons import best_validation

LESS = 0.02
"""What a glance finds less than a probe, on graphs of Cora and CiteSeer."""
GLANCED_AT = 500
"""Validation nodes that a glance looks at, at most."""


@dataclass(frozen=True, eq=False)
class Glance:
    """A probe for a choice between two graphs, from features alone, folded as they are for the groups.

    A small network learns X' and Y' and is scored on a few validation nodes. On graphs of Cora and CiteSeer that grow,
    what one graph is ahead of the other by goes with what :class:`~gcond.matching.probe.Probe` finds (correlations of
    0.84 and 0.90), for an eighth of its cost.
    """

    smooth: SpreadFeatures
    task: Task
    metric: Metric
    model: ClassVar[MLP] = MLP(layers=2, hidden=64)
    recipe: ClassVar[Recipe] = Recipe(epochs=120, lr=0.05, patience=0, validate_every=10)

    def accuracy(self, condensed: LabelledView) -> float:
        """What a probe would find, about: from the same seed for every graph."""
        seeds, classes = [self.task.seed], self.task.num_classes
        recipe = replace(self.recipe, metric=self.metric)
        assert isinstance(condensed.inputs.x, Tensor)
        train = (self.smooth.fold(condensed.inputs.x.cpu()), condensed.y.cpu())
        importance = None if self.task.importance is None else self.task.importance.cpu()
        try:
            found = best_validation(
                self.model, train, self._rows, classes=classes, seeds=seeds, recipe=recipe, importance=importance
            )
        except DivergedError:
            return 0.0
        return float(found) + LESS

    def clearly_more(self, reached: float) -> float:
        """The least accuracy that another graph has to have in place of one that ``reached`` so much."""
        y = self._rows[1]
        importance = None if self.task.importance is None else self.task.importance.cpu()
        return clearly_more(reached, y, self.task.num_classes, self.metric, importance)

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor]:
        val = self.task.val
        drawn = torch.randperm(len(val.nodes), generator=generator(self.task.seed, "validation rows"))
        chosen = drawn[: min(len(val.nodes), GLANCED_AT)].sort().values
        return self.smooth.points[val.nodes.cpu()[chosen]], val.y.cpu()[chosen]


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
    if not len(task.val.nodes):  # where there is nobody to ask, choices stay
        method = _as_before(method, small)
    elif method.spread == "auto":  # by the very groups that it is decided by when condensing, whatever the budget
        plain = SpreadFeatures(smooth.inputs, smooth.hops, smooth.seed, smooth.points)
        method = method.chosen("spread", method.spread_settled(sampled(task, taught), taught, plain)[0].spread)
    weighted = replace(task, importance=taught.importance)
    _, (graph, quota) = method.settled_by(Glance(smooth, weighted, method.metric), weighted, taught, smooth)
    return Clustered(replace(labelled_by(task, taught), quota=quota), graph)


def _as_before(method: Clusters, small: CondensedGraph) -> Clusters:
    """``method`` with the choices that were made for ``small`` where it leaves them open."""
    assert small.provenance is not None
    made = small.provenance.choices
    return replace(method, **{key: made[key] for key in method.made if key in made and method.made[key] == "auto"})


def taught_again(name: TeacherName, task: Task, small: CondensedGraph, classes: Tensor, metric: Metric) -> Taught:
    """Labels for all nodes of ``task`` by the teacher ``name``, who remembers ``small``; its ``classes`` are so now."""
    made = small.provenance
    return teach_again(
        name,
        task.train,
        task.val,
        task.num_classes,
        task.seed,
        memory=(small.x, labels_now(small, classes, task.num_classes)),
        before=made.choices if made is not None and "penalty" in made.choices else None,
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
