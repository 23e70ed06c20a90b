"""Listeners to a condensation: progress, logging, checkpoints, an end in time, and whatever a user adds."""

from gcond.callbacks.checkpoint import Checkpoint
from gcond.callbacks.deadline import Deadline
from gcond.callbacks.progress import Progress
from gcond.callbacks.tensorboard import TensorBoard
from gcond.matching.callback import Callback

__all__ = ["Callback", "Checkpoint", "Deadline", "Progress", "TensorBoard"]
