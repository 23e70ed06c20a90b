"""The condensed graph, how it came to be, and its file."""

from gcond.condensed.compaction import Compaction
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.provenance import Provenance
from gcond.condensed.recommendation import Recommendation
from gcond.condensed.score import Score
from gcond.condensed.task import Task

__all__ = ["Compaction", "CondensedGraph", "Provenance", "Recommendation", "Score", "Task"]
