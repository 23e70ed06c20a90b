"""Rungs: all configurations train for a ninth of their epochs, the best for a third, the best of these for all.

This is successive halving without waiting for all (Li et al., A System for Massively Parallel Hyperparameter Tuning,
MLSys 2020). Each rung is a training of its own, with the rate dropped half-way as in a full one, and not a look
into the middle of a long training, so that what is compared is what a training of that length gives.

On a condensed graph looks at the validation nodes cost more than the training itself, and the usual recipe looks most
in the first epochs: 52 times in 66. A short rung has to tell good configurations from bad ones and keeps no weights,
so it looks :data:`LOOKS` times. The last rung is the recipe as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from gcond.training import Recipe

SHARES = (9, 3, 1)
"""What the epochs are divided by on each rung."""
KEPT = 3
"""One in so many goes on."""
LOOKS = 10
"""Looks at the validation nodes on a short rung, where the recipe leaves their number open."""


def rungs(recipe: Recipe, prune: bool) -> tuple[Recipe, ...]:
    """The recipe of each rung; the last is ``recipe`` itself, and the only one where nothing is given up."""
    short = (max(1, recipe.epochs // share) for share in SHARES[:-1] if prune)
    return (*(_short(recipe, epochs) for epochs in short), recipe)


def _short(recipe: Recipe, epochs: int) -> Recipe:
    looks = max(1, epochs // LOOKS) if recipe.validate_every == "auto" else recipe.validate_every
    return replace(recipe, epochs=epochs, validate_every=looks)


def goes_on(accuracy: float, reached: Sequence[float]) -> bool:
    """Whether ``accuracy`` is within the best third of all that was ``reached`` on its rung so far, ties included."""
    return accuracy >= sorted(reached, reverse=True)[math.ceil(len(reached) / KEPT) - 1]
