"""Training of node classifiers on one graph, from one seed or many.

Runs of one model are trained one after the other within each epoch. Stacking their weights into tensors [R, …] gave the
same bits and was measured against that (Cora, one thread, CPU time, ten runs validated each epoch): on 70 nodes it was
1.09 times as fast for a GCN, 1.08 for APPNP, 1.10 for GAT, and 1.29 for SGC, whose epochs cost least; so it is not done
(benchmarks/README.md has the rest). Each run looks at the validation nodes, lowers its rate and ends when its own
:class:`~gcond.training.progress.Progress` says so. Architectures of one shape *are* trained side by side where their
model knows how to share work among them (:meth:`gcond.models.Model.logits_together`): 48 of APPNP are then about twice
as fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from gcond.errors import DivergedError, GcondError
from gcond.graph import Inputs, LabelledView
from gcond.graph.settled_inputs import settled
from gcond.linalg.adam import Adam
from gcond.models import Model
from gcond.models.model import Dropout, Parameters
from gcond.runtime.memory import available_bytes
from gcond.runtime.seeds import generator
from gcond.training.class_scores import class_scores, logits
from gcond.training.metrics import measured, measured_once
from gcond.training.progress import Progress
from gcond.training.recipe import Recipe
from gcond.training.view_parts import in_parts

# What the runs that are held at once may take, about; above it, training side by side is no faster (benchmarks/nas.py).
STACK_BYTES = 64 * 2**20
COPIES = 5
"""What a run holds of the weights' size: the weights, their gradients, Adam's two moments, the best so far."""


@dataclass(frozen=True)
class Fit:
    """The selected weights of R runs."""

    parameters: tuple[Parameters, ...]
    """The weights of each run by name, as :meth:`gcond.models.Model.init` shapes them."""
    epoch: Tensor
    """int64 [R]: the epoch the weights are of, counted from 1."""
    val_accuracy: Tensor
    """float64 [R]: validation accuracy at that epoch, or the recipe's metric in its place; NaN without validation."""
    epochs: Tensor
    """int64 [R]: the epochs that were done, at most the recipe's."""
    looks: Tensor
    """int64 [R]: how often the validation nodes were looked at to choose the epoch."""


