"""Score a graph by training models on it and testing them on the source graph."""

from gcond.evaluation.protocol import Score, evaluate

__all__ = ["Score", "evaluate"]
