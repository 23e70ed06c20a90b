"""Features spread over the graph, the groups that nodes fall into by them, and the groups' means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from gcond.graph.column_work import Hops
from gcond.graph.inputs import Inputs
from gcond.linalg.equal_groups import EqualGroups, equal_groups
from gcond.linalg.random_projection import folding
from gcond.linalg.sparse import SparseMatrix, transposed
from gcond.linalg.tall import Tall, map_rows, row_blocks
from gcond.runtime.memory import hand_back, held_bytes
from gcond.runtime.seeds import generator

WIDTH = 256
"""Columns that features are folded into before they are spread: angles are off by about 1/√256, 6 %, which decides only
where a node goes that lies between two groups. Means are of the features themselves."""
BLOCK = 8_000_000
"""Numbers of a block of columns: 32 MB, of which a product holds two or three."""


MOST_GROUPED = 128_000_000
"""Numbers in the rows that groups are found by, at most: 512 MB, or what with its copies fits beside all else where the
graph is on disk. Of more rows, some of each class find the groups, and the others fall into them."""
COPIES = 5
"""Of the rows of a class, that cutting it into groups takes: of unit length, of a part, centred and weighed."""


@dataclass(frozen=True, eq=False)
class SpreadFeatures:
    """``Â^hops X`` of a graph, made once for all that is grouped and averaged by it."""

    inputs: Inputs
    hops: int
    seed: int
    points: Tall
    """float32 [N, w] on the CPU: ``Â^hops X``, or ``Â^hops X R`` where its columns had to be folded."""

    @classmethod
    @torch.no_grad()
    def of(cls, inputs: Inputs, hops: int, seed: int) -> SpreadFeatures:
        """``Â^hops X``, folded where it is too wide (:func:`gcond.linalg.random_projection.projected_features`)."""
        points = inputs.spread(inputs.folded(_signs(seed), within=WIDTH), Hops(hops))
        return cls(inputs, hops, seed, points.cpu() if isinstance(points, Tensor) else points)

    def fold(self, rows: Tensor) -> Tensor:
        """Other ``rows`` [m, d] of spread features, folded as the points are: [m, w]."""
        shape, x = (self.inputs.num_nodes, self.inputs.num_features), self.inputs.x
        signs = folding(shape, _signs(self.seed), sparse=isinstance(x, SparseMatrix), within=WIDTH)
        return rows if signs is None else rows @ signs

    def groups(self, classes: Tensor, quota: Tensor, seed: int, weights: Tensor | None = None) -> Tensor:
        """The group of every node: int64 [N], in order of class.

        The nodes of each of ``classes`` (int64 [N]) fall into ``quota`` [C] equally large groups, by the directions of
        their points and not by their lengths, which on graphs mostly tell degrees. With ``weights`` [N] the groups are
        equally heavy.
        """
        stream = generator(seed, "groups")
        largest = int(torch.bincount(classes).max()) / len(classes) if len(classes) else 1.0
        numbers = min(MOST_GROUPED, int(self.inputs.may_take / (4 * (1 + COPIES * largest))))
        most = max(2 * int(quota.max()), numbers // (self.points.shape[1] * len(quota)))
        if len(classes) * self.points.shape[1] <= numbers:
            most = len(classes)
        members = [_some((classes == label).nonzero().squeeze(1), most, stream) for label in range(len(quota))]
        if not isinstance(self.points, Tensor):
            held_bytes()  # what earlier steps have left in rings of references is freed before rows are read beside it
        # One look at the rows for all classes: in a file each would go through all of it.
        rows = self.points if isinstance(self.points, Tensor) else self.points[torch.cat(members)]
        group = torch.full((len(classes),), -1)
        found, first, start = [], 0, 0
        for own, count in zip(members, quota.tolist(), strict=True):
            if not isinstance(self.points, Tensor):
                hand_back()  # the copies of one class after the other have many sizes, and leave holes that add up
            points = rows[own] if isinstance(self.points, Tensor) else rows[start : start + len(own)]
            heavy = None if weights is None else weights[own]
            found.append(equal_groups(F.normalize(points), count, stream, heavy))
            group[own] = first + found[-1].group
            first, start = first + count, start + len(own)
        return group if start == len(classes) else self._with_others(group, classes, quota, found)

    def _with_others(self, group: Tensor, classes: Tensor, quota: Tensor, found: Sequence[EqualGroups]) -> Tensor:
        """``group`` with the nodes that have none yet put into those that they fall into."""
        first = (quota.cumsum(0) - quota).tolist()
        for where, rows in row_blocks(self.points):
            waiting = group[where] < 0
            unit, block = F.normalize(rows), group[where]
            for label in classes[where][waiting].unique().tolist():
                own = (waiting & (classes[where] == label)).nonzero().squeeze(1)
                block[own] = first[label] + found[label].of(unit[own])
        return group

    @torch.no_grad()
    def means(self, group: Tensor, nodes: int, weights: Tensor | None = None) -> Tensor:
        """The groups' means of ``Â^hops X``, by ``weights`` [N] if given: float32 [n, d] on the CPU.

        Where the points are folded, the means are propagated instead, ``((Âᵀ)^hops Gᵀ)ᵀ X`` by blocks of groups.
        """
        if self.points.shape[1] == self.inputs.num_features:
            return group_means(self.points, group, nodes, weights)
        shares = _mean_weights(group, nodes, weights)
        back = transposed(self.inputs.gcn)
        means = torch.empty(nodes, self.inputs.num_features)
        width = max(1, BLOCK // len(group))
        for first in range(0, nodes, width):
            columns = torch.from_numpy(shares[:, first : first + width].toarray()).to(self.inputs.x.device)
            for _ in range(self.hops):
                columns = back @ columns
            means[first : first + width] = (self.inputs.x.T @ columns).T.cpu()
        return means

    @torch.no_grad()
    def stretch(self, group: Tensor, nodes: int, weights: Tensor | None = None) -> float:
        """How much further nodes are from the middle than the means of their groups, by root mean squares; at least 1.

        Every group weighs the same, as it does in training.
        """
        means = group_means(self.points, group, nodes, weights)
        middle = means.mean(0)
        square = map_rows(self.points, 1, lambda rows, _: (rows - middle).square().sum(1, keepdim=True))
        own = group_means(square, group, nodes, weights).mean()
        between = (means - middle).square().sum(1).mean()
        return max(1.0, float((own / between).sqrt())) if float(between) > 0 else 1.0


def _signs(seed: int) -> Generator:
    return generator(seed, "folding features")


def group_means(tall: Tall, group: Tensor, nodes: int, weights: Tensor | None = None) -> Tensor:
    """The means of rows [N, w], by ``weights`` [N] if given, over groups 0 to ``nodes`` - 1, none empty: [n, w].

    Sums are in double precision: a group may have any number of members.
    """
    sums = torch.zeros(nodes, tall.shape[1], dtype=torch.float64)
    for where, rows in row_blocks(tall):
        width = max(1, BLOCK // (2 * len(rows)))
        for first in range(0, rows.shape[1], width):
            columns = slice(first, first + width)
            block = rows[:, columns].double()
            sums[:, columns].index_add_(0, group[where], block if weights is None else weights[where, None] * block)
    return (sums / _heaviness(group, nodes, weights)[:, None]).float()


def _heaviness(group: Tensor, nodes: int, weights: Tensor | None) -> Tensor:
    """The number of members of each group, or the sum of their ``weights``."""
    return torch.bincount(group, None if weights is None else weights.double(), minlength=nodes)


def _some(members: Tensor, most: int, stream: Generator) -> Tensor:
    """At most so many of them, drawn, in order."""
    if len(members) <= most:
        return members
    return members[torch.randperm(len(members), generator=stream)[:most].sort().values]


def _mean_weights(group: Tensor, nodes: int, weights: Tensor | None) -> scipy.sparse.csc_matrix:
    """``Gᵀ`` [N, n]: the share of every node in the mean of its group."""
    index = group.numpy()
    share = (1 / _heaviness(group, nodes, weights)).float()[group]
    share = share if weights is None else share * weights
    return scipy.sparse.csc_matrix((share.numpy(), (np.arange(len(index)), index)), shape=(len(index), nodes))
