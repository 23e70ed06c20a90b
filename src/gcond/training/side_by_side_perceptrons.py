"""Small perceptrons trained side by side, their gradients written out: what autograd and single steps cost is saved.

A step of one as small as a probe's takes half a millisecond, half of it in going from one operation to the next. Those
of several seeds in the same operations, as products with one wide first layer, take half of that each.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.errors import DivergedError
from gcond.linalg.adam import Adam
from gcond.linalg.dense_products import multiply_dense
from gcond.models import MLP
from gcond.models.model import Parameters
from gcond.runtime.seeds import generator
from gcond.training.metrics import measured_once
from gcond.training.progress import Progress
from gcond.training.recipe import Recipe


@torch.no_grad()
def best_validation(
    model: MLP,
    train: tuple[Tensor, Tensor],
    val: tuple[Tensor, Tensor],
    *,
    classes: int,
    seeds: Sequence[int],
    recipe: Recipe,
    importance: Tensor | None = None,
) -> Tensor:
    r"""The best look of each of R runs at the validation rows, float64 [R]: as :func:`gcond.training.fit` has it.

    ``train`` is X [m, d] and Y, [m] class ids or [m, C] soft rows; ``val`` is rows and class ids, which count by their
    class where there is an ``importance`` [C]. The model has two layers and ReLU, the recipe no dropout and no
    patience. With ``A = relu(X W₀ + b₀)`` and ``E = (softmax(A W₁ + b₁) - Y) / m``, the gradients are
    ``X^⊤ (E W₁^⊤ ∘ [A > 0])`` for W₀, ``A^⊤ E`` for W₁, and sums over rows for the biases.
    """
    assert model.layers == 2
    assert model.activation == "relu"
    assert recipe.dropout == 0
    assert recipe.epochs_to_wait is None
    x, y = train
    target = y if y.dim() == 2 else F.one_hot(y, classes).to(x.dtype)
    across, whole = x.mT.contiguous(), target.sum(1, keepdim=True)
    weights = _stacked([model.init(x.shape[1], classes, generator(seed, "weights")) for seed in seeds], x)
    adam, progress = Adam(weights, recipe.lr, recipe.weight_decay), Progress(recipe)
    best = torch.full((len(seeds),), -1.0, dtype=torch.float64)
    while not progress.is_over:
        if progress.lowers_rate():
            adam = Adam(weights, recipe.lr / 10, recipe.weight_decay)
        hidden = _hidden(weights, x)
        error = (_scores(weights, hidden).softmax(2).mul_(whole) - target).div_(len(x))  # [R, m, C]
        active = hidden.view(len(x), len(seeds), -1).transpose(0, 1)
        slope = torch.bmm(error, weights["weight1"].mT).transpose(0, 1).reshape(hidden.shape)
        slope = torch.ops.aten.threshold_backward.grad_input(slope, hidden, 0, grad_input=slope)
        adam.step(
            {
                "weight0": multiply_dense(across, slope),
                "bias0": slope.sum(0),
                "weight1": torch.bmm(active.mT, error),
                "bias1": error.sum(1, keepdim=True),
            }
        )
        progress.end_epoch()
        if progress.looks_now:
            found = _scores(weights, _hidden(weights, val[0])).argmax(2)
            reached = [measured_once(own, val[1], classes, recipe.metric, importance) for own in found]
            best = torch.maximum(best, torch.tensor(reached, dtype=torch.float64))
            progress.has_looked(better=False, has_fitted=False)
    if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
        raise DivergedError(f"training {model.name} diverged: use an lr below {recipe.lr:g}")
    return best


def _stacked(runs: Sequence[Parameters], like: Tensor) -> Parameters:
    """First layers of all runs as one wide one, [d, R · h] and [R · h]; second ones as [R, h, C] and [R, 1, C]."""
    stacked = {
        "weight0": torch.cat([run["weight0"] for run in runs], 1),
        "bias0": torch.cat([run["bias0"] for run in runs]),
        "weight1": torch.stack([run["weight1"] for run in runs]),
        "bias1": torch.stack([run["bias1"] for run in runs])[:, None],
    }
    return {key: tensor.to(like.device, like.dtype).contiguous() for key, tensor in stacked.items()}


def _hidden(weights: Parameters, x: Tensor) -> Tensor:
    """``relu(X W₀ + b₀)`` of all runs: [m, R · h]."""
    return multiply_dense(x, weights["weight0"]).add_(weights["bias0"]).relu_()


def _scores(weights: Parameters, hidden: Tensor) -> Tensor:
    """Class scores [R, m, C]."""
    runs = len(weights["weight1"])
    return torch.baddbmm(weights["bias1"], hidden.view(len(hidden), runs, -1).transpose(0, 1), weights["weight1"])
