"""The ridge teacher: regression on smoothed features in closed form, and its scores smoothed over the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.graph import LabelledView
from gcond.linalg.random_projection import projected_features
from gcond.linalg.sparse import Adjacency
from gcond.runtime.seeds import generator

HOPS = 4
"""Smoothing of the features, in hops: far enough for labels to be found on sparse graphs, and more changes little."""
PENALTIES = (0.3, 1.0, 3.0, 0.1, 10.0)
"""λ for rows of unit length, the usual ones first, so that they win where validation cannot tell."""
OWN_SHARES = (0.1, 0.2, 0.5, 1.0)
"""Share of a node's own score in every step of smoothing; 1 is none at all."""
STEPS = 10
"""Steps of smoothing; what an eleventh would change is below the differences that matter."""


@dataclass(frozen=True)
class RidgeScores:
    """The scores of the ridge teacher, and what validation chose on the way."""

    scores: Tensor
    """float32 [N, C]: the higher, the likelier."""
    penalty: float
    own_share: float


@torch.no_grad()
def ridge_scores(train: LabelledView, val: LabelledView, classes: int, seed: int) -> RidgeScores:
    r"""Scores of every node of the training graph by ridge regression, in closed form.

    .. math:: \bar H = \tfrac{1}{K+1} \sum_{k \le K} Â^k X, \qquad
        Z = \bar H (\bar H_L^⊤ \bar H_L + λ I)^{-1} \bar H_L^⊤ (Y_L - \bar Y), \qquad
        Q ← (1 - a) Â Q + a Z, \qquad \text{scores} = Q + \bar Y

    with rows of :math:`\bar H` of unit length, so that the scale of the features does not matter. λ and a are those
    with the highest validation accuracy. Where there are very many features they are folded by a random projection
    first (:mod:`gcond.linalg.random_projection`).
    """
    adjacency = train.inputs.gcn
    target = F.one_hot(train.y, classes).float()
    shares = target.mean(0)
    # One at a time, since on a large graph they are large; of equally good ones the first.
    best = -1.0
    for tried, raw in _regressions(_unit_rows(train, seed), train.nodes, target - shares):
        smooth = smooth_scores(adjacency, raw, OWN_SHARES[0]) + shares
        if (reached := _accuracy(smooth, val)) > best:
            best, regressed, chosen = reached, raw, RidgeScores(smooth, tried, OWN_SHARES[0])
    for share in OWN_SHARES[1:] if len(val.nodes) else ():
        smooth = smooth_scores(adjacency, regressed, share) + shares
        if (reached := _accuracy(smooth, val)) > best:
            best, chosen = reached, RidgeScores(smooth, chosen.penalty, share)
    return chosen


def _unit_rows(train: LabelledView, seed: int) -> Tensor:
    """The mean of ``X, ÂX, …`` over :data:`HOPS` hops, rows of unit length."""
    features = projected_features(train.inputs.x, generator(seed, "folding features"), labelled=len(train.nodes))
    total = features.clone()
    for _ in range(HOPS):
        features = train.inputs.gcn @ features
        total += features
    return F.normalize(total)


def _regressions(rows: Tensor, labelled: Tensor, target: Tensor) -> Iterator[tuple[float, Tensor]]:
    """Each of :data:`PENALTIES` with the scores [N, C]; one decomposition serves all of them."""
    own = rows[labelled]
    dual = len(own) <= own.shape[1]
    values, vectors = torch.linalg.eigh((own @ own.T if dual else own.T @ own).double())
    within = vectors.T @ (target if dual else own.T @ target).double()
    for penalty in PENALTIES:
        solved = (vectors @ (within / (values + penalty)[:, None])).float()
        yield penalty, rows @ (own.T @ solved if dual else solved)


def smooth_scores(adjacency: Adjacency, scores: Tensor, own: float) -> Tensor:
    """``Q ← (1 - own) Â Q + own Z`` for :data:`STEPS` steps from ``Q = Z``, the ``scores`` [N, C]."""
    if own == 1:
        return scores
    smooth, kept = scores, own * scores
    for _ in range(STEPS):
        smooth = torch.add(kept, adjacency @ smooth, alpha=1 - own)
    return smooth


def _accuracy(scores: Tensor, val: LabelledView) -> float:
    return float((scores[val.nodes].argmax(1) == val.y).double().mean()) if len(val.nodes) else 0.0
