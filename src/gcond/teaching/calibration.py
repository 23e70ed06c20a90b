"""Scores of a teacher as probabilities that mean what they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcond.config.metric import Metric
from gcond.graph import LabelledView
from gcond.linalg.tall import Tall, map_rows
from gcond.runtime.seeds import generator
from gcond.teaching.frequencies import frequencies, frequencies_by_confusion, nearer, weighed
from gcond.training.metrics import measured_once, standard_error

SHARPNESS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 16.0)
"""Factors on the scores, in units of their standard deviation."""
NEWTON_STEPS = 20
"""At most, for the factors of the classes; from those of the sharpness before, three or four are enough."""
SMALL = 1e-4
"""Step below which they are found."""
SEEN = 300_000
"""Rows by which the frequencies of classes are estimated, at most; the error of a share is then a thousandth."""
SHIFTED = 0.9
"""Share of the validation nodes that they are worth once they count by how frequent their class is among all nodes,
below which they were not drawn as all nodes are: 0.99 on Cora, CiteSeer and PubMed, and 0.44 to 0.82 where equally many
were drawn of each class."""
JUDGED = 10_000
"""Validation nodes by which the factors are found, at most."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """The way from scores to probabilities, and the choices that made it."""

    sharpness: float
    deviation: Tensor
    """Of the scores."""
    weights: Tensor | None = None
    """float32 [C]: what the classes are weighed by."""
    shift: Tensor | None = None
    """float32 [C]: how much more frequent each class is among all nodes than among validation nodes, where they were
    not drawn alike."""
    frequencies: Tensor | None = None
    """float32 [C]: the shares of the classes among all nodes, where they were estimated and believed."""

    @property
    def prior(self) -> bool:
        """Whether probabilities are corrected by the frequencies of the classes."""
        return self.frequencies is not None

    def apply(self, scores: Tensor) -> Tensor:
        """Probabilities of ``scores`` [b, C]: float32 [b, C], rows that add up to 1."""
        answers = (self.sharpness * (scores / self.deviation)).softmax(1)
        return answers if self.weights is None else weighed(answers, self.weights)

    def of(self, scores: Tall) -> Tall:
        """The same for all rows."""
        return map_rows(scores, scores.shape[1], lambda rows, _: self.apply(rows))


@torch.no_grad()
def sharpen(scores: Tall, val: LabelledView, seed: int = 0) -> Calibration:
    """``softmax(s · scores / std)`` with the s that gives the labels of validation nodes the highest likelihood."""
    deviation = _seen(scores, seed).std().clamp(min=1e-12)
    judged = scores[val.nodes]

    tried = (Calibration(s, deviation) for s in _tried(val))
    return max(tried, key=lambda each: _likelihood(each, judged, val.y))


@torch.no_grad()
def calibrate(
    scores: Tall, train: LabelledView, val: LabelledView, seed: int = 0, *, metric: Metric = "accuracy"
) -> Calibration:
    r"""The same, corrected by how frequent the classes turn out to be.

    A teacher learns from labelled nodes, in which classes often have equal shares, and answers for all nodes, in which
    they do not. The shares π among all nodes are estimated from its own answers, and the answers are weighed by them,
    :math:`p_{ic} ∝ q_{ic} π_c / π^{train}_c`. So the frequency of a class is in the labels of single nodes, and what
    is made from them may have any shares of its own. That is dropped if it makes validation accuracy, or the
    ``metric``, lower by more than its standard error.

    Where validation nodes were drawn by class too, they cannot judge that, and the estimate has to be better. Then each
    class gets a factor of its own first, :math:`q_{ic} ∝ e^{b_c} \mathrm{softmax}(s z_i)_c`, so that the answers for
    validation nodes add up to the counts of the classes there, or nearly (:func:`_with_factors`), and π counts from
    there: :math:`p_{ic} ∝ q_{ic} π_c / π^{val}_c`. Without the factors a class that is answered too often gets an
    estimate that is higher still (Alexandari et al., ICML 2020). It is dropped where another estimate, by the likeliest
    classes alone, is nearer to no shift at all.

    By balanced accuracy all classes count the same, whatever their frequencies. Then answers are weighed to equal ones,
    :math:`p_{ic} ∝ \mathrm{softmax}(s z_i)_c / π^{train}_c`, without an estimate.
    """
    seen = _seen(scores, seed)
    known = torch.bincount(train.y, minlength=scores.shape[1]).to(seen).clamp(min=1)
    known = known / known.sum()
    plain = sharpen(scores, val, seed)
    if metric == "balanced-accuracy":
        return replace(plain, weights=1 / (len(known) * known))
    if not len(val.nodes):
        return _corrected(plain, seen, known)
    drawn = torch.randperm(len(val.nodes), generator=generator(seed, "calibration"))[:JUDGED].sort().values.to(val.y)
    judged, y = scores[val.nodes[drawn]], val.y[drawn]
    fitted = max(_with_factors(judged, y, plain.deviation), key=lambda found: found[1])[0]
    there, everywhere = fitted.apply(judged), fitted.apply(seen)
    there_known = there.mean(0)
    share = frequencies(everywhere, there_known)
    counts = (share / there_known)[y]
    if float(counts.sum() ** 2 / counts.square().sum()) >= SHIFTED * len(counts):
        tried = [_corrected(Calibration(s, plain.deviation), seen, known) for s in SHARPNESS]
        likeliest = max(tried, key=lambda each: _likelihood(each, judged, y))
        before, after = (
            measured_once(each.apply(judged).argmax(1), y, len(known), metric) for each in (plain, likeliest)
        )
        return likeliest if after >= before - standard_error(before, y, len(known), metric) else plain
    if not nearer(share, there_known, to=frequencies_by_confusion(everywhere, there, y).to(share)):
        return fitted
    assert fitted.weights is not None
    return replace(fitted, weights=fitted.weights * share / there_known, shift=share / there_known, frequencies=share)


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


def _likelihood(each: Calibration, scores: Tensor, y: Tensor) -> float:
    """The logarithm of how likely it makes the classes ``y`` [m] of nodes with ``scores`` [m, C]."""
    return float(each.apply(scores).gather(1, y[:, None]).clamp(min=1e-9).log().sum())


def _corrected(plain: Calibration, seen: Tensor, known: Tensor) -> Calibration:
    """The same, weighed by the frequencies that its answers for ``seen`` nodes have, by those that are ``known``."""
    share = frequencies(plain.apply(seen), known)
    return replace(plain, weights=share / known, frequencies=share)


def _with_factors(scores: Tensor, y: Tensor, deviation: Tensor) -> Iterator[tuple[Calibration, float]]:
    r"""Each sharpness with the factors of the classes that suit it, and how likely that makes it.

    b [C] has the highest :math:`\sum_i \log q_{i y_i} - \tfrac12 \lVert b \rVert^2`, by Newton's steps: few nodes of a
    class may change its odds by a factor of about e, and not by any.
    """
    unit = (scores / deviation).double()
    counts = torch.bincount(y, minlength=scores.shape[1]).double()
    bias = torch.zeros_like(counts)
    for sharpness in SHARPNESS:
        for _ in range(NEWTON_STEPS):
            answers = (sharpness * unit + bias).softmax(1)
            total = answers.sum(0)
            curvature = torch.diag(total + 1) - answers.T @ answers
            step = torch.linalg.solve(curvature, counts - total - bias)
            bias = bias + step / step.abs().max().clamp(min=1)
            if float(step.abs().max()) < SMALL:
                break
        likelihood = (sharpness * unit + bias).log_softmax(1).gather(1, y[:, None]).sum() - bias.square().sum() / 2
        yield Calibration(sharpness, deviation, bias.exp().to(scores)), float(likelihood)
