"""Membership: whether scores tell those that were trained on from those that were not.

The area under the ROC curve is the chance that a member scores higher than another, ties counted half:

.. math:: \\text{AUC} = \\frac{1}{mk} \\sum_{i,j} \\big([a_i > b_j] + \\tfrac12 [a_i = b_j]\\big)
    = \\overline{V} = \\overline{W},

with the placements :math:`V_i` of each of m members among the k others and :math:`W_j` the other way round. Its
variance is :math:`\\operatorname{var}(V)/m + \\operatorname{var}(W)/k` (DeLong, DeLong and Clarke-Pearson, Biometrics
1988), and that of a mean or of a difference of AUCs on the same nodes follows from the same mean or difference of
placements. The attack itself is the simplest one, by loss (Yeom et al., CSF 2018); a stronger one may tell more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NORMAL_95 = 1.959963984540054
"""Half of a 95 % interval, in standard errors."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number with its interval of 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Placements:
    """Placements of members among others [m], and of others among members [k]."""

    members: Numbers
    others: Numbers

    @classmethod
    def of(cls, members: Sequence[float], others: Sequence[float]) -> Placements:
        inside, outside = np.asarray(members, dtype=np.float64), np.asarray(others, dtype=np.float64)
        if len(inside) == 0 or len(outside) == 0:
            raise ValueError("an AUC needs scores of both kinds")
        return cls(_share_below(inside, outside), 1 - _share_below(outside, inside))

    @classmethod
    def mean(cls, several: Sequence[Placements]) -> Placements:
        """Of several models on the same nodes: its AUC is the mean of theirs."""
        return cls(np.mean([one.members for one in several], axis=0), np.mean([one.others for one in several], axis=0))

    def less(self, other: Placements) -> Placements:
        """The difference of two models on the same nodes: its AUC is that of theirs, between -1 and 1."""
        return Placements(self.members - other.members, self.others - other.others)

    @property
    def auc(self) -> float:
        return float(self.members.mean())

    @property
    def variance(self) -> float:
        """Of the AUC; 0 where there is a single node of a kind, which has none."""
        parts = (part.var(ddof=1) / len(part) for part in (self.members, self.others) if len(part) > 1)
        return float(sum(parts))

    def estimate(self, least: float = 0.0, most: float = 1.0) -> Estimate:
        """The AUC with its interval, cut off at ``least`` and ``most``."""
        return _estimate(self.auc, self.variance, least, most)


def within_classes(
    members: Sequence[Sequence[float]], others: Sequence[Sequence[float]], member_classes: Numbers, classes: Numbers
) -> Estimate | None:
    """The AUC over pairs of one class, the mean over several models; ``None`` where no class has both kinds.

    ``members`` and ``others`` have the scores by each model, ``member_classes`` and ``classes`` the nodes' classes.
    """
    inside, outside = np.asarray(members, dtype=np.float64), np.asarray(others, dtype=np.float64)
    found: list[tuple[int, Placements]] = []
    for label in np.intersect1d(member_classes, classes):
        own, rest = inside[:, member_classes == label], outside[:, classes == label]
        runs = [Placements.of(one.tolist(), other.tolist()) for one, other in zip(own, rest, strict=True)]
        found.append((own.shape[1] * rest.shape[1], Placements.mean(runs)))
    if not found:
        return None
    total = sum(pairs for pairs, _ in found)
    value = sum(pairs / total * one.auc for pairs, one in found)
    return _estimate(value, sum((pairs / total) ** 2 * one.variance for pairs, one in found), 0.0, 1.0)


def _share_below(scores: Numbers, among: Numbers) -> Numbers:
    """The share of ``among`` that is below each of ``scores``, ties counted half."""
    ordered = np.sort(among)
    below, up_to = np.searchsorted(ordered, scores, "left"), np.searchsorted(ordered, scores, "right")
    return np.asarray((below + up_to) / (2 * len(ordered)), dtype=np.float64)


def _estimate(value: float, variance: float, least: float, most: float) -> Estimate:
    half = NORMAL_95 * variance**0.5
    return Estimate(min(max(value, least), most), max(least, value - half), min(most, value + half))
