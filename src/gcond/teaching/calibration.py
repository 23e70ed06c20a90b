"""Scores of a teacher as probabilities that mean what they say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcond.config.metric import Metric
from gcond.graph import LabelledView
from gcond.linalg.tall import Tall, map_rows
from gcond.runtime.seeds import generator
from gcond.training.metrics import measured_once, standard_error

SHARPNESS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 16.0)
"""Factors on the scores, in units of their standard deviation."""
ROUNDS = 20
"""Of expectation and maximisation."""


SEEN = 300_000
"""Rows by which the frequencies of classes are estimated, at most; the error of a share is then a thousandth."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """The way from scores to probabilities, and the choices that made it."""

    sharpness: float
    deviation: Tensor
    """Of the scores."""
    weights: Tensor | None = None
    """float32 [C]: what the classes are weighed by, where they are corrected by their frequencies."""

    @property
    def prior(self) -> bool:
        """Whether probabilities are corrected by the frequencies of the classes."""
        return self.weights is not None

    def apply(self, scores: Tensor) -> Tensor:
        """Probabilities of ``scores`` [b, C]: float32 [b, C], rows that add up to 1."""
        answers = (self.sharpness * (scores / self.deviation)).softmax(1)
        return answers if self.weights is None else _weighed(answers, self.weights)

    def of(self, scores: Tall) -> Tall:
        """The same for all rows."""
        return map_rows(scores, scores.shape[1], lambda rows, _: self.apply(rows))


@torch.no_grad()
def sharpen(scores: Tall, val: LabelledView, seed: int = 0) -> Calibration:
    """``softmax(s · scores / std)`` with the s that gives the labels of validation nodes the highest likelihood."""
    deviation = _seen(scores, seed).std().clamp(min=1e-12)
    return _likeliest([Calibration(s, deviation) for s in _tried(val)], scores[val.nodes], val)


@torch.no_grad()
def calibrate(
    scores: Tall, train: LabelledView, val: LabelledView, seed: int = 0, *, metric: Metric = "accuracy"
) -> Calibration:
    r"""The same, corrected by how frequent the classes turn out to be.

    A teacher learns from labelled nodes, in which classes often have equal shares, and answers for all nodes, in which
    they do not. The shares π of the classes among all nodes are estimated from its own answers by expectation and
    maximisation (Saerens et al., Neural Computation 2002), and the answers are weighed by them,
    :math:`p_{ic} ∝ q_{ic} π_c / π^{train}_c`. So the frequency of a class is in the labels of single nodes, and what
    is made from them may have any shares of its own.

    By balanced accuracy all classes count the same, whatever their frequencies. Then answers are weighed to equal ones,
    :math:`p_{ic} ∝ q_{ic} / π^{train}_c`, without an estimate.

    The estimate can run away where answers are vague. So it is dropped if that makes validation accuracy, or the
    ``metric``, lower by more than its standard error.
    """
    seen, judged = _seen(scores, seed), scores[val.nodes]
    known = torch.bincount(train.y, minlength=scores.shape[1]).to(seen).clamp(min=1)
    known = known / known.sum()
    deviation = seen.std().clamp(min=1e-12)
    plain = sharpen(scores, val, seed)
    if metric == "balanced-accuracy":
        return replace(plain, weights=1 / (len(known) * known))
    tried = [Calibration(s, deviation, _frequencies((s * (seen / deviation)).softmax(1), known)) for s in _tried(val)]
    weighed = _likeliest(tried, judged, val)
    if not len(val.nodes):
        return weighed
    classes = len(known)
    before, after = (measured_once(each.apply(judged).argmax(1), val.y, classes, metric) for each in (plain, weighed))
    return weighed if after >= before - standard_error(before, val.y, classes, metric) else plain


def _seen(scores: Tall, seed: int) -> Tensor:
    """All rows where they are few or in memory, else some."""
    if isinstance(scores, Tensor):
        return scores
    count = scores.shape[0]
    if count <= SEEN:
        return scores[torch.arange(count)]
    return scores[torch.randint(count, (SEEN,), generator=generator(seed, "frequencies")).sort().values]


def _tried(val: LabelledView) -> tuple[float, ...]:
    return SHARPNESS if len(val.nodes) else (2.0,)


def _frequencies(answers: Tensor, known: Tensor) -> Tensor:
    """What answers are to be weighed by: the frequencies of the classes in them, by those that are known."""
    share = known
    for _ in range(ROUNDS - 1):
        share = _weighed(answers, share / known).mean(0)
    return share / known


def _weighed(answers: Tensor, weights: Tensor) -> Tensor:
    weighed = answers * weights
    return weighed / weighed.sum(1, keepdim=True).clamp(min=1e-30)


def _likeliest(tried: list[Calibration], scores: Tensor, val: LabelledView) -> Calibration:
    """The one that makes the labels of validation nodes, whose ``scores`` are given, likeliest; of equals the first."""

    def likelihood(each: Calibration) -> float:
        return float(each.apply(scores).gather(1, val.y[:, None]).clamp(min=1e-9).log().sum())

    return max(tried, key=likelihood)
