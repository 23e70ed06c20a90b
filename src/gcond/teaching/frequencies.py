"""How frequent the classes are among nodes without labels, by a teacher's answers for them."""

from __future__ import annotations

import torch
from torch import Tensor

ROUNDS = 20
"""Of expectation and maximisation. By answers that are vague more of them would go further and further; ten times as
many change no share by a hundredth where they are not."""


def frequencies(answers: Tensor, known: Tensor) -> Tensor:
    """Shares of the classes among nodes with ``answers`` [N, C], given for nodes with shares ``known`` [C]: [C].

    By maximum likelihood, in turns: answers weighed by the shares, and shares as the means of these answers (Saerens
    et al., Neural Computation 2002).
    """
    share = known
    for _ in range(ROUNDS - 1):
        share = weighed(answers, share / known).mean(0)
    return share


def frequencies_by_confusion(answers: Tensor, judged: Tensor, y: Tensor) -> Tensor:
    """The same by the likeliest classes alone, and by how often which class was answered for which: float64 [C].

    With K [C, C] the shares of each answer among the ``judged`` nodes (answers [m, C]) of each class ``y`` [m], and q
    those among all nodes: the π for which K π is nearest to q (Lipton et al., ICML 2018), again by maximum likelihood,
    so that none is below 0. One node more of each class, answered as all of them are, stands for what so few nodes
    leave open.
    """
    classes = answers.shape[1]
    said = torch.bincount(answers.argmax(1), minlength=classes).double() / len(answers)
    place = judged.argmax(1) * classes + y
    counts = torch.bincount(place, minlength=classes**2).view(classes, classes).double()
    known = counts.sum(0) / len(y)
    counts = counts + counts.sum(1, keepdim=True) / len(y)
    confusion, share = counts / counts.sum(0), known
    for _ in range(ROUNDS):
        share = share * (confusion.T @ (said / (confusion @ share).clamp(min=1e-30)))
    return share / share.sum()


def weighed(answers: Tensor, weights: Tensor) -> Tensor:
    """``answers`` [N, C] with each class weighed by one of ``weights`` [C], rows that add up to 1."""
    product = answers * weights
    return product / product.sum(1, keepdim=True).clamp(min=1e-30)


def nearer(one: Tensor, other: Tensor, to: Tensor) -> bool:
    """Whether shares ``one`` are nearer ``to`` others than the ``other`` ones are, by half the sum of differences."""
    return float((one - to).abs().sum()) < float((other - to).abs().sum())
