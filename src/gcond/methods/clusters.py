"""Clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from gcond.condensed import CondensedGraph, Task
from gcond.config.metric import Metric
from gcond.config.settings import LATER
from gcond.graph import LabelledView
from gcond.graph.spread_features import SpreadFeatures, group_means
from gcond.graph.stored_inputs import StoredInputs
from gcond.linalg.tall import map_rows
from gcond.matching.callback import Callback
from gcond.matching.probe import Probe
from gcond.methods.cluster_edges import edges_between, no_edges
from gcond.methods.label_mass import evened, group_quota, label_mass, node_weights
from gcond.methods.method import Method
from gcond.runtime.seeds import generator
from gcond.teaching import Taught, TeacherName, teach
from gcond.training.metrics import measured_once

MATCHED = 100_000
"""Nodes of a graph on disk that are matched, at most: gradients of means over more of them differ by less than those of
two condensed graphs."""
TRIED_PER_CLASS = 10
"""Groups of each class in the graphs by which settings are chosen, as far as it has labelled nodes."""
CLOSE = 0.5
"""Means are close together where they lie nearer to their middle than this share of their length, by averages: 0.3 to
0.4 on graphs of purchases, which have most of their words in common, 0.7 to 1 on citations, words and made-up ones."""
MOST_STRETCHED = 2.0
"""Means are stretched by less than that elsewhere: they hold a quarter of the nodes' variance then, or more. What is
noise in them is stretched as well."""


class Judge(Protocol):
    """Whoever tells how much a network learns from a condensed graph."""

    def accuracy(self, condensed: LabelledView) -> float: ...

    def clearly_more(self, reached: float) -> float:
        """The least that another graph has to have in place of one that ``reached`` so much."""


Gathered: TypeAlias = tuple[CondensedGraph, Tensor]
"""A condensed graph, and its nodes per class: int64 [C]."""


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

    Nothing is trained on the condensed graph, so it takes seconds. Four choices make it serve every model, each with
    its reason (docs/clusters.md has the figures):

    - **Equal groups**: training gives every condensed node the same weight, so the mean over X' should be the mean of
      the class.
    - **Shares of the classes as in the training labels**: a model with little freedom (SGC under weight decay) learns
      little more than these shares where they are uneven, so they are what it would meet on the whole graph. Groups per
      class are chosen so that the columns of Y' add up to that, and what is left by rounding is evened out in Y'. Where
      balanced accuracy is asked for, all classes have the same.
    - **The spread of nodes**, where it helps: a mean of many nodes is nearer to the middle than any of them, and models
      do not get far on features that lie too close together. X' can be stretched about its mean until its variance is
      that of the nodes.
    - **The classes' true frequencies in P**: they are estimated by the teacher and move single nodes from one class to
      the other, which costs no model anything.
    """

    name: ClassVar[str] = "clusters"
    kind: ClassVar[Literal["merged"]] = "merged"
    summary: ClassVar[str] = "means of groups of all nodes, labelled by a teacher: the most accurate in seconds"
    citation: ClassVar[str] = (
        "this project; Feng et al., Graph Random Neural Networks, NeurIPS 2020, for the network among its teachers"
    )

    teacher: TeacherName = "ridge"
    """Who labels the unlabelled nodes: ``ridge`` (closed form), ``network`` (random propagation with consistency),
    ``both``, or ``ensemble`` (of several, for those who have time)."""
    hops: Annotated[int, Field(ge=0)] = 2
    """Propagations in the features, k: as far as the usual two-layer models look. With ``structure=edges`` 1 is better,
    since training propagates again."""
    labels: Literal["soft", "hard"] = "soft"
    """``soft``: shares of every class; ``hard``: the likeliest."""
    weight: Literal["auto", "alike", "labelled"] = "auto"
    """``alike``: every node counts the same in the mean of its group. ``labelled``: the labelled nodes together
    count as much as all others, because their labels are known. ``auto`` takes that where clusters of nodes that count
    alike teach less than the teacher knows, and validation is clearly for it."""
    spread: Literal["auto", "means", "nodes"] = "auto"
    """``means`` leaves X' as the means are; ``nodes`` stretches it about its mean until it is spread as the nodes that
    it stands for. ``auto`` does that where it takes little, or the means lie close together."""
    mass: Literal["auto", "training", "between", "frequencies"] = "auto"
    """The classes' shares of the labels: as in the ``training`` labels, as their ``frequencies`` among all nodes are
    estimated, or ``between``, the geometric mean of the two. ``auto`` takes that where validation nodes were drawn by
    class, and a linear model, which learns uneven shares before all else, does not pay for it."""
    structure: Literal["none", "edges"] = "none"
    """``edges`` gives A' the edges between clusters, for models that want some; ``none`` is A' = I."""
    metric: Metric = field(default="accuracy", metadata=LATER)
    """What is best on the validation nodes, wherever they choose: ``accuracy``, or ``macro-f1`` or
    ``balanced-accuracy``, for which rare classes count as much as frequent ones."""

    def reduce(self, task: Task, callbacks: Sequence[Callback] = ()) -> CondensedGraph:
        return self.prepared(task).graph

    def prepared(self, task: Task) -> Clustered:
        """The condensed graph, and the task with the teacher's labels in it, for methods that go on from there."""
        self.check_room(task)
        smooth = SpreadFeatures.of(task.train.inputs, self.hops, task.seed)
        settled, taught = self.settle(task, smooth)
        graph, quota = settled.gather(task, taught, smooth)
        return Clustered(replace(labelled_by(task, taught), quota=quota), graph)

    def check_room(self, task: Task) -> None:
        """Refuse before any work a graph on disk of which validation would have to hold more than it may."""
        inputs = task.val.inputs
        if isinstance(inputs, StoredInputs) and self.weight == "auto" and len(task.val.nodes):
            probe = self.probe(task)
            if not probe.without_graph:
                inputs.promise(task.val.nodes, probe.model.reach, probe.model.precomputed)

    def labelled(self, task: Task) -> Task:
        """The task with the teacher's labels in it, for methods that match all nodes and start elsewhere."""
        self.check_room(task)
        _, taught = self.settle(task, SpreadFeatures.of(task.train.inputs, self.hops, task.seed))
        return labelled_by(task, taught)

    def settle(self, task: Task, smooth: SpreadFeatures) -> tuple[Clusters, Taught]:
        """This method with every choice made, and the labels of its teacher.

        Choices are made at :data:`TRIED_PER_CLASS` groups for each class whatever the budget, so that all budgets of a
        graph have the same.
        """
        taught = teach(self.teacher, task.train, task.val, task.num_classes, task.seed, metric=self.metric)
        sample = sampled(task, taught)
        settled, _ = self.settled_by(self.probe(sample), sample, taught, smooth)
        task.notes.choices |= taught.choices
        return settled, taught

    def settled_by(self, judge: Judge, task: Task, taught: Taught, smooth: SpreadFeatures) -> tuple[Clusters, Gathered]:
        """This method with every choice made for what it gathers of ``task``, and that.

        - The spread follows a rule (:meth:`spread_settled`).
        - That labelled nodes count for more is tried where clusters teach less than the teacher knows: elsewhere its
          labels are as good as known ones. It is taken where the ``judge`` finds clearly more by it.
        - Another mass of the classes is tried where validation nodes were not drawn as all nodes are: elsewhere
          training labels tell as much. It is taken where a linear model can bear it, which learns uneven shares before
          all else; networks gain by it nearly everywhere, but less than a few hundred validation nodes could tell.

        Where there are no validation nodes the simpler values stay.
        """
        settled, gathered = self.spread_settled(task, taught, smooth)
        tried = dict[str, float]()
        if self.weight == "auto" and len(task.val.nodes) and _unlabelled(task):
            tried["weight=alike"] = reached = judge.accuracy(shown(gathered, task))
            if reached < self.known(task, taught):
                changed = settled.chosen("weight", "labelled")
                others = changed.gather(task, taught, smooth)
                tried["weight=labelled"] = found = judge.accuracy(shown(others, task))
                if found > judge.clearly_more(reached):
                    settled, gathered = changed, others
        if self.mass == "auto" and len(task.val.nodes) and task.importance is not None:
            changed = settled.chosen("mass", "between")
            others = changed.gather(task, taught, smooth)
            if self.probe(task).bears(shown(gathered, task), shown(others, task)):
                settled, gathered = changed, others
        task.notes.choices |= settled.made | ({"tried": tried} if tried else {})
        return settled, gathered

    @property
    def made(self) -> dict[str, str]:
        """The choices as they are, for the record."""
        return {setting: getattr(self, setting) for setting in ("weight", "spread", "mass")}

    def spread_settled(self, task: Task, taught: Taught, smooth: SpreadFeatures) -> tuple[Clusters, Gathered]:
        """This method with the simpler values of what is tried and its :attr:`spread` decided, and what it gathers.

        Means are stretched where that takes little (:data:`MOST_STRETCHED`), and where they lie close together
        (:data:`CLOSE`): there what tells them apart is small beside what they have in common, and it is a long way for
        a network to it from weights at random.
        """
        simple = self.chosen("weight", "alike") if self.weight == "auto" else self
        simple = simple.chosen("mass", "training") if self.mass == "auto" else simple
        means = simple.gather(task, taught, smooth)
        if self.spread != "auto":
            return simple, means
        graph, quota = means
        factor, middle = simple.stretch(graph, task, smooth), graph.x.mean(0)
        close = float((graph.x - middle).norm(dim=1).mean()) < CLOSE * float(graph.x.norm(dim=1).mean())
        if not close and factor >= MOST_STRETCHED:
            return simple.chosen("spread", "means"), means
        return simple.chosen("spread", "nodes"), (stretched(graph, factor), quota)

    def stretch(self, means: CondensedGraph, task: Task, smooth: SpreadFeatures) -> float:
        """How much further from the middle nodes are than their means."""
        assert means.cluster is not None
        return smooth.stretch(means.cluster[task.train.source_index], means.num_nodes, self.weights(task))

    def chosen(self, setting: str, value: str) -> Clusters:
        """The same with a choice made."""
        changes: dict[str, Any] = {setting: value}
        return replace(self, **changes)

    def probe(self, task: Task) -> Probe:
        """What clusters are tried by."""
        return Probe(task.val, task.num_classes, task.seed, self.metric, importance=task.importance)

    def shares(self, task: Task, frequencies: Tensor | None = None) -> Tensor:
        """The classes' shares of the labels, by :attr:`mass`; equal ones where each is to count the same.

        Without ``frequencies`` [C] of all nodes they are those of the training labels.
        """
        population = torch.bincount(task.train.y.cpu(), minlength=task.num_classes).double()
        if self.metric == "balanced-accuracy":
            population = (population > 0).double()
        elif frequencies is not None and self.mass in {"between", "frequencies"}:
            part = 0.5 if self.mass == "between" else 1.0
            population = (population / population.sum()) ** (1 - part) * frequencies.cpu().double() ** part
        return population / population.sum()

    def weights(self, task: Task) -> Tensor | None:
        """What every node counts in the mean of its group: float32 [N], or ``None`` where all count the same."""
        if self.weight != "labelled" or not _unlabelled(task):
            return None
        return node_weights(task.train.inputs.num_nodes, task.train.nodes.cpu())

    def known(self, task: Task, taught: Taught) -> float:
        """What the teacher itself knows of the validation nodes, by the same measure."""
        return measured_once(taught.classes[task.val.nodes], task.val.y, task.num_classes, self.metric, task.importance)

    def gather(self, task: Task, taught: Taught, smooth: SpreadFeatures) -> Gathered:
        """The condensed graph of labels that are known, and its nodes per class: all but the teacher.

        What is still ``auto`` is as the simpler value would have it.
        """
        nodes = int(task.quota.sum())
        mass = label_mass(nodes, self.shares(task, taught.frequencies))
        predicted = taught.classes.cpu()
        labels = taught.labels.cpu() if isinstance(taught.labels, Tensor) else taught.labels
        if self.labels == "hard":
            labels = map_rows(labels, task.num_classes, lambda rows, _: _certain(rows))
        weights = self.weights(task)
        quota = group_quota(nodes, labels, predicted, mass, weights)
        group = smooth.groups(predicted, quota, task.seed, weights)
        hard = torch.repeat_interleave(torch.arange(task.num_classes), quota)
        soft = evened(group_means(labels, group, nodes, weights), mass, hard)
        certain = bool((soft.max(1).values > 1 - 1e-6).all())
        cluster = torch.full((task.source_nodes,), -1)
        cluster[task.train.source_index] = group
        edges = edges_between(task.train.inputs, group, nodes) if self.structure == "edges" else no_edges(nodes)
        graph = CondensedGraph(
            x=smooth.means(group, nodes, weights),
            y=hard if certain else soft,
            edge_index=edges.edge_index,
            edge_weight=edges.values,
            cluster=cluster,
        )
        if self.spread == "nodes":
            graph = stretched(graph, self.stretch(graph, task, smooth))
        return graph, quota


