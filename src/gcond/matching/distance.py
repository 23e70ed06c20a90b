"""The distance of the gradients on the condensed graph from those on the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor

Gradients: TypeAlias = dict[str, Tensor]
"""For every weight of a model, its gradient for each class: [C, *weight]."""

Distance = Literal["column-cosine", "cosine", "mse"]

# Far below the square of any gradient that float32 tells from noise; the released code's 1e-6 is above
# many of those that small features give, and matching then has nothing to follow.
TINY = 1e-24


def column_cosine(real: Gradients, synthetic: Gradients) -> Tensor:
    r"""``Σ_layers Σ_columns (1 - cos)``, the paper's equation (5); a column is what leads to one output.

    .. math:: D(G, G') = \sum_{i=1}^{d_2} \Big( 1 - \frac{G_{:,i} \cdot G'_{:,i}}{\|G_{:,i}\| \|G'_{:,i}\|} \Big)

    Biases have no columns and count nothing, as in the released code.
    """
    total = [(1 - _cosine(g, synthetic[key])).sum(1) for key, g in real.items() if g.dim() == 3]
    return torch.stack(total).sum(0)


def cosine(real: Gradients, synthetic: Gradients) -> Tensor:
    """``1 - cos`` of all gradients as one vector."""
    return 1 - _cosine(_flat(real), _flat({key: synthetic[key] for key in real}))


def mse(real: Gradients, synthetic: Gradients) -> Tensor:
    """Squared Euclidean distance of all gradients as one vector."""
    return (_flat(real) - _flat({key: synthetic[key] for key in real})).square().sum(1)


DISTANCES: dict[Distance, Callable[[Gradients, Gradients], Tensor]] = {
    "column-cosine": column_cosine,
    "cosine": cosine,
    "mse": mse,
}
"""Each gives the distance of every class, [C], of gradients on the condensed graph from those on the source."""


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    """Cosine along dimension 1."""
    # Two roots, not one of a product: TINY squared is 0 in float32, and columns can be zero on both sides.
    shorter = [(g.square().sum(1) + TINY).rsqrt() for g in (a, b)]
    return (a * b).sum(1) * shorter[0] * shorter[1]


def _flat(gradients: Gradients) -> Tensor:
    return torch.cat([g.flatten(1) for g in gradients.values()], dim=1)
