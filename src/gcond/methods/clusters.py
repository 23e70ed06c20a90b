"""Clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from gcond.condensed import CondensedGraph, Task
from gcond.graph import Inputs, LabelledView
from gcond.graph.budget import nodes_per_class
from gcond.linalg.equal_groups import equal_groups
from gcond.linalg.random_projection import projected_features
from gcond.linalg.sparse import SparseMatrix
from gcond.matching.callback import Callback
from gcond.matching.probe import Probe
from gcond.methods.method import Method
from gcond.runtime.seeds import generator
from gcond.teaching import Taught, TeacherName, candidates, teach

MASS_ROUNDS = 50
"""Of making the classes' shares of the labels even; it converges in a few."""


TRIED_PER_CLASS = 10
"""Groups of each class in the graphs by which a teacher is chosen, as far as it has labelled nodes."""


@dataclass(frozen=True, eq=False)
class Clustered:
    """What :class:`Clusters` makes, and the task as it sees it then."""

    task: Task
    """With the nodes per class of ``graph``, and all nodes labelled in ``taught``."""
    graph: CondensedGraph


@dataclass(frozen=True)
class Clusters(Method):
    r"""Means of equally large groups of *all* nodes of a class, with labels that a teacher gives them.

    1. A teacher (:mod:`gcond.teaching`) says how likely every node is of every class, P [N, C]; labelled nodes keep
       their class. Where all nodes are labelled, as in the inductive setting, their labels take its place.
    2. The nodes of each predicted class are cut into equally large groups by :math:`Â^k X`, rows of unit length.
    3. With G [n, N] the groups' indicators, rows divided by their sums: :math:`X' = G Â^k X`, :math:`Y' = G P`, A' = I.

    Nothing is trained on the condensed graph, so it takes seconds. Three choices make it serve every model, each with
    its reason (docs/clusters.md has the figures):

    - **Equal groups**: training gives every condensed node the same weight, so the mean over X' should be the mean of
      the class.
    - **Shares of the classes as in the training labels**: a model with little freedom (SGC under weight decay) learns
      little more than these shares where they are uneven, so they are what it would meet on the whole graph. Groups per
      class are chosen so that the columns of Y' add up to that, and what is left by rounding is evened out in Y'.
    - **The classes' true frequencies in P**: they are estimated by the teacher and move single nodes from one class to
      the other, which costs no model anything.
    """

    name: ClassVar[str] = "clusters"
    kind: ClassVar[Literal["merged"]] = "merged"
    summary: ClassVar[str] = "means of groups of all nodes, labelled by a teacher: the most accurate in seconds"
    citation: ClassVar[str] = (
        "this project; Feng et al., Graph Random Neural Networks, NeurIPS 2020, for the network among its teachers"
    )

    teacher: TeacherName = "auto"
    """Who labels the unlabelled nodes: ``ridge`` (closed form), ``network`` (random propagation with consistency),
    ``both``, ``ensemble`` (of several, for those who have time), or ``auto``: both where that takes a few seconds."""
    hops: Annotated[int, Field(ge=0)] = 2
    """Propagations in the features, k: as far as the usual two-layer models look. With ``structure=edges`` 1 is better,
    since training propagates again."""
    labels: Literal["soft", "hard"] = "soft"
    """``soft``: shares of every class; ``hard``: the likeliest."""
    structure: Literal["none", "edges"] = "none"
    """``edges`` gives A' the edges between clusters, for models that want some; ``none`` is A' = I."""

    def reduce(self, task: Task, callbacks: Sequence[Callback] = ()) -> CondensedGraph:
        return self.prepared(task).graph

    def prepared(self, task: Task) -> Clustered:
        """The condensed graph, and the task with the teacher's labels in it, for methods that go on from there."""
        taught = self.taught(task)
        graph, quota = self.gather(task, taught)
        return Clustered(replace(_labelled(task, taught), quota=quota), graph)

    def labelled(self, task: Task) -> Task:
        """The task with the teacher's labels in it, for methods that match all nodes and start elsewhere."""
        return _labelled(task, self.taught(task))

    def taught(self, task: Task) -> Taught:
        """The labels of the teacher; of several, of the one whose clusters teach a network best, by validation.

        They are tried at :data:`TRIED_PER_CLASS` groups for each class whatever the budget, so that all budgets of a
        graph have the same teacher.
        """
        names = candidates(self.teacher, task.train)
        if not len(task.val.nodes):
            names = names[:1]  # nobody could tell which is best
        found = {name: teach(name, task.train, task.val, task.num_classes, task.seed) for name in names}
        if len(found) == 1:
            return found[names[0]]
        population = torch.bincount(task.train.y.cpu(), minlength=task.num_classes)
        trial = replace(task, quota=population.clamp(max=TRIED_PER_CLASS))
        probe = Probe(task.val, task.num_classes, task.seed)

        def reached(name: TeacherName) -> float:
            tried, _ = self.gather(trial, found[name])
            return probe.accuracy(tried.view().to(task.train.y.device))

        accuracy = {name: reached(name) for name in names}
        best = max(names, key=accuracy.__getitem__)  # of equal ones the first, which is the simplest
        chosen = found[best]
        return replace(chosen, choices=chosen.choices | {"teachers_tried": accuracy})

    def gather(self, task: Task, taught: Taught) -> tuple[CondensedGraph, Tensor]:
        """The condensed graph of labels that are known, and its nodes per class: all but the teacher."""
        inputs, device = task.train.inputs, task.train.y.device
        nodes = int(task.quota.sum())
        shares = torch.bincount(task.train.y.cpu(), minlength=task.num_classes).double()
        labels, predicted = taught.labels.cpu(), taught.classes.cpu()
        quota = group_quota(nodes, labels, predicted, shares / shares.sum())
        group = group_by_class(inputs, predicted, quota, self.hops, task.seed)
        hard = torch.repeat_interleave(torch.arange(task.num_classes), quota)
        soft = with_every_class(evened(_means(labels, group, nodes), shares / shares.sum()), hard)
        certain = bool((soft.max(1).values > 1 - 1e-6).all())
        cluster = torch.full((task.source_nodes,), -1)
        cluster[task.train.source_index] = group
        edges = self._edges(inputs, group, nodes)
        graph = CondensedGraph(
            x=propagated_means(inputs, group, nodes, self.hops, device),
            y=hard if certain or self.labels == "hard" else soft,
            edge_index=edges.edge_index,
            edge_weight=edges.values,
            cluster=cluster,
        )
        return graph, quota

    def _edges(self, inputs: Inputs, group: Tensor, nodes: int) -> SparseMatrix:
        """Weights between clusters, beside a self-loop of 1 for what a cluster has within."""
        adjacency = inputs.adjacency
        if self.structure == "none" or not isinstance(adjacency, SparseMatrix):
            return SparseMatrix.from_scipy(scipy.sparse.csr_matrix((nodes, nodes), dtype=np.float32))
        member = _indicators(group, nodes)
        size = np.asarray(member.sum(1)).ravel()
        between = (member @ adjacency.to_scipy().astype(np.float64) @ member.T).tocsr()
        within = between.diagonal() + size  # a node's own self-loop stays within
        scale = scipy.sparse.diags(within**-0.5)
        weights = scale @ (between - scipy.sparse.diags(between.diagonal())) @ scale
        if adjacency.symmetric:
            weights = scipy.sparse.triu(weights)  # sums in another order differ in their last digit
            weights = weights + weights.T
        weights = weights.tocsr().astype(np.float32)
        weights.eliminate_zeros()
        return SparseMatrix.from_scipy(weights, symmetric=adjacency.symmetric)


