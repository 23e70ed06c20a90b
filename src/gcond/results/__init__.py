"""The results of measurements: one type for each fact, with load and save, and the run folder that keeps them.

Accuracies are fractions, times are CPU seconds, sizes are bytes. A :class:`~gcond.condensed.score.Score` travels
with the graph that it is of, so its type lives in :mod:`gcond.condensed`.
"""

from gcond.condensed import Score
from gcond.results.audit import Audit, Closeness, Membership, NoisyAccuracy, Spread, Subject
from gcond.results.comparison import WHOLE, Comparison, Line
from gcond.results.failure import Failure
from gcond.results.observation import Observation
from gcond.results.recipe_search import RecipeSearch, TriedRecipe
from gcond.results.reproduction import Figure, ReproducedRow, Reproduction
from gcond.results.run_folder import RunFolder
from gcond.results.search import SIDES, Architecture, Search, Side, Winner
from gcond.results.source_summary import SourceSummary
from gcond.results.threshold import ThresholdPoint
from gcond.results.trial import Timing, Trial
from gcond.results.tuning import Finalist, TunedTrial, Tuning

__all__ = [
    "SIDES",
    "WHOLE",
    "Architecture",
    "Audit",
    "Closeness",
    "Comparison",
    "Failure",
    "Figure",
    "Finalist",
    "Line",
    "Membership",
    "NoisyAccuracy",
    "Observation",
    "RecipeSearch",
    "ReproducedRow",
    "Reproduction",
    "RunFolder",
    "Score",
    "Search",
    "Side",
    "SourceSummary",
    "Spread",
    "Subject",
    "ThresholdPoint",
    "Timing",
    "Trial",
    "TriedRecipe",
    "TunedTrial",
    "Tuning",
    "Winner",
]
