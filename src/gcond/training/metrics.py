"""Metrics of predicted classes, all of them derived from one confusion matrix.

M [C, C] counts nodes: row i is the true class, column j the predicted one. With the diagonal :math:`M_{ii}` as hits,

.. math:: \\text{accuracy} = \\frac{\\sum_i M_{ii}}{\\sum_{ij} M_{ij}}, \\qquad
    \\text{recall}_i = \\frac{M_{ii}}{\\sum_j M_{ij}}, \\qquad
    F_i = \\frac{2 M_{ii}}{\\sum_j M_{ij} + \\sum_j M_{ji}}.

Balanced accuracy is the mean recall of the classes that have nodes (Brodersen et al., ICPR 2010), macro-F1 the mean F
of those that have nodes or are predicted: scikit-learn's ``balanced_accuracy_score`` and ``f1_score(average="macro")``.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

import torch
from torch import Tensor

from gcond.condensed.score import ClassMetrics
from gcond.config.metric import Metric

Confusion = Sequence[Sequence[float]]
"""M as plain numbers, rows of true classes."""


def confusion_matrix(predicted: Tensor, y: Tensor, classes: int) -> Tensor:
    """How often each class was taken for each, by each of R predictions int64 [R, m] of ``y`` [m]: int64 [R, C, C]."""
    runs = len(predicted)
    place = torch.arange(runs, device=y.device)[:, None] * classes**2 + y * classes + predicted
    return torch.bincount(place.flatten(), minlength=runs * classes**2).view(runs, classes, classes)


def measured(
    predicted: Tensor, y: Tensor, classes: int, metric: Metric = "accuracy", importance: Tensor | None = None
) -> Tensor:
    """The ``metric`` of each of R predictions int64 [R, m] of the true classes ``y`` [m]: float64 [R].

    With ``importance`` [C] a node of class c counts as so many, as where nodes are to stand for others among which the
    classes have other shares.
    """
    if metric == "accuracy":
        right = (predicted == y).double()
        if importance is None:
            return right.mean(-1)
        counts = importance.double()[y]
        return right @ counts / counts.sum()
    found = confusion_matrix(predicted, y, classes)
    if importance is not None:
        found = found * importance.double()[:, None]
    return torch.tensor([value(each, metric) for each in found.tolist()], dtype=torch.float64, device=y.device)


def measured_once(
    predicted: Tensor, y: Tensor, classes: int, metric: Metric = "accuracy", importance: Tensor | None = None
) -> float:
    """The ``metric`` of one prediction int64 [m] of the true classes ``y`` [m]."""
    return float(measured(predicted[None], y, classes, metric, importance))


def value(confusion: Confusion, metric: Metric) -> float:
    """The ``metric`` of one confusion matrix; 0 where it counts no node at all."""
    hits = [row[place] for place, row in enumerate(confusion)]
    if metric == "accuracy":
        return sum(hits) / (sum(map(sum, confusion)) or 1)
    if metric == "balanced-accuracy":
        known = [recall for recall in class_accuracy(confusion) if recall is not None]
        return fmean(known) if known else 0.0
    both = [sum(row) + sum(column) for row, column in zip(confusion, zip(*confusion, strict=True), strict=True)]
    found = [2 * hit / total for hit, total in zip(hits, both, strict=True) if total]
    return fmean(found) if found else 0.0


def class_accuracy(confusion: Confusion) -> list[float | None]:
    """The recall of each class: the share of its nodes that are found; ``None`` for a class without nodes."""
    return [row[place] / sum(row) if sum(row) else None for place, row in enumerate(confusion)]


def over_runs(confusions: Sequence[Confusion | None]) -> ClassMetrics | None:
    """Means and deviations over several runs on the same nodes; ``None`` where there is none, or one is not known."""
    known = [each for each in confusions if each is not None]
    if not known or len(known) < len(confusions):
        return None
    f1, balanced = ([value(each, metric) for each in known] for metric in _BY_CLASS)
    recalls = zip(*(class_accuracy(each) for each in known), strict=True)
    return ClassMetrics(
        macro_f1=fmean(f1),
        macro_f1_std=deviation(f1),
        balanced_accuracy=fmean(balanced),
        balanced_accuracy_std=deviation(balanced),
        class_accuracy=tuple(_mean(each) for each in recalls),
    )


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation; 0 of a single number."""
    return stdev(values) if len(values) > 1 else 0.0


def standard_error(
    score: float, y: Tensor, classes: int, metric: Metric = "accuracy", importance: Tensor | None = None
) -> float:
    """The standard error of a ``score`` on nodes of the true classes ``y``, as if every class were found as often.

    A share p of m nodes has :math:`\\sqrt{p (1 - p) / m}`; the mean of C such shares of :math:`m_c` nodes each has
    :math:`\\frac{1}{C} \\sqrt{\\sum_c p (1 - p) / m_c}`, which stands for that of macro-F1 too.
    Nodes that count ``importance`` [C] by their class are as good as :math:`(\\sum w)^2 / \\sum w^2` that count alike.
    """
    if metric == "accuracy":
        counts = torch.ones(len(y)) if importance is None else importance.double()[y]
        return float((score * (1 - score) * counts.square().sum() / counts.sum() ** 2) ** 0.5)
    sizes = [size for size in torch.bincount(y, minlength=classes).tolist() if size]
    return float((score * (1 - score) * sum(1 / size for size in sizes)) ** 0.5 / len(sizes))


def clearly_more(
    score: float, y: Tensor, classes: int, metric: Metric = "accuracy", importance: Tensor | None = None
) -> float:
    """What is clearly more than a ``score`` on validation nodes of the true classes ``y``: half a standard error above.

    Whoever has tried the simpler of two keeps it unless the other is above that: the best of several that are equally
    good is the luckiest of them on these nodes.
    """
    return score + 0.5 * standard_error(score, y, classes, metric, importance)


_BY_CLASS: tuple[Metric, Metric] = ("macro-f1", "balanced-accuracy")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return fmean(known) if known else None