def _labelled(task: Task, taught: Taught) -> Task:
    task.notes.choices |= taught.choices
    everyone = torch.arange(task.train.inputs.num_nodes, device=task.train.y.device)
    return replace(task, taught=LabelledView(task.train.inputs, everyone, taught.classes, task.train.source_index))


def group_quota(nodes: int, labels: Tensor, predicted: Tensor, shares: Tensor) -> Tensor:
    """Groups per class so that their mean labels add up to ``shares`` [C] of ``nodes``, about: int64 [C].

    With M [C, C] the mean labels of the nodes of each predicted class, groups q solve ``q M = nodes · shares``; every
    class gets one at least and no more than it has nodes.
    """
    classes = len(shares)
    size = torch.bincount(predicted, minlength=classes)
    total = torch.zeros(classes, classes, dtype=torch.float64).index_add_(0, predicted, labels.double())
    mean = total / size[:, None].clamp(min=1)
    wanted = torch.linalg.lstsq(mean.T, nodes * shares[:, None]).solution.squeeze(1)
    # Where labels are so soft that no groups would add up to the shares, no class goes beyond twice its own.
    wanted = torch.minimum(wanted.clamp(min=0), 2 * nodes * shares).clamp(min=1e-6)
    return nodes_per_class(nodes, wanted, most=size)