def fit(
    model: Model | Sequence[Model],
    train: LabelledView,
    val: LabelledView | None,
    *,
    classes: int,
    seeds: Sequence[int],
    recipe: Recipe,
    on_epoch: Callable[[int], None] | None = None,
    importance: Tensor | None = None,
) -> Fit:
    """Train one run per seed on the m labelled nodes of ``train``, by full-batch Adam on the mean cross-entropy.

    ``model`` is trained from every seed; a sequence has one model for each of them, which are trained side by side and
    must be :func:`stackable`. ``val`` chooses the epoch whose weights are kept, and is not needed for
    ``select="last"``; with ``importance`` [C] its nodes count by their class. ``on_epoch(epoch)`` is called when all
    runs have finished an epoch, or are over before it.
    Neither the numbers of a run nor their rounding depend on the runs beside it.
    """
    models = [model] * len(seeds) if isinstance(model, Model) else model
    first, device = models[0], train.y.device
    _require_room(models, train.inputs.num_features, classes)
    # No more of a large graph than what the labelled nodes' outputs depend on.
    train = _prepared(train.focus(first.reach, first.precomputed))
    val = val.focus(first.reach, first.precomputed) if val is not None else None
    judge = val if recipe.select == "best-validation" else None
    parts = [] if judge is None else [_prepared(part) for part in in_parts(judge, first, classes)]
    if recipe.select == "best-validation" and judge is None:
        raise ValueError("the best validation epoch cannot be chosen without a validation view")
    if judge and len(judge.nodes) == 0:
        raise GcondError("there is no validation node to choose the best epoch by: give some, or take the last epoch")
    loss = _loss_on(train)
    # Where both parts are computed on the same rows, the pass that trains epoch t + 1 starts with the very scores that
    # epoch t is validated by.
    passed_on = len(parts) == 1 and recipe.dropout == 0 and parts[0].inputs is train.inputs

    # Half-way from the loss of who knows nothing but the number of classes to the least that there is.
    fitted = (math.log(classes) + least_loss(train.y)) / 2
    runs = [
        _Run(one, one.init(train.inputs.num_features, classes, generator(seed, "weights")), seed, recipe, device)
        for one, seed in zip(models, seeds, strict=True)
    ]
    batches = [[run] for run in runs] if isinstance(model, Model) else [runs]
    scored = partial(_scores, together=not isinstance(model, Model))

    def reached(predicted: Tensor) -> float:
        assert judge is not None
        return measured_once(predicted, judge.y, classes, recipe.metric, importance)

    for epoch in range(1, recipe.epochs + 1):
        batches = [left for batch in batches if (left := [run for run in batch if not run.progress.is_over])]
        for batch in batches:
            scores = scored(batch, train.inputs)
            if judge and passed_on and epoch > 1:
                for run, score in zip(batch, scores, strict=True):
                    if run.progress.looks_now:
                        run.look(reached(_predicted(score, parts[0])), fitted)
            # Those that this look was the last of take no step any more.
            learning = [(run, score) for run, score in zip(batch, scores, strict=True) if not run.progress.is_over]
            losses = [loss(score) for _, score in learning]
            weights = [tensor for run, _ in learning for tensor in run.weights.values()]
            gradients = iter(torch.autograd.grad(losses, weights) if losses else ())
            for (run, _), found in zip(learning, losses, strict=True):
                run.loss = found.detach()
                if run.progress.lowers_rate():
                    run.start_adam(recipe.lr / 10)
                run.adam.step({key: next(gradients) for key in run.weights})
                run.progress.end_epoch()
            if judge:
                due = [run for run, _ in learning if run.progress.looks_now]
                due = [run for run in due if run.progress.is_over or not passed_on]
                with torch.no_grad():
                    found_in = [
                        [_predicted(score, part) for score in scored(due, part.inputs, drop=False)] for part in parts
                    ]
                for run, *predicted in zip(due, *found_in, strict=True):
                    run.look(reached(torch.cat(predicted)), fitted)
        if on_epoch:
            on_epoch(epoch)
    if not all(bool(tensor.isfinite().all()) for run in runs for tensor in run.weights.values()):
        raise DivergedError(f"training {first.name} diverged: use an lr below {recipe.lr:g}")
    done, looks = (
        torch.tensor([getattr(run.progress, count) for run in runs], device=device) for count in ("epoch", "looks")
    )
    if judge:
        best = torch.tensor([run.reached for run in runs], dtype=torch.float64, device=device)
        chosen = torch.tensor([run.epoch for run in runs], device=device)
        return Fit(tuple(run.best for run in runs), chosen, best, done, looks)
    last = tuple({key: tensor.detach() for key, tensor in run.weights.items()} for run in runs)
    unknown = torch.full((len(runs),), torch.nan, dtype=torch.float64, device=device)
    if val is None:
        return Fit(last, done, unknown, done, looks)
    said = torch.cat([predict(model, last, part) for part in in_parts(val, first, classes)], dim=1)
    final = measured(said, val.y, classes, recipe.metric, importance)
    return Fit(last, done, final, done, looks)


class _Run:
    """The weights of one run as they are, and those of the first epoch that was best on the validation nodes so far."""

    def __init__(self, model: Model, initial: Parameters, seed: int, recipe: Recipe, device: torch.device) -> None:
        self.model = model
        self.weights = {key: tensor.to(device).requires_grad_() for key, tensor in initial.items()}
        self.best = {key: tensor.detach().clone() for key, tensor in self.weights.items()}
        self.reached = -1.0
        """By the recipe's metric, on the validation nodes."""
        self.epoch = 0
        self.loss: Tensor | float = math.inf
        """On the training nodes, of the weights before the last step."""
        self.progress = Progress(recipe)
        self.dropout: Dropout | None = None
        if recipe.dropout > 0:
            self.dropout = partial(_drop, recipe.dropout, generator(seed, "dropout", device))
        self._decay = recipe.weight_decay
        self.start_adam(recipe.lr)

    def start_adam(self, lr: float) -> None:
        """Go on at rate ``lr``, with fresh moments."""
        self.adam = Adam({key: tensor.detach() for key, tensor in self.weights.items()}, lr, self._decay)

    def look(self, reached: float, fitted: float) -> None:
        """Keep the weights as they are, if what they ``reached`` on the validation nodes is more than ever before.

        With a loss below ``fitted`` the model has learned what it is trained on.
        """
        if better := reached > self.reached:
            self.reached, self.epoch = reached, self.progress.epoch
            for key, tensor in self.weights.items():
                self.best[key].copy_(tensor.detach())
        self.progress.has_looked(better=better, has_fitted=float(self.loss) < fitted)


