"""Coarsening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from pydantic import Field

from gcond.condensed import CondensedGraph, Task
from gcond.graph.contraction import coarsen_by_heavy_edges, coarsen_by_variation, contract, smooth_signals
from gcond.graph.stored_inputs import StoredInputs
from gcond.linalg.sparse import Matrix, SparseMatrix
from gcond.matching.callback import Callback
from gcond.methods.method import Method
from gcond.runtime.seeds import generator

Array = NDArray[Any]


@dataclass(frozen=True)
class Coarsening(Method):
    r"""Neighbouring nodes merged, level by level, until as many clusters are left as the budget has nodes.

    With P [n, N] the indicators of the clusters, each row divided by its sum in P̄:

    .. math:: X' = \bar P X, \qquad A' = P A P^\top \text{ without its diagonal}, \qquad
        y'_r = \text{the majority among the training nodes of cluster } r

    So features are means over all nodes of a cluster, labelled or not, and an edge weighs as much as all source edges
    between its two clusters together; nothing is normalised, since training normalises A' + I. A tie between
    classes goes to the lower one.

    A training graph needs a label on every node, and plain coarsening to n of N nodes leaves most clusters without
    a labelled node. Here a contraction may not take the clusters that hold a label below the budget, nor take
    the last cluster of a class; an unlabelled cluster may always join a neighbour. So coarsening goes on until every
    cluster has a label, and there are exactly as many as asked for. Contraction cannot leave a connected component:
    the budget is shared among them by their training nodes (at least one cluster each), those without any are
    dropped (-1 in ``cluster``), and if there are still more clusters than the budget, the smallest join the cluster of
    their own class whose mean features are nearest.

    One-way edges count half in both directions while merging, and A' keeps their direction.
    """

    name: ClassVar[str] = "coarsening"
    kind: ClassVar[Literal["merged"]] = "merged"
    summary: ClassVar[str] = "neighbouring nodes merged so that smooth signals on the graph survive"
    citation: ClassVar[str] = (
        "Loukas, Graph Reduction with Spectral and Cut Guarantees, JMLR 2019; "
        "Huang et al., Scaling Up Graph Neural Networks Via Graph Coarsening, KDD 2021"
    )

    variant: Literal["variation-neighbourhoods", "heavy-edge"] = "variation-neighbourhoods"
    """What is merged: neighbourhoods on which smooth signals vary least, or the ends of heavy edges (cheap)."""
    eigenvectors: Annotated[int, Field(ge=1)] = 10
    """K, how many smooth signals variation preserves, constants on components not counted; 10 in Loukas' code."""
    level_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.99
    """The largest share of its nodes that a level may merge away; 0.99 in Loukas' code."""

    def reduce(self, task: Task, callbacks: Sequence[Callback] = ()) -> CondensedGraph:
        inputs = task.train.inputs
        if isinstance(inputs, StoredInputs):
            raise inputs.arrays.too_large("coarsening", ", or the method clusters")
        assert isinstance(inputs.adjacency, SparseMatrix)
        adjacency = inputs.adjacency.to_scipy().astype(np.float64)
        votes = _votes(task)
        nodes = int(task.quota.sum())
        labels = LabelsKept(votes, *shares(adjacency, votes, nodes))
        merged = self.merge(((adjacency + adjacency.T) / 2).tocsr(), labels, task.seed)
        cluster = finish(merged, votes, inputs.x, nodes)
        kept = np.flatnonzero(cluster >= 0)
        edges = contract(adjacency[kept][:, kept], cluster[kept], nodes)
        if inputs.adjacency.symmetric:
            upper = scipy.sparse.triu(edges)  # sums in another order differ in their last digit
            edges = (upper + upper.T).tocsr()
        small = SparseMatrix.from_scipy(edges.astype(np.float32))
        source = torch.full((task.source_nodes,), -1)
        source[task.train.source_index] = torch.from_numpy(cluster)
        return CondensedGraph(
            x=torch.from_numpy(_means(inputs.x, cluster, nodes).astype(np.float32)),
            y=torch.from_numpy(_sum(votes, cluster, nodes).argmax(1)),
            edge_index=small.edge_index,
            edge_weight=small.values,
            cluster=source,
        )

    def merge(self, weights: scipy.sparse.csr_matrix, labels: LabelsKept, seed: int) -> Array:
        """The clusters that contraction alone gives: int64 [N]."""
        if self.variant == "heavy-edge":
            return coarsen_by_heavy_edges(weights, labels, self.level_ratio).cluster
        stream = generator(seed, "coarsening")
        signals = smooth_signals(
            weights, self.eigenvectors, lambda *shape: torch.randn(shape, generator=stream, dtype=torch.float64).numpy()
        )
        return coarsen_by_variation(weights, labels, signals, self.level_ratio).cluster


