"""Training: a recipe, and the weights that come of following it from one seed or many.

What is exported here is for users; the rest of the modules is internal.
"""

from __future__ import annotations

from gcond.training.fit import Fit, accuracy, fit, predict
from gcond.training.recipe import PAPER_PROTOCOL, Recipe, recipe_for

__all__ = ["PAPER_PROTOCOL", "Fit", "Recipe", "accuracy", "fit", "predict", "recipe_for"]
