"""Rungs: all configurations train for a ninth of their epochs, the best for a third, the best of these for all.

This is successive halving without waiting for all (Li et al., A System for Massively Parallel Hyperparameter Tuning,
MLSys 2020). Each rung is a training of its own, with the rate dropped half-way as in a full one, and not a look
into the middle of a long training, so that what is compared is what a training of that length gives.

On a condensed graph looks at the validation nodes, which are computed on the whole graph, cost more than the training
itself, and the usual recipe looks most in the first epochs: 52 times in 66, 101 times in 600. A rung has to tell good
configurations from bad ones and keeps no weights, so it looks less often: a short one :data:`LOOKS` times, the last
:data:`LAST_LOOKS` times if it is not over before. On 60 nodes of a graph of 10,000 that is 15 looks where the recipe's
own were 74. Whoever is shortlisted is trained by the recipe as it is.
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
LAST_LOOKS = 40
"""The same for the last rung."""


def rungs(recipe: Recipe, prune: bool) -> tuple[Recipe, ...]:
    """The recipe of each rung; the last has all epochs, and is the only one where nothing is given up."""
    short = (max(1, recipe.epochs // share) for share in SHARES[:-1] if prune)
    return (*(_rung(recipe, epochs, LOOKS) for epochs in short), _rung(recipe, recipe.epochs, LAST_LOOKS))


def _rung(recipe: Recipe, epochs: int, looks: int) -> Recipe:
    every = max(1, epochs // looks) if recipe.validate_every == "auto" else recipe.validate_every
    return replace(recipe, epochs=epochs, validate_every=every)


def goes_on(accuracy: float, reached: Sequence[float]) -> bool:
    """Whether ``accuracy`` is within the best third of all that was ``reached`` on its rung so far, ties included."""
    return accuracy >= sorted(reached, reverse=True)[math.ceil(len(reached) / KEPT) - 1]
