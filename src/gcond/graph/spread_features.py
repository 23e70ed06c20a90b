"""Features spread over the graph, the groups that nodes fall into by them, and the groups' means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.graph.inputs import Inputs
from gcond.linalg.equal_groups import equal_groups
from gcond.linalg.random_projection import projected_features
from gcond.linalg.sparse import transposed
from gcond.runtime.seeds import generator

BLOCK = 8_000_000
"""Numbers of a block of columns: 32 MB, of which a product holds two or three."""


@dataclass(frozen=True, eq=False)
class SpreadFeatures:
    """``Â^hops X`` of a graph, made once for all that is grouped and averaged by it."""

    inputs: Inputs
    hops: int
    points: Tensor
    """float32 [N, w] on the CPU: ``Â^hops X``, or ``Â^hops X R`` where its columns had to be folded."""

    @classmethod
    @torch.no_grad()
    def of(cls, inputs: Inputs, hops: int, seed: int) -> SpreadFeatures:
        """``Â^hops X``, folded where it is too large (:func:`gcond.linalg.random_projection.projected_features`)."""
        points = projected_features(inputs.x, generator(seed, "folding features"))
        for _ in range(hops):
            points = inputs.gcn @ points
        return cls(inputs, hops, points.cpu())

    def groups(self, classes: Tensor, quota: Tensor, seed: int) -> Tensor:
        """The group of every node: int64 [N], in order of class.

        The nodes of each of ``classes`` (int64 [N]) fall into ``quota`` [C] equally large groups, by the directions of
        their points and not by their lengths, which on graphs mostly tell degrees.
        """
        stream = generator(seed, "groups")
        group = torch.empty(len(classes), dtype=torch.long)
        first = 0
        for label, count in enumerate(quota.tolist()):
            members = (classes == label).nonzero().squeeze(1)
            group[members] = first + equal_groups(F.normalize(self.points[members]), count, stream)
            first += count
        return group

    @torch.no_grad()
    def means(self, group: Tensor, nodes: int) -> Tensor:
        """The groups' means of ``Â^hops X``: float32 [n, d] on the CPU.

        Where the points are folded, the means are propagated instead, ``((Âᵀ)^hops Gᵀ)ᵀ X`` by blocks of groups.
        """
        if self.points.shape[1] == self.inputs.num_features:
            return group_means(self.points, group, nodes)
        device = self.inputs.x.device
        weights = _mean_weights(group, nodes)
        back = transposed(self.inputs.gcn)
        means = torch.empty(nodes, self.inputs.num_features)
        width = max(1, BLOCK // len(group))
        for first in range(0, nodes, width):
            columns = torch.from_numpy(weights[:, first : first + width].toarray()).to(device)
            for _ in range(self.hops):
                columns = back @ columns
            means[first : first + width] = (self.inputs.x.T @ columns).T.cpu()
        return means

    @torch.no_grad()
    def stretch(self, group: Tensor, nodes: int) -> float:
        """How much further nodes are from the middle than the means of their groups, by root mean squares; at least 1.

        Every group weighs the same, as it does in training.
        """
        means = group_means(self.points, group, nodes)
        middle = means.mean(0)
        own = group_means((self.points - middle).square().sum(1, keepdim=True), group, nodes).mean()
        between = (means - middle).square().sum(1).mean()
        return max(1.0, float((own / between).sqrt())) if float(between) > 0 else 1.0


def group_means(rows: Tensor, group: Tensor, nodes: int) -> Tensor:
    """The means of ``rows`` [N, w] over groups 0 to ``nodes`` - 1, none of them empty: float32 [n, w].

    Sums are in double precision: a group may have any number of members.
    """
    size = torch.bincount(group, minlength=nodes)[:, None]
    width = max(1, BLOCK // (2 * len(rows)))
    blocks = (rows[:, first : first + width].double() for first in range(0, rows.shape[1], width))
    sums = (torch.zeros(nodes, block.shape[1], dtype=torch.float64).index_add_(0, group, block) for block in blocks)
    return torch.cat([(total / size).float() for total in sums], 1)


def _mean_weights(group: Tensor, nodes: int) -> scipy.sparse.csc_matrix:
    """``Gᵀ`` [N, n]: the share of every node in the mean of its group."""
    index = group.numpy()
    share = (1 / np.bincount(index, minlength=nodes)).astype(np.float32)
    return scipy.sparse.csc_matrix((share[index], (np.arange(len(index)), index)), shape=(len(index), nodes))