def group_by_class(inputs: Inputs, predicted: Tensor, quota: Tensor, hops: int, seed: int) -> Tensor:
    """The group of every node: int64 [N], in order of class; ``quota`` [C] are the groups of each."""
    points = projected_features(inputs.x, generator(seed, "folding features"))
    for _ in range(hops):
        points = inputs.gcn @ points
    points = F.normalize(points).cpu()
    stream = generator(seed, "groups")
    group = torch.empty(len(predicted), dtype=torch.long)
    first = 0
    for label, count in enumerate(quota.tolist()):
        members = (predicted == label).nonzero().squeeze(1)
        group[members] = first + equal_groups(points[members], count, stream)
        first += count
    return group


def propagated_means(inputs: Inputs, group: Tensor, nodes: int, hops: int, device: torch.device) -> Tensor:
    """``G Â^hops X``, float32 [n, d]: the means over groups, multiplied from the left, where there are fewest rows."""
    member = _indicators(group, nodes).astype(np.float32)
    left = scipy.sparse.diags((1 / np.asarray(member.sum(1)).ravel()).astype(np.float32)) @ member
    adjacency = inputs.gcn
    if isinstance(adjacency, SparseMatrix):
        turned = adjacency.T
        columns = torch.from_numpy(left.T.toarray()).to(device)  # [N, n]: Âᵀ acts on it from the left
        for _ in range(hops):
            columns = turned @ columns
    else:
        columns = torch.from_numpy(left.T.toarray()).to(device)
    if isinstance(inputs.x, SparseMatrix):
        return (inputs.x.T @ columns).T.contiguous().cpu()
    return (columns.T @ inputs.x).cpu()


def evened(labels: Tensor, shares: Tensor) -> Tensor:
    """Soft labels [n, C] whose columns add up to ``shares`` · n, rows to 1: each class weighed by one factor."""
    wanted = shares.float()
    for _ in range(MASS_ROUNDS):
        labels = labels * (wanted / labels.mean(0).clamp(min=1e-12))
        labels = labels / labels.sum(1, keepdim=True)
    return labels


def with_every_class(labels: Tensor, groups: Tensor) -> Tensor:
    """Soft labels [n, C] in which every class is the likeliest of a node, if only of one.

    A class whose share is far below one node would be in no row's lead. The row among its own ``groups`` (int64 [n],
    the class of each) that has most of it exchanges that with its largest entry then.
    """
    labels = labels.clone()
    while bool((missing := torch.bincount(labels.argmax(1), minlength=labels.shape[1]) == 0).any()):
        label = int(missing.nonzero()[0])
        row = int(torch.where(groups == label, labels[:, label], -1.0).argmax())
        leading = int(labels[row].argmax())
        most, own = float(labels[row, leading]), float(labels[row, label])
        least = 0.001 * most if most == own else 0.0  # an even row exchanges nothing
        labels[row, label], labels[row, leading] = most + least, own - least
    return labels


def _indicators(group: Tensor, nodes: int) -> scipy.sparse.csr_matrix:
    index = group.numpy()
    return scipy.sparse.csr_matrix((np.ones(len(index)), (index, np.arange(len(index)))), shape=(nodes, len(index)))


def _means(rows: Tensor, group: Tensor, nodes: int) -> Tensor:
    total = torch.zeros(nodes, rows.shape[1]).index_add_(0, group, rows)
    return total / torch.bincount(group, minlength=nodes)[:, None]
