"""Groups of nodes that go on from earlier ones: members stay, as far as groups stay about equally large."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from gcond.graph.column_work import Hops
from gcond.graph.group_heirs import continued
from gcond.graph.inputs import Inputs
from gcond.graph.spread_features import SpreadFeatures
from gcond.linalg.equal_groups import equal_groups
from gcond.linalg.sparse import dense
from gcond.runtime.seeds import generator

WIDTH = 256
"""Columns that features are folded into before they are spread: angles are off by about 1/√256, 6 %, which decides only
where a node goes that lies between two groups. Means are of the features themselves."""
RENEWED = 0.1
"""Where more than this share of a class has no group yet, the class is cut into groups anew: members that came one by
one lie further apart than those of one cut (0.3 points of accuracy on Cora, where a fifth of all came at once)."""
LARGEST = 1.5
"""A group that is larger than so many times the usual size is cut, or gives members away."""


@dataclass(frozen=True, eq=False)
class KeptGroups(SpreadFeatures):
    """Spread features, folded, whose groups go on from those that nodes were in before."""

    before: Tensor = field(kw_only=True)
    """int64 [N]: the group of each node before, -1 for none."""
    classes_before: Tensor = field(kw_only=True)
    """int64 [n]: the class that each group was of, -1 for one that is no more."""

    @classmethod
    @torch.no_grad()
    def following(cls, inputs: Inputs, hops: int, seed: int, *, before: Tensor, classes_before: Tensor) -> KeptGroups:
        """The spread features of ``inputs`` and the groups ``before``, by node, with their classes."""
        width = inputs.num_features
        if width > WIDTH:
            stream = generator(seed, "folding features")
            signs = torch.randint(2, (width, WIDTH), generator=stream, dtype=torch.float32).mul_(2).sub_(1)
            folded = inputs.x @ (signs / WIDTH**0.5).to(inputs.x.device)
        else:
            folded = dense(inputs.x)
        points = inputs.spread(folded, Hops(hops))
        assert isinstance(points, Tensor)
        return cls(inputs, hops, points.cpu(), before=before, classes_before=classes_before)

    def groups(self, classes: Tensor, quota: Tensor, seed: int, weights: Tensor | None = None) -> Tensor:
        """The group of every node, in order of class, those that go on before new ones: int64 [N].

        Groups that are to be equally heavy by ``weights`` [N] are made anew, and go on by what they have in common.
        """
        assert isinstance(self.points, Tensor)
        stream = generator(seed, "groups")
        group = torch.empty_like(classes)
        first = 0
        for label, count in enumerate(quota.tolist()):
            own = (classes == label).nonzero().squeeze(1)
            was = self.before[own]
            was = torch.where((was >= 0) & (self.classes_before[was.clamp(min=0)] == label), was, -1)
            heavy = None if weights is None else weights[own]
            group[own] = first + regrouped(F.normalize(self.points[own]), was, count, stream, heavy)
            first += count
        return group


@torch.no_grad()
def regrouped(points: Tensor, before: Tensor, count: int, stream: Generator, weights: Tensor | None = None) -> Tensor:
    """``points`` [m, d], of unit length, in ``count`` groups, at most m, none of them empty: int64 [m].

    ``before`` (int64 [m]) is the group that each was in, -1 for none. Where few have none, the largest groups go on, in
    their order; those much larger than the others are cut in two, as long as there is room for more, or give away the
    members that are furthest off. Who has no group then fills up the nearest one with room, and the rest makes new
    ones. Where many have none, or ``weights`` [m] are given, all are cut anew, and new groups have the order of the old
    ones that they go on from.
    """
    if weights is not None or int((before < 0).sum()) > RENEWED * len(points):
        return _in_old_order(equal_groups(points, count, stream, weights).group, before, count)
    usual = len(points) / count
    group = _largest(before, count)
    kept = int(group.max()) + 1
    while kept < count:
        sizes = torch.bincount(group[group >= 0], minlength=max(kept, 1))
        waiting, most = int((group < 0).sum()), int(sizes.max())
        starved = waiting < (count - kept) * max(1.0, usual / 2)  # too few for the groups that are to be made of them
        if most < 2 or not (starved or most > LARGEST * usual):
            break
        members = (group == int(sizes.argmax())).nonzero().squeeze(1)
        halves = equal_groups(points[members], 2, stream).group
        group[members[halves == 1]] = kept
        kept += 1
    _give_away(points, group, kept, math.ceil(usual))
    waiting = int((group < 0).sum())
    fresh = count - kept
    if kept:
        to_fill = waiting - min(waiting, max(fresh, round(fresh * usual)))
        _fill_up(points, group, kept, math.ceil(usual), to_fill)
    if fresh:
        left = (group < 0).nonzero().squeeze(1)
        group[left] = kept + equal_groups(points[left], fresh, stream).group
    return group


def _in_old_order(group: Tensor, before: Tensor, count: int) -> Tensor:
    """``group`` renumbered: those that go on from an earlier one in its order, then the others."""
    old = int(before.max()) + 1
    follows = continued(before, group, old, count)[0] if old else torch.full((count,), -1)
    order = torch.where(follows >= 0, follows, old).argsort(stable=True)
    number = torch.empty_like(order)
    number[order] = torch.arange(count)
    return number[group]


def _largest(before: Tensor, count: int) -> Tensor:
    """At most ``count`` of the groups, the largest, renumbered in their order; members of the others are in none."""
    names, place, sizes = before.unique(return_inverse=True, return_counts=True)
    sizes = torch.where(names >= 0, sizes, 0)
    chosen = sizes.argsort(descending=True, stable=True)[:count]
    chosen = chosen[sizes[chosen] > 0].sort().values
    number = torch.full_like(names, -1)
    number[chosen] = torch.arange(len(chosen))
    return number[place]


def _means(points: Tensor, group: Tensor, count: int) -> Tensor:
    """Directions of the groups' means [count, d]."""
    there = group >= 0
    return F.normalize(torch.zeros(count, points.shape[1]).index_add_(0, group[there], points[there]))


