"""The ridge teacher: regression on smoothed features in closed form, and its scores smoothed over the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.config.metric import Metric
from gcond.graph import Inputs, LabelledView
from gcond.graph.column_work import Hops, SmoothedRows, Smoothing, SumOfHops
from gcond.linalg.tall import Columns, Tall, map_rows
from gcond.runtime.seeds import generator
from gcond.teaching.ridge_rows import PENALTIES, RidgeRows
from gcond.training.metrics import measured_once, standard_error

HOPS = 4
"""Smoothing of the features, in hops: far enough for labels to be found on sparse graphs, and more changes little."""
NEAR = 2
"""Hops of the features that take the place of the mean over :data:`HOPS` where validation is clearly for them: a node's
own features are in that mean, and where they are mostly noise it drowns what neighbours say."""
OWN_SHARES = (0.1, 0.2, 0.5, 1.0)
"""Share of a node's own score in every step of smoothing; 1 is none at all."""
STEPS = 10
"""Steps of smoothing; what an eleventh would change is below the differences that matter."""


MOST_LABELLED = 500_000
"""Labelled rows that the regression is fitted on; more of them, drawn from the seed, would change nothing."""


@dataclass(frozen=True, eq=False)
class RidgeScores:
    """The scores of the ridge teacher, and what validation chose on the way."""

    scores: Tall
    """float32 [N, C]: the higher, the likelier."""
    penalty: float
    """Of the power that was taken: each has penalties of its own."""
    own_share: float
    near: bool
    """Whether features are those of :data:`NEAR` hops and not the mean over :data:`HOPS`."""
    power: int
    """Of the kernel, where validation is for a higher one than the first (:meth:`RidgeRows.powers`)."""

    @property
    def choices(self) -> dict[str, Any]:
        """What validation chose, for the record; what it left as usual is not said."""
        near = {"near": True} if self.near else {}
        power = {"power": self.power} if self.power > 1 else {}
        return {"penalty": self.penalty, "own_share": self.own_share} | near | power


@dataclass(frozen=True)
class Choice:
    """A penalty and an own share, and the validation accuracy that they reach."""

    penalty: float
    own_share: float
    reached: float


@torch.no_grad()
def ridge_scores(
    train: LabelledView,
    val: LabelledView,
    classes: int,
    seed: int,
    metric: Metric = "accuracy",
    *,
    before: Mapping[str, Any] | None = None,
) -> RidgeScores:
    r"""Scores of every node of the training graph by ridge regression, in closed form.

    .. math:: \bar H = \tfrac{1}{K+1} \sum_{k \le K} Â^k X, \qquad
        Z = \bar H (\bar H_L^⊤ \bar H_L + λ I)^{-1} \bar H_L^⊤ (Y_L - \bar Y), \qquad
        Q ← (1 - a) Â Q + a Z, \qquad \text{scores} = Q + \bar Y

    with rows of :math:`\bar H` of unit length, so that the scale of the features does not matter; where validation is
    clearly for it, :math:`Â^2 X` takes its place. λ and a are those with the highest validation accuracy, or
    ``metric``, and so is the power of the kernel :math:`\bar H \bar H^⊤`, by which unlabelled nodes have a say if few
    are labelled (:meth:`RidgeRows.powers`). :mod:`gcond.teaching.unit_rows` says what is estimated on larger graphs.

    ``before`` are the :attr:`RidgeScores.choices` of the same graph when it had other nodes or labels: features stay
    near or far as they were. All else is asked anew, since it does change as labels come.
    """
    inputs = train.inputs
    nodes, y = _some(train, seed)
    target = F.one_hot(y, classes).float()
    shares = target.mean(0)

    def reached(rows: Tensor | Columns, weights: dict[float, Tensor]) -> float:
        own = rows[val.nodes]
        scores = (own @ weight + shares for weight in weights.values())
        return max(measured_once(each.argmax(1), val.y, classes, metric) for each in scores)

    ridge = RidgeRows(inputs, nodes, target - shares, seed)
    near = bool(before and before.get("near", False))
    unit = ridge.of(Hops(NEAR) if near else SumOfHops(HOPS))
    rows, weights = ridge.fitted(unit)
    if len(val.nodes) and before is None:
        others, far = ridge.of(Hops(NEAR)), reached(rows, weights)
        fitted = ridge.fitted(others)
        if near := reached(*fitted) > far + 2 * standard_error(far, val.y, classes, metric):
            unit, (rows, weights) = others, fitted
    chosen, power = _chosen(inputs, rows, weights, shares, val, metric=metric), 1
    for higher, fitted in ridge.powers(unit) if len(val.nodes) else ():
        tried = _chosen(inputs, *fitted, shares, val, metric=metric)
        if tried.reached <= chosen.reached:
            break
        (rows, weights), chosen, power = fitted, tried, higher
    weight = weights[chosen.penalty]
    scores = inputs.by_columns(map_rows(rows, classes, lambda block, _: block @ weight))
    smooth = inputs.spread(scores, Smoothing(chosen.own_share, STEPS))
    found = map_rows(smooth, classes, lambda block, _: block + shares)
    return RidgeScores(found, chosen.penalty, chosen.own_share, near, power)


def _some(train: LabelledView, seed: int) -> tuple[Tensor, Tensor]:
    """Labelled nodes and their classes, all of them unless they are very many."""
    if len(train.nodes) <= MOST_LABELLED:
        return train.nodes, train.y
    drawn = torch.randperm(len(train.nodes), generator=generator(seed, "regression"))[:MOST_LABELLED].sort().values
    return train.nodes[drawn], train.y[drawn]


def _chosen(
    inputs: Inputs,
    rows: Tensor | Columns,
    weights: dict[float, Tensor],
    shares: Tensor,
    val: LabelledView,
    *,
    metric: Metric,
) -> Choice:
    """The penalty and the own share that are best on validation nodes by ``metric``; of equally good ones the first.

    The penalty goes first, at the first share. Smoothing is linear in scores, and so in features: whichever have fewer
    columns go through the hops once, and only validation rows of them are kept.
    """
    if len(val.nodes) == 0:
        return Choice(PENALTIES[0], OWN_SHARES[0], 0.0)
    penalties = list(weights)
    columns = torch.cat(list(weights.values()), dim=1)
    narrow = columns.shape[1] <= rows.shape[1]
    base = map_rows(rows, columns.shape[1], lambda block, _: block @ columns) if narrow else rows
    found = inputs.spread(inputs.by_columns(base), SmoothedRows(OWN_SHARES, STEPS, val.nodes))
    assert isinstance(found, Tensor)
    smooth = found if narrow else found @ columns
    by_share = smooth.view(len(OWN_SHARES), len(val.nodes), len(penalties), len(shares))

    def reached(share: int, penalty: int) -> float:
        predicted = (by_share[share, :, penalty] + shares).argmax(1)
        return measured_once(predicted, val.y, len(shares), metric)

    penalty = max(range(len(penalties)), key=lambda place: reached(0, place))
    share = max(range(len(OWN_SHARES)), key=lambda place: reached(place, penalty))
    return Choice(penalties[penalty], OWN_SHARES[share], reached(share, penalty))
