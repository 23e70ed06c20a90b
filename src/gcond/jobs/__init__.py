"""One runner for all work that is many jobs: what is missing, in what batches, on which engine, kept where."""

from gcond.jobs.condensation import Condensation
from gcond.jobs.observed_training import ObservedTraining
from gcond.jobs.runner import Runner
from gcond.jobs.training_job import ORIGINAL, TrainingJob, training_seeds

__all__ = ["ORIGINAL", "Condensation", "ObservedTraining", "Runner", "TrainingJob", "training_seeds"]