def _drop(rate: float, stream: Generator, x: Tensor) -> Tensor:
    keep = torch.rand(x.shape, generator=stream, device=x.device) >= rate
    return x * keep / (1 - rate)


def _prepared(view: LabelledView) -> LabelledView:
    """The view with its inputs settled: nothing but weights changes from here on."""
    return replace(view, inputs=settled(view.inputs))


def _predicted(scores: Tensor, view: LabelledView) -> Tensor:
    """The classes of the view's labelled nodes by ``scores`` [n, C] of all of its rows: int64 [m]."""
    return scores.detach()[view.nodes].argmax(-1)


def _loss_on(train: LabelledView) -> Callable[[Tensor], Tensor]:
    """The mean cross-entropy of scores [n, C] on the labelled nodes."""
    everyone = torch.arange(train.inputs.num_nodes, device=train.nodes.device)
    if torch.equal(train.nodes, everyone):  # of a condensed graph: nothing to gather, nor to scatter on the way back
        return lambda scores: cross_entropy(scores, train.y)
    return lambda scores: cross_entropy(scores[train.nodes], train.y)


def _require_room(models: Sequence[Model], features: int, classes: int) -> None:
    """Refuse models whose weights alone do not fit, before any is drawn."""
    sizes = {one: sum(shape.numel() for shape in one.shapes(features, classes).values()) for one in set(models)}
    needed, free = 4 * COPIES * sum(sizes[one] for one in models), available_bytes()
    if needed > free:
        raise GcondError(
            f"the weights of {models[0].name} take {needed / 1e9:,.1f} GB while they are trained, and "
            f"{free / 1e9:.1f} GB are free: use fewer layers, or a smaller hidden"
        )


def _scores(batch: Sequence[_Run], inputs: Inputs, *, together: bool, drop: bool = True) -> list[Tensor]:
    """Class scores [n, C] of each run, of all ``together`` where their model knows how."""
    if not batch:
        return []
    dropouts = [run.dropout if drop else None for run in batch]
    return logits(
        [run.model for run in batch] if together else batch[0].model, [run.weights for run in batch], inputs, dropouts
    )


@torch.no_grad()
def predict(model: Model | Sequence[Model], parameters: Sequence[Parameters], view: LabelledView) -> Tensor:
    """The class of each of the view's m labelled nodes by each of R sets of weights: int64 [R, m]."""
    found = torch.empty(len(parameters), len(view.nodes), dtype=torch.int64, device=view.nodes.device)
    for run, places, scores in class_scores(model, parameters, view.inputs, view.nodes):
        found[run, places] = scores.argmax(-1)
    return found


def accuracy(model: Model | Sequence[Model], parameters: Sequence[Parameters], view: LabelledView) -> Tensor:
    """The share of the view's labelled nodes that each of R sets of weights classifies right: float64 [R]."""
    return (predict(model, parameters, view) == view.y).double().mean(-1)


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """The mean cross-entropy of logits [m, C] against y, [m] class ids or [m, C] soft rows."""
    log_probability = logits.log_softmax(-1)
    if y.dim() == 2:
        return -(y * log_probability).sum(-1).mean()
    return -log_probability.gather(-1, y.unsqueeze(-1)).squeeze(-1).mean()


def least_loss(y: Tensor) -> float:
    """The least that :func:`cross_entropy` against ``y`` can be: 0 for class ids, the mean entropy of soft rows."""
    return float(torch.special.entr(y).sum(-1).mean()) if y.dim() == 2 else 0.0


def stackable(model: Model, features: int, classes: int) -> tuple[Any, ...]:
    """A key that models share if they can be trained side by side: class, shapes of the weights, how far they look."""
    shapes = tuple(sorted(model.shapes(features, classes).items()))
    return (model.name, model.reach, model.precomputed, shapes)


def runs_together(model: Model, train: LabelledView, classes: int) -> int:
    """The number of runs to hold at once, at least one: as many as stay within :data:`STACK_BYTES`.

    A run holds its weights, their gradients and Adam's two moments, and side by side with others also its activations
    with their gradients twice over. On a large graph one run fills the caches alone.
    """
    shapes = model.shapes(train.inputs.num_features, classes).values()
    rows = train.focus(model.reach, model.precomputed).inputs.num_nodes
    numbers = 4 * sum(shape.numel() for shape in shapes)
    numbers += 4 * rows * sum(shape[-1] for shape in shapes if len(shape) > 1)
    return max(1, STACK_BYTES // (4 * numbers))
