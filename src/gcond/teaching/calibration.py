"""Scores of a teacher as probabilities that mean what they say."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcond.graph import LabelledView

SHARPNESS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 16.0)
"""Factors on the scores, in units of their standard deviation."""
ROUNDS = 20
"""Of expectation and maximisation."""


@dataclass(frozen=True)
class Calibrated:
    """Probabilities, and the choices that made them."""

    probabilities: Tensor
    """float32 [N, C], rows that add up to 1."""
    sharpness: float
    prior: bool
    """Whether they are corrected by the frequencies of the classes."""


@torch.no_grad()
def sharpen(scores: Tensor, val: LabelledView) -> Calibrated:
    """``softmax(s · scores / std)`` with the s that gives the labels of validation nodes the highest likelihood."""
    unit = scores / scores.std().clamp(min=1e-12)
    return _likeliest([Calibrated((s * unit).softmax(1), s, prior=False) for s in _tried(val)], val)


@torch.no_grad()
def calibrate(scores: Tensor, train: LabelledView, val: LabelledView) -> Calibrated:
    r"""The same, corrected by how frequent the classes turn out to be.

    A teacher learns from labelled nodes, in which classes often have equal shares, and answers for all nodes, in which
    they do not. The shares π of the classes among all nodes are estimated from its own answers by expectation and
    maximisation (Saerens et al., Neural Computation 2002), and the answers are weighed by them,
    :math:`p_{ic} ∝ q_{ic} π_c / π^{train}_c`. So the frequency of a class is in the labels of single nodes, and what
    is made from them may have any shares of its own.

    The estimate can run away where answers are vague. So it is dropped if that makes validation accuracy lower by more
    than its standard error.
    """
    unit = scores / scores.std().clamp(min=1e-12)
    known = torch.bincount(train.y, minlength=scores.shape[1]).to(scores).clamp(min=1)
    known = known / known.sum()
    plain = sharpen(scores, val)
    weighed = _likeliest([Calibrated(_weighed((s * unit).softmax(1), known), s, prior=True) for s in _tried(val)], val)
    before, after = (_accuracy(each.probabilities, val) for each in (plain, weighed))
    error = (before * (1 - before) / max(1, len(val.nodes))) ** 0.5
    return weighed if after >= before - error else plain


def _tried(val: LabelledView) -> tuple[float, ...]:
    return SHARPNESS if len(val.nodes) else (2.0,)


def _weighed(answers: Tensor, known: Tensor) -> Tensor:
    share, weighed = known, answers
    for _ in range(ROUNDS):
        weighed = answers * (share / known)
        weighed = weighed / weighed.sum(1, keepdim=True).clamp(min=1e-30)
        share = weighed.mean(0)
    return weighed


def _likeliest(tried: list[Calibrated], val: LabelledView) -> Calibrated:
    """The one that makes the labels of validation nodes likeliest; of equal ones the first."""

    def likelihood(each: Calibrated) -> float:
        return float(each.probabilities[val.nodes].gather(1, val.y[:, None]).clamp(min=1e-9).log().sum())

    return max(tried, key=likelihood)


def _accuracy(probabilities: Tensor, val: LabelledView) -> float:
    return float((probabilities[val.nodes].argmax(1) == val.y).double().sum()) / max(1, len(val.nodes))
