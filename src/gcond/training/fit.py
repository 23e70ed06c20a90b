"""Train one architecture on one graph, many seeds at once, or many architectures of one shape.

The runs share everything but their weights, so they are stacked: parameters carry a leading axis of
runs [R, …], one backward pass serves all, and what the weights do not touch (``ÂX``, the normalised
adjacency) is computed once. A run's numbers do not depend on how many run beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcond.errors import DivergedError, GcondError
from gcond.graph.labelled_view import LabelledView
from gcond.linalg.adam import Adam
from gcond.linalg.sparse import aligned
from gcond.models.model import Model, Parameters
from gcond.runtime.seeds import generator
from gcond.training.architectures import Architectures, StackedDropout
from gcond.training.recipe import Recipe

# Above this, a stack of runs is no faster than one after the other (benchmarks/choices.py).
STACK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Fit:
    """The selected weights of R runs."""

    parameters: Parameters
    """Each [R, …]."""
    epoch: Tensor
    """int64 [R]: the epoch the weights are of, counted from 1."""
    val_accuracy: Tensor
    """float64 [R]: validation accuracy at that epoch; NaN without validation."""


def fit(
    model: Model | Architectures,
    train: LabelledView,
    val: LabelledView | None,
    *,
    classes: int,
    seeds: Sequence[int],
    recipe: Recipe,
    on_epoch: Callable[[int], None] | None = None,
) -> Fit:
    """Train one run a seed on ``train``; ``val`` chooses the epoch and is not needed for ``select="last"``.

    :class:`~gcond.training.architectures.Architectures` have a model a run, for as many seeds.
    """
    device = train.y.device
    # No more of a large graph than what the labelled nodes' outputs depend on.
    train = train.focus(model.reach, model.precomputed)
    val = val.focus(model.reach, model.precomputed) if val is not None else None
    initial = [model.init(train.inputs.num_features, classes, generator(seed, "weights")) for seed in seeds]
    stacked = {key: torch.stack([run[key] for run in initial]).to(device) for key in initial[0]}
    parameters = {key: tensor.requires_grad_() for key, tensor in stacked.items()}
    dropout = StackedDropout(recipe.dropout, seeds, device) if recipe.dropout > 0 else None

    choose = recipe.select == "best-validation"
    if choose and val is None:
        raise ValueError("the best validation epoch cannot be chosen without a validation view")
    if choose and len(val.nodes) == 0:  # type: ignore[union-attr]
        raise GcondError("there is no validation node to choose the best epoch by: give some, or take the last epoch")
    best = _Best(parameters, len(seeds), device)
    # Where both parts are computed on the same rows, the pass that trains epoch t + 1 starts with the very scores that
    # epoch t is validated by.
    passed_on = choose and dropout is None and val is not None and val.inputs is train.inputs

    optimiser = _StackedAdam(parameters, recipe, recipe.lr)
    for epoch in range(1, recipe.epochs + 1):
        if epoch - 1 == recipe.epochs // 2 and epoch > 1:
            optimiser = _StackedAdam(parameters, recipe, recipe.lr / 10)
        scores = model.logits(parameters, train.inputs, dropout)
        if passed_on and epoch > 1 and recipe.looks(epoch - 1):
            best.update(epoch - 1, _share(scores.detach()[:, val.nodes].argmax(-1), val))  # type: ignore[union-attr,arg-type]
        optimiser.step(cross_entropy(scores[:, train.nodes], train.y).sum())
        if choose and recipe.looks(epoch) and (not passed_on or epoch == recipe.epochs):
            best.update(epoch, accuracy(model, parameters, val))  # type: ignore[arg-type]
        if on_epoch:
            on_epoch(epoch)
    if not all(bool(tensor.isfinite().all()) for tensor in parameters.values()):
        raise DivergedError(f"training {model.name} diverged: use an lr below {recipe.lr:g}")
    if choose:
        return Fit(best.parameters, best.epoch, best.accuracy)
    last = {key: tensor.detach() for key, tensor in parameters.items()}
    unknown = torch.full_like(best.accuracy, torch.nan)
    final = unknown if val is None else accuracy(model, last, val)
    return Fit(last, torch.full_like(best.epoch, recipe.epochs), final)


class _Best:
    """Each run's weights of the first epoch with the highest validation accuracy so far."""

    def __init__(self, weights: Parameters, runs: int, device: torch.device) -> None:
        self._weights = weights
        self.parameters = {key: tensor.detach().clone() for key, tensor in weights.items()}
        self.accuracy = torch.full((runs,), -1.0, dtype=torch.float64, device=device)
        self.epoch = torch.zeros(runs, dtype=torch.long, device=device)

    def update(self, epoch: int, score: Tensor) -> None:
        """Compare the weights as they are now, of ``epoch``, which reach ``score`` [R]."""
        better = score > self.accuracy
        for run in better.nonzero().flatten().tolist():
            for key, tensor in self._weights.items():
                self.parameters[key][run].copy_(tensor.detach()[run])
        self.accuracy = torch.where(better, score, self.accuracy)
        self.epoch = torch.where(better, epoch, self.epoch)