def _give_away(points: Tensor, group: Tensor, count: int, size: int) -> None:
    """Take the members furthest off out of groups that are much larger than ``size``."""
    sizes = torch.bincount(group[group >= 0], minlength=count)
    large = (sizes > LARGEST * size).nonzero().squeeze(1).tolist()
    means = _means(points, group, count) if large else points
    for each in large:
        members = (group == each).nonzero().squeeze(1)
        near = (points[members] @ means[each]).argsort(descending=True, stable=True)
        group[members[near[size:]]] = -1


def _fill_up(points: Tensor, group: Tensor, count: int, size: int, nodes: int) -> None:
    """Put ``nodes`` of those without a group into the nearest of ``count`` groups with room, the nearest first."""
    room = (size - torch.bincount(group[group >= 0], minlength=count)).clamp(min=0)
    waiting = (group < 0).nonzero().squeeze(1)
    near = points[waiting] @ _means(points, group, count).T
    while nodes > 0 and len(waiting):
        best = near.masked_fill(room == 0, -math.inf).max(1)
        order = best.values.argsort(descending=True, stable=True)
        wanted = best.indices[order]
        # The rank of each among those that want the same group, nearest first.
        by_group = wanted.argsort(stable=True)
        starts = torch.bincount(wanted, minlength=count).cumsum(0).roll(1).index_fill_(0, torch.tensor(0), 0)
        rank = torch.empty_like(wanted)
        rank[by_group] = torch.arange(len(wanted)) - starts[wanted[by_group]]
        taken = order[(rank < room[wanted])][:nodes]
        group[waiting[taken]] = best.indices[taken]
        room -= torch.bincount(best.indices[taken], minlength=count)
        nodes -= len(taken)
        left = torch.ones(len(waiting), dtype=torch.bool)
        left[taken] = False
        waiting, near = waiting[left], near[left]
