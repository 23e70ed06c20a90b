"""The gradient of a model's loss on each class, for all classes at once."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.graph import Inputs, LabelledView
from gcond.linalg.dense_products import multiply_dense
from gcond.matching.distance import Gradients
from gcond.models import Model
from gcond.models.model import Parameters

BLOCK_ROWS = 4096
"""Rows at a time of a long design: their scores, a row for each class, stay in the cache until they are used."""


def class_gradients(
    model: Model, parameters: Parameters, view: LabelledView, classes: int, together: int | None = None
) -> Gradients:
    r"""``G_c = ∇_θ (1 / n_c) Σ_{i: y_i = c} CE(f_θ(X, A)_i, c)`` for every class: a dictionary of [C, *weight].

    The labelled nodes of ``view`` are in order of class. Where its features or adjacency are being learned,
    the result is differentiable in them. A model that is linear in something dense is differentiated by hand;
    any other has one forward pass and C vector-Jacobian products, ``together`` at a time (all by default).
    """
    design = model.linear_in(view.inputs)
    if isinstance(design, Tensor):
        return linear_class_gradients(parameters, design[view.nodes], view.y, classes)
    share = F.one_hot(view.y, classes).to(view.inputs.x.dtype)
    share = share / share.sum(0).clamp(min=1)

    def losses(weights: Parameters) -> Tensor:
        scores = model.logits(weights, view.inputs)[view.nodes]
        return F.cross_entropy(scores, view.y, reduction="none") @ share

    return torch.func.jacrev(losses, chunk_size=together)(parameters)


def loss_gradients(model: Model, parameters: Parameters, inputs: Inputs, nodes: Tensor, y: Tensor) -> Parameters:
    """The gradient of the mean cross-entropy of ``nodes`` [m] of ``inputs`` against their classes ``y`` [m]."""
    weights = {key: tensor.detach().requires_grad_() for key, tensor in parameters.items()}
    with torch.enable_grad():
        loss = F.cross_entropy(model.logits(weights, inputs)[nodes], y)
    return dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))


def linear_class_gradients(parameters: Parameters, design: Tensor, y: Tensor, classes: int) -> Gradients:
    r"""The same for scores ``H W + b``, in closed form: ``G_c = H_c^⊤ (P_c - Y_c) / n_c``.

    ``design`` is H [m, d] with its rows in order of class ``y`` [m]; P are the predicted probabilities. One
    derivative of this is one derivative: nothing is differentiated twice.
    """
    sizes = torch.bincount(y, minlength=classes)
    errors = (linear_error(parameters, design, F.one_hot(y, classes).mT) / sizes[y]).split(sizes.tolist(), dim=1)
    parts = zip(errors, design.split(sizes.tolist()), strict=True)
    return {
        "weight0": torch.stack([e @ h for e, h in parts]).mT,
        "bias0": torch.stack([e.sum(1) for e in errors]),
    }


@torch.no_grad()
def long_class_gradients(parameters: Parameters, design: Tensor, sizes: list[int]) -> Gradients:
    r"""The same for a design that nothing is differentiated by, in blocks of its rows.

    ``design`` is H [m, d] in order of class, with ``sizes`` rows of each. Scores of all rows at once, [C, m], would be
    written and read again from memory five times over; in blocks, and by the quickest product, it takes between a third
    and a half of the time. Sums have another order, so the two agree to rounding.
    """
    across, bias = parameters["weight0"].mT.contiguous(), parameters["bias0"][:, None]
    weight = design.new_zeros(len(sizes), len(sizes), design.shape[1])
    total = design.new_zeros(len(sizes), len(sizes))
    for label, rows in enumerate(design.split(sizes)):
        for block in rows.split(BLOCK_ROWS):
            error = multiply_dense(across, block.mT).add_(bias).softmax(0)
            error[label] -= 1
            weight[label] += multiply_dense(error, block)
            total[label] += error.sum(1)
    share = torch.tensor(sizes, device=design.device).clamp(min=1)[:, None]
    return {"weight0": (weight / share[..., None]).mT, "bias0": total / share}


def linear_error(parameters: Parameters, design: Tensor, target: Tensor) -> Tensor:
    """``(P - Y)^⊤`` [C, m] for ``P = softmax(H W + b)`` and ``target`` Y^⊤ [C, m].

    Everything about few classes lies on its side: a product with a long side next to a short one is three to
    four times as fast when the long side is contiguous, and so W is best kept by columns (:func:`by_columns`).
    """
    scores = parameters["weight0"].mT @ design.mT + parameters["bias0"][:, None]
    return scores.softmax(0) - target


def by_columns(parameters: Parameters) -> Parameters:
    """The same weights, matrices with their columns contiguous in memory."""
    return {key: tensor.mT.contiguous().mT if tensor.dim() == 2 else tensor for key, tensor in parameters.items()}