def runs_together(model: Model, train: LabelledView, classes: int) -> int:
    """How many runs to stack: as many as stay small, at least one.

    A run holds its weights, their gradients and Adam's two moments, and its activations with their
    gradients twice over. On a large graph that alone fills the caches, and stacking gains nothing.
    """
    weights = model.init(train.inputs.num_features, classes, generator(0, "size")).values()
    rows = train.focus(model.reach, model.precomputed).inputs.num_nodes
    numbers = 4 * sum(weight.numel() for weight in weights)
    numbers += 4 * rows * sum(weight.shape[-1] for weight in weights if weight.dim() > 1)
    return max(1, STACK_BYTES // (4 * numbers))


@torch.no_grad()
def accuracy(model: Model | Architectures, parameters: Parameters, view: LabelledView) -> Tensor:
    """Share of the view's labelled nodes that are classified right, float64 [R]."""
    return _share(predict(model, parameters, view), view)


@torch.no_grad()
def predict(model: Model | Architectures, parameters: Parameters, view: LabelledView) -> Tensor:
    """The class of each of the view's labelled nodes, int64 [R, m]."""
    if isinstance(model, Architectures):
        return model.logits(parameters, view.inputs)[:, view.nodes].argmax(-1)
    runs = len(next(iter(parameters.values())))
    # Run by run: activations of a large graph stay in cache, where a stack of them would not.
    singles = ({key: aligned(stack[run]) for key, stack in parameters.items()} for run in range(runs))
    return torch.stack([model.logits(one, view.inputs)[view.nodes].argmax(-1) for one in singles])


def _share(predicted: Tensor, view: LabelledView) -> Tensor:
    return (predicted == view.y).double().mean(-1)


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Mean cross-entropy of each run: logits [R, m, C], and y [m] class ids or [m, C] soft rows, to [R]."""
    log_probability = logits.log_softmax(-1)
    if y.dim() == 2:
        return -(y * log_probability).sum(-1).mean(-1)
    index = y.expand(len(logits), -1).unsqueeze(-1)
    return -log_probability.gather(-1, index).squeeze(-1).mean(-1)


class _StackedAdam:
    """Adam on stacked weights that treats every run's tensor as one of its own.

    A vectorised pass over the whole stack would round a number differently in the body of a vector
    and in its tail, so a run's numbers would depend on where in the stack it stands.
    """

    def __init__(self, parameters: Parameters, recipe: Recipe, lr: float) -> None:
        self._weights = parameters
        self._adam = Adam(_run_by_run({key: w.detach() for key, w in parameters.items()}), lr, recipe.weight_decay)

    def step(self, loss: Tensor) -> None:
        gradients = torch.autograd.grad(loss, list(self._weights.values()))
        self._adam.step(_run_by_run(dict(zip(self._weights, gradients, strict=True))))


def _run_by_run(stacks: Parameters) -> dict[str, Tensor]:
    return {f"{key} {run}": tensor for key, stack in stacks.items() for run, tensor in enumerate(stack)}
