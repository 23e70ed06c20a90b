"""How sure a model may be: one number that its scores are multiplied by before they become probabilities.

A model that was trained on soft labels of groups of nodes is less sure than it is right, and one that fitted few labels
to the end is surer. Temperature scaling (Guo et al., On Calibration of Modern Neural Networks, ICML 2017) leaves every
class and every order as it is, and takes from the validation nodes how far scores are to be stretched:

.. math:: \\beta = \\arg\\min_\\beta -\\frac{1}{m} \\sum_i \\log \\mathrm{softmax}(\\beta s_i)_{y_i},

which is convex in β, the inverse of the temperature.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

LEAST, MOST = 0.01, 100.0
"""What β may be."""
HALVINGS = 40


@torch.no_grad()
def sharpness(scores: Tensor, y: Tensor) -> float:
    """β for scores [m, C] of nodes whose classes are ``y`` [m]; 1 where there are none.

    Each node counts as right by (m + 1) of m + 2 parts only, as Laplace's rule has it, so that a few nodes that are all
    right do not make a model sure beyond measure.
    """
    nodes, classes = scores.shape
    if nodes == 0 or classes < 2:
        return 1.0
    scores = scores.double()
    rest = 1 / (nodes + 2)
    target = torch.full_like(scores, rest / (classes - 1)).scatter_(1, y[:, None], 1 - rest)
    wanted = (target * scores).sum(1).mean()
    low, high = math.log(LEAST), math.log(MOST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        # The derivative by β: it grows with β, and is 0 at the least loss.
        expected = ((math.exp(middle) * scores).softmax(1) * scores).sum(1).mean()
        low, high = (middle, high) if bool(expected < wanted) else (low, middle)
    return math.exp((low + high) / 2)
