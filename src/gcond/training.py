"""Train one architecture on one graph, many seeds at once.

The runs share everything but their weights, so they are stacked: parameters carry a leading axis of
runs [R, …], one backward pass serves all, and what the weights do not touch (``ÂX``, the normalised
adjacency) is computed once. A run's numbers do not depend on how many run beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gcond.graph import View
from gcond.models.base import Dropout, Model, Parameters
from gcond.seeding import generator


@dataclass(frozen=True)
class Recipe:
    """How a test model is trained; recorded with every score."""

    epochs: int = 600
    """The paper's number (3000 for GAT)."""
    lr: float = 0.01
    """Adam's rate in the first half; a tenth of it, with fresh moments, in the second (released scripts)."""
    weight_decay: float = 5e-4
    """L2 penalty on every parameter (paper, evaluation process)."""
    dropout: float = 0.0
    """On hidden layers. 0 in the paper's text; its released transductive script uses 0.5."""
    select: Literal["best-validation", "last"] = "best-validation"
    """Which epoch's weights are tested."""

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError("epochs must be at least 1")
        if self.lr <= 0:
            raise ValueError("lr must be positive")
        if self.weight_decay < 0:
            raise ValueError("weight_decay must not be negative")
        if not 0 <= self.dropout < 1:
            raise ValueError("dropout must be at least 0 and below 1")


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
    model: Model,
    train: View,
    val: View | None,
    *,
    classes: int,
    seeds: Sequence[int],
    recipe: Recipe,
    on_epoch: Callable[[int], None] | None = None,
) -> Fit:
    """Train one run a seed on ``train``; ``val`` chooses the epoch and is not needed for ``select="last"``."""
    device = train.y.device
    initial = [model.init(train.inputs.num_features, classes, generator(seed, "weights")) for seed in seeds]
    weights = _StackedWeights(initial, device)
    parameters = weights.parameters
    dropout = _stacked_dropout(recipe.dropout, seeds, device) if recipe.dropout > 0 else None

    choose = recipe.select == "best-validation"
    if choose and val is None:
        raise ValueError("the best validation epoch cannot be chosen without a validation view")
    best = {key: tensor.detach().clone() for key, tensor in parameters.items()}
    best_accuracy = torch.full((len(seeds),), -1.0, dtype=torch.float64, device=device)
    best_epoch = torch.zeros(len(seeds), dtype=torch.long, device=device)

    optimiser = weights.adam(recipe.lr, recipe.weight_decay)
    for epoch in range(1, recipe.epochs + 1):
        if epoch - 1 == recipe.epochs // 2 and epoch > 1:
            optimiser = weights.adam(recipe.lr / 10, recipe.weight_decay)
        weights.gradient.zero_()
        scores = model.logits(parameters, train.inputs, dropout)
        cross_entropy(scores[:, train.nodes], train.y).sum().backward()
        optimiser.step()
        if choose:
            score = accuracy(model, parameters, val)  # type: ignore[arg-type]
            better = score > best_accuracy
            if bool(better.any()):
                for key, tensor in parameters.items():
                    best[key][better] = tensor.detach()[better]
                best_accuracy = torch.where(better, score, best_accuracy)
                best_epoch = torch.where(better, epoch, best_epoch)
        if on_epoch:
            on_epoch(epoch)
    if choose:
        return Fit(best, best_epoch, best_accuracy)
    last = {key: tensor.detach() for key, tensor in parameters.items()}
    unknown = torch.full_like(best_accuracy, torch.nan)
    final = unknown if val is None else accuracy(model, last, val)
    return Fit(last, torch.full_like(best_epoch, recipe.epochs), final)


@torch.no_grad()
def accuracy(model: Model, parameters: Parameters, view: View) -> Tensor:
    """Share of the view's labelled nodes that are classified right, float64 [R]."""
    return (predict(model, parameters, view) == view.y).double().mean(-1)


@torch.no_grad()
def predict(model: Model, parameters: Parameters, view: View) -> Tensor:
    """The class of each of the view's labelled nodes, int64 [R, m]."""
    runs = len(next(iter(parameters.values())))
    # Run by run: activations of a large graph stay in cache, where a stack of them would not.
    single = ({key: tensor[run : run + 1] for key, tensor in parameters.items()} for run in range(runs))
    return torch.cat([model.logits(one, view.inputs)[:, view.nodes].argmax(-1) for one in single])


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Mean cross-entropy of each run: logits [R, m, C], and y [m] class ids or [m, C] soft rows, to [R]."""
    log_probability = logits.log_softmax(-1)
    if y.dim() == 2:
        return -(y * log_probability).sum(-1).mean(-1)
    index = y.expand(len(logits), -1).unsqueeze(-1)
    return -log_probability.gather(-1, index).squeeze(-1).mean(-1)


class _StackedWeights:
    """The weights of R runs in one flat buffer [R, P], with a view [R, …] for each parameter.

    One fused Adam pass then serves them all: the weights are most of the bytes that an epoch moves.
    P is a multiple of the vector width, so that each run's numbers are rounded alike wherever it stands.
    """

    def __init__(self, initial: Sequence[Parameters], device: torch.device) -> None:
        shapes = {key: tensor.shape for key, tensor in initial[0].items()}
        width = -(-sum(shape.numel() for shape in shapes.values()) // 64) * 64
        self._flat = torch.zeros(len(initial), width, device=device)
        self.gradient = torch.zeros_like(self._flat)
        self.parameters: Parameters = {}
        start = 0
        for key, shape in shapes.items():
            part = slice(start, start := start + shape.numel())
            view = self._flat[:, part].view(-1, *shape)
            view.copy_(torch.stack([run[key] for run in initial]))
            self.parameters[key] = view.requires_grad_()
            # Backward adds into the gradient it finds, here a window of the flat one.
            self.parameters[key].grad = self.gradient[:, part].view(-1, *shape)
        self._flat.grad = self.gradient

    def adam(self, lr: float, weight_decay: float) -> torch.optim.Optimizer:
        """An Adam with fresh moments over all weights."""
        return torch.optim.Adam([self._flat], lr=lr, weight_decay=weight_decay, fused=True)


def _stacked_dropout(rate: float, seeds: Sequence[int], device: torch.device) -> Dropout:
    """Dropout on [R, n, k] that draws each run's mask from that run's own generator."""
    streams = [generator(seed, "dropout", device) for seed in seeds]

    def drop(x: Tensor) -> Tensor:
        keep = torch.stack([torch.rand(x.shape[1:], generator=stream, device=device) >= rate for stream in streams])
        return x * keep / (1 - rate)

    return drop
