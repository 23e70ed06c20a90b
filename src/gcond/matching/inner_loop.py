"""The inner loop: the backbone learns on the condensed graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.graph import LabelledView
from gcond.linalg.adam import Adam
from gcond.matching.gradients import linear_error, loss_gradients
from gcond.models import Model
from gcond.models.model import Parameters
from gcond.runtime.threads import deserved, fewer_threads
from gcond.training.largest_product import largest_product


def train_backbone(
    model: Model, parameters: Parameters, adam: Adam, view: LabelledView, *, classes: int, steps: int
) -> None:
    """``steps`` Adam steps on the mean cross-entropy of the labelled nodes of ``view``, in place.

    What the weights do not touch is computed once for all steps; a linear model's gradient is closed-form,
    ``H^⊤ (P - Y) / n``. Steps as small as most of these are would wait for a second thread longer than they take, so
    they have as many as they deserve, however many the products around them have.
    """
    with fewer_threads(deserved(largest_product(model, view, classes))):
        design = model.linear_in(view.inputs)
        if isinstance(design, Tensor):
            design, target = design[view.nodes], F.one_hot(view.y, classes).mT
            with torch.no_grad():
                for _ in range(steps):
                    error = linear_error(parameters, design, target) / len(view.y)
                    adam.step({"weight0": (error @ design).mT, "bias0": error.sum(1)})
            return
        for _ in range(steps):
            adam.step(loss_gradients(model, parameters, view.inputs, view.nodes, view.y))