def sampled(task: Task, taught: Taught) -> Task:
    """The task of making the few groups by which choices are made, which are the same for all budgets of a graph."""
    population = torch.bincount(task.train.y.cpu(), minlength=task.num_classes)
    return replace(task, importance=taught.importance, quota=population.clamp(max=TRIED_PER_CLASS))


def stretched(means: CondensedGraph, factor: float) -> CondensedGraph:
    """``means`` so many times as far from their middle."""
    middle = means.x.mean(0)
    return replace(means, x=middle + factor * (means.x - middle))


def shown(gathered: Gathered, task: Task) -> LabelledView:
    """The graph as models see it, where the source is."""
    return gathered[0].view().to(task.train.y.device)


def _unlabelled(task: Task) -> bool:
    """Whether there are nodes that a teacher labels."""
    return len(task.train.nodes) < task.train.inputs.num_nodes


def labelled_by(task: Task, taught: Taught) -> Task:
    """The task with all nodes labelled as they are taught, or as many as can be matched."""
    inputs, classes = task.train.inputs, taught.classes
    nodes = torch.arange(inputs.num_nodes, device=task.train.y.device)
    if isinstance(inputs, StoredInputs) and inputs.num_nodes > MATCHED:  # rows that are matched are held
        nodes = (
            torch.randperm(inputs.num_nodes, generator=generator(task.seed, "matched nodes"))[:MATCHED].sort().values
        )
        # A class that none of them is of would have no gradient.
        absent = [label for label in range(task.num_classes) if not bool((classes[nodes] == label).any())]
        of_absent = [(classes == label).nonzero().squeeze(1)[:1] for label in absent]
        nodes = torch.cat([nodes, *of_absent]).unique()
    labelled = LabelledView(inputs, nodes, classes[nodes], task.train.source_index)
    return replace(task, taught=labelled, importance=taught.importance)


def _certain(labels: Tensor) -> Tensor:
    """The likeliest class of each row [b, C], for certain."""
    return F.one_hot(labels.argmax(1), labels.shape[1]).to(labels)
