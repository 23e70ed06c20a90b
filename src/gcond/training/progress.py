"""The progress of one run: when it looks at the validation nodes, when its rate drops, and when it is over.

All of it follows from the recipe and the accuracies seen so far, never from the clock.
"""

from __future__ import annotations

import math

from gcond.training.recipe import Recipe

# By ``validate_every="auto"`` the next look comes when the epochs at this rate have grown by one part in so many. A
# step of Adam is as long as its rate, so weights move by about as much between two looks as a share of all the way
# that they have come.
GROWTH = 10


class Progress:
    """Where one run stands in its recipe."""

    def __init__(self, recipe: Recipe) -> None:
        self.epoch = 0
        """Epochs done."""
        self.looks = 0
        """Looks at the validation nodes so far."""
        self._every, self._patience = recipe.validate_every, recipe.epochs_to_wait
        self._second_half = recipe.epochs - recipe.epochs // 2
        self._at_last_rate = recipe.epochs == 1
        self._rate_from, self._rate_until = 0, max(1, recipe.epochs // 2)
        self._next_look, self._better = 1, 0

    @property
    def is_over(self) -> bool:
        return self._at_last_rate and self.epoch >= self._rate_until

    def lowers_rate(self) -> bool:
        """Whether the rate drops before the next epoch; once it was said, it has."""
        if self._at_last_rate or self.epoch < self._rate_until:
            return False
        self._at_last_rate = True
        self._rate_from = self._better = self.epoch
        self._rate_until = self.epoch + self._second_half
        self._next_look = self.epoch + 1
        if self._patience is not None:
            self._patience = math.ceil(self._patience / 2)
        return True

    def end_epoch(self) -> None:
        self.epoch += 1

    @property
    def looks_now(self) -> bool:
        """Whether the validation nodes are looked at after the epoch that was just done."""
        return self.is_over or (
            self.epoch == self._next_look if self._every == "auto" else self.epoch % self._every == 0
        )

    def has_looked(self, *, better: bool, has_fitted: bool) -> None:
        """Take note of a look, which was ``better`` than all before or was not.

        Patience is for models that have fitted what they are shown: a linear one may go through worse looks first and
        better ones later, while it still learns.
        """
        self.looks += 1
        self._next_look = self.epoch + max(1, (self.epoch - self._rate_from) // GROWTH)
        if better:
            self._better = self.epoch
        elif has_fitted and self._patience is not None and self.epoch - self._better >= self._patience:
            self._rate_until = self.epoch


def longest(recipe: Recipe) -> Progress:
    """The end of a run whose patience never ran out: the most epochs and looks that there can be."""
    progress = Progress(recipe)
    while not progress.is_over:
        progress.lowers_rate()
        progress.end_epoch()
        if progress.looks_now and recipe.select == "best-validation":
            progress.has_looked(better=False, has_fitted=False)
    return progress
