"""The condensed graph, how it came to be, and its file."""

from gcond.condensed.compaction import Compaction
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.provenance import Provenance
from gcond.condensed.recommendation import Recommendation
from gcond.condensed.score import ClassMetrics, Score, Scores
from gcond.condensed.task import Task

__all__ = ["ClassMetrics", "Compaction", "CondensedGraph", "Provenance", "Recommendation", "Score", "Scores", "Task"]