class LabelsKept:
    """The rule of :class:`Coarsening`: clusters with a label stay as many as their component's share, classes stay."""

    def __init__(self, votes: Array, component: Array, share: Array) -> None:
        """``votes`` int64 [N, C]: training nodes per class; ``component`` int64 [N]; ``share`` int64 [components]."""
        self.votes, self.component = votes, component
        self._label()
        # How many clusters each component may still lose, and how many there are of each class.
        self.spare = np.bincount(component[self.label >= 0], minlength=len(share)) - share
        self.of_class = np.bincount(self.label[self.label >= 0], minlength=votes.shape[1])

    def _label(self) -> None:
        self.label = np.where(self.votes.any(1), self.votes.argmax(1), -1)

    def admit(self, members: Array) -> Array:
        labels = self.label[members]
        voters = labels >= 0
        if np.count_nonzero(voters) < 2:
            return members
        if self._counts_after(members, labels[voters]).min() < 1:
            # Clusters of one class can always become one.
            members = members[~voters | (labels == np.bincount(labels[voters]).argmax())]
            voters = self.label[members] >= 0
        return members[~voters | (np.cumsum(voters) <= 1 + self.spare[self.component[members[0]]])]

    def merge(self, members: Array) -> None:
        labels = self.label[members]
        labels = labels[labels >= 0]
        if len(labels) > 1:
            self.of_class = self._counts_after(members, labels)
            self.spare[self.component[members[0]]] -= len(labels) - 1

    def _counts_after(self, members: Array, labels: Array) -> Array:
        counts = self.of_class - np.bincount(labels, minlength=len(self.of_class))
        counts[self.votes[members].sum(0).argmax()] += 1
        return counts

    def follow(self, step: Array, size: int) -> None:
        self.votes = _sum(self.votes, step, size)
        component = np.empty(size, dtype=np.int64)
        component[step] = self.component
        self.component = component
        self._label()


def shares(adjacency: scipy.sparse.csr_matrix, votes: Array, nodes: int) -> tuple[Array, Array]:
    """The component of every node, and how many of ``nodes`` clusters each component is to have.

    In proportion to training nodes by largest remainder, but at least one where there is one.
    """
    from scipy.sparse.csgraph import connected_components  # takes a while to import

    count, component = connected_components(adjacency, directed=False)
    labelled = np.bincount(component, votes.sum(1), count).astype(np.int64)
    exact = labelled * nodes
    share, rest = exact // labelled.sum(), exact % labelled.sum()
    share[np.argsort(-rest, kind="stable")[: nodes - share.sum()]] += 1
    # Lifting small components to one overshoots, which finish() makes good by joining the smallest clusters.
    return component.astype(np.int64), np.maximum(share, labelled > 0)


def finish(merged: Array, votes: Array, x: Matrix, nodes: int) -> Array:
    """Exactly ``nodes`` clusters of what contraction left, in order of class and then of their first node: int64 [N].

    Clusters without a label are dropped (-1). The largest cluster of each class stays, then the largest of all; each
    other one joins the cluster of its class whose mean features are nearest. That keeps every majority.
    """
    size = int(merged.max()) + 1
    ballots = _sum(votes, merged, size)
    labelled, label = ballots.any(1), ballots.argmax(1)
    population = np.where(labelled, np.bincount(merged), 0)
    order = np.argsort(-population, kind="stable")[: np.count_nonzero(labelled)]
    _, largest_of_class = np.unique(label[order], return_index=True)
    stays = np.concatenate(
        [order[largest_of_class], np.delete(order, largest_of_class)[: nodes - len(largest_of_class)]]
    )
    goes = np.setdiff1d(order, stays)
    stays = np.sort(stays)  # clusters are numbered by their first node
    stays = stays[np.argsort(label[stays], kind="stable")]
    target = np.full(size, -1)
    target[stays] = np.arange(nodes)
    if len(goes):
        place = np.full(size, -1)
        place[stays], place[goes] = np.arange(nodes), nodes + np.arange(len(goes))
        means = _means(x, place[merged], nodes + len(goes))
        for each in np.unique(label[goes]):
            of_class, mine = stays[label[stays] == each], goes[label[goes] == each]
            near, far = means[place[of_class]], means[place[mine]]
            distance = (near**2).sum(1) - 2 * far @ near.T  # less what is the same for all
            target[mine] = target[of_class[distance.argmin(1)]]
    return target[merged]


def _votes(task: Task) -> Array:
    """int64 [N, C]: one where a node is a training node of that class."""
    votes = np.zeros((task.train.inputs.num_nodes, task.num_classes), dtype=np.int64)
    votes[task.train.nodes.cpu().numpy(), task.train.y.cpu().numpy()] = 1
    return votes


def _indicators(cluster: Array, size: int) -> scipy.sparse.csr_matrix:
    """[size, N]: which nodes a cluster has; -1 is in none."""
    kept = np.flatnonzero(cluster >= 0)
    return scipy.sparse.csr_matrix((np.ones(len(kept)), (cluster[kept], kept)), shape=(size, len(cluster)))


def _sum(rows: Array, cluster: Array, size: int) -> Array:
    """Whole numbers summed over clusters: int64 [size, C]."""
    return (_indicators(cluster, size) @ rows).astype(np.int64)


def _means(x: Matrix, cluster: Array, size: int) -> Array:
    """Mean features of clusters: float64 [size, d]."""
    indicators = _indicators(cluster, size)
    features = x.to_scipy() if isinstance(x, SparseMatrix) else x.cpu().numpy()
    total = indicators @ features
    total = total.toarray() if scipy.sparse.issparse(total) else total
    return total / np.bincount(cluster[cluster >= 0], minlength=size)[:, None]
