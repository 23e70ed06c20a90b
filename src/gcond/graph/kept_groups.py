"""Groups of nodes that go on from earlier ones: members stay, as far as groups stay about equally large."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from gcond.graph.group_heirs import continued
from gcond.graph.inputs import Inputs
from gcond.graph.spread_features import SpreadFeatures
from gcond.linalg.equal_groups import equal_groups
from gcond.runtime.seeds import generator

RENEWED = 0.1
"""Where more than this share of a class has no group yet, the class is cut into groups anew: members that came one by
one lie further apart than those of one cut (0.3 points of accuracy on Cora, where a fifth of all came at once)."""
LARGEST = 1.5
"""A group that is larger than so many times the usual size is cut, or gives members away."""


@dataclass(frozen=True, eq=False)
class KeptGroups(SpreadFeatures):
    """Spread features whose groups go on from those that nodes were in before."""

    before: Tensor = field(kw_only=True)
    """int64 [N]: the group of each node before, -1 for none."""
    classes_before: Tensor = field(kw_only=True)
    """int64 [n]: the class that each group was of, -1 for one that is no more."""

    @classmethod
    @torch.no_grad()
    def following(cls, inputs: Inputs, hops: int, seed: int, *, before: Tensor, classes_before: Tensor) -> KeptGroups:
        """The spread features of ``inputs`` and the groups ``before``, by node, with their classes."""
        made = SpreadFeatures.of(inputs, hops, seed)
        return cls(inputs, hops, seed, made.points, before=before, classes_before=classes_before)

    def groups(self, classes: Tensor, quota: Tensor, seed: int, weights: Tensor | None = None) -> Tensor:
        """The group of every node, in order of class, those that go on before new ones: int64 [N]."""
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
    ones. Where many have none, all are cut anew, and new groups have the order of the old ones that they go on from.
    With ``weights`` [m] groups are as large as their members are heavy.
    """
    if int((before < 0).sum()) > RENEWED * len(points):
        return _in_old_order(equal_groups(points, count, stream, weights).group, before, count)
    heavy = torch.ones(len(points), dtype=torch.float64) if weights is None else weights.double()
    usual = float(heavy.sum()) / count
    size = math.ceil(usual) if weights is None else usual
    group = _largest(before, heavy, count)
    kept = int(group.max()) + 1
    while kept < count:
        sizes, members = _sizes(group, heavy, max(kept, 1)), torch.bincount(group[group >= 0], minlength=max(kept, 1))
        sizes = torch.where(members > 1, sizes, 0)  # one node cannot be cut
        waiting, fresh = group < 0, count - kept
        # Too few without a group for the new ones that are to be made of them.
        starved = int(waiting.sum()) < fresh or float(heavy[waiting].sum()) < fresh * usual / 2
        if float(sizes.max()) == 0 or not (starved or float(sizes.max()) > LARGEST * usual):
            break
        cut = (group == int(sizes.argmax())).nonzero().squeeze(1)
        halves = equal_groups(points[cut], 2, stream, None if weights is None else weights[cut]).group
        group[cut[halves == 1]] = kept
        kept += 1
    _give_away(points, heavy, group, kept, size)
    fresh = count - kept
    if kept:
        _fill_up(points, heavy, group, (kept, size), (fresh, fresh * usual))
    if fresh:
        left = (group < 0).nonzero().squeeze(1)
        own = None if weights is None else weights[left]
        group[left] = kept + equal_groups(points[left], fresh, stream, own).group
    return group


def _in_old_order(group: Tensor, before: Tensor, count: int) -> Tensor:
    """``group`` renumbered: those that go on from an earlier one in its order, then the others."""
    old = int(before.max()) + 1
    follows = continued(before, group, old, count)[0] if old else torch.full((count,), -1)
    order = torch.where(follows >= 0, follows, old).argsort(stable=True)
    number = torch.empty_like(order)
    number[order] = torch.arange(count)
    return number[group]


def _sizes(group: Tensor, heavy: Tensor, count: int) -> Tensor:
    there = group >= 0
    return torch.bincount(group[there], heavy[there], minlength=count)


def _largest(before: Tensor, heavy: Tensor, count: int) -> Tensor:
    """At most ``count`` of the groups, the largest, renumbered in their order; members of the others are in none."""
    names, place = before.unique(return_inverse=True)
    sizes = torch.where(names >= 0, torch.bincount(place, heavy, minlength=len(names)), 0)
    chosen = sizes.argsort(descending=True, stable=True)[:count]
    chosen = chosen[sizes[chosen] > 0].sort().values
    number = torch.full_like(names, -1)
    number[chosen] = torch.arange(len(chosen))
    return number[place]


def _means(points: Tensor, heavy: Tensor, group: Tensor, count: int) -> Tensor:
    """Directions of the groups' means [count, d]."""
    there = group >= 0
    weighed = heavy[there, None].to(points) * points[there]
    return F.normalize(torch.zeros(count, points.shape[1]).index_add_(0, group[there], weighed))


def _give_away(points: Tensor, heavy: Tensor, group: Tensor, count: int, size: float) -> None:
    """Take the members furthest off out of groups that are much larger than ``size``."""
    large = (_sizes(group, heavy, count) > LARGEST * size).nonzero().squeeze(1).tolist()
    means = _means(points, heavy, group, count) if large else points
    for each in large:
        members = (group == each).nonzero().squeeze(1)
        members = members[(points[members] @ means[each]).argsort(descending=True, stable=True)]
        beyond = heavy[members].cumsum(0) > size
        beyond[0] = False
        group[members[beyond]] = -1


def _fill_up(points: Tensor, heavy: Tensor, group: Tensor, there: tuple[int, float], fresh: tuple[int, float]) -> None:
    """Put those without a group into the nearest with room, the nearest first, but for what new groups will need.

    ``there`` are the number of groups and their usual size, ``fresh`` the number of new ones and what they need.
    """
    count, size = there
    room = (size - _sizes(group, heavy, count)).clamp(min=0)
    waiting = (group < 0).nonzero().squeeze(1)
    near = points[waiting] @ _means(points, heavy, group, count).T
    spare = float(heavy[waiting].sum()) - fresh[1]
    while spare > 1e-9 and len(waiting) > fresh[0]:
        if float(room.max()) <= 0:  # rounding has left somebody over
            room = torch.full_like(room, math.inf)
        best = near.masked_fill(room <= 0, -math.inf).max(1)
        order = best.values.argsort(descending=True, stable=True)
        wanted = best.indices[order]
        # What goes before each into the same group, nearest first.
        by_group = wanted.argsort(stable=True)
        load = heavy[waiting][order][by_group]
        before = load.cumsum(0) - load
        starts = torch.bincount(wanted, minlength=count).cumsum(0).roll(1)
        starts[0] = 0
        ahead = torch.empty_like(load)
        ahead[by_group] = before - before[starts.clamp(max=len(load) - 1)][wanted[by_group]]
        taken = order[ahead < room[wanted] - 1e-9][: len(waiting) - fresh[0]]
        taken = taken[: 1 + int((heavy[waiting[taken]].cumsum(0) < spare - 1e-9).sum())]
        group[waiting[taken]] = best.indices[taken]
        room = room - torch.bincount(best.indices[taken], heavy[waiting[taken]], minlength=count)
        spare -= float(heavy[waiting[taken]].sum())
        left = torch.ones(len(waiting), dtype=torch.bool)
        left[taken] = False
        waiting, near = waiting[left], near[left]
