"""The source's side of the match: class gradients on the whole training view, or on sampled batches of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from gcond.graph import Inputs, LabelledView
from gcond.graph.inputs import Chain
from gcond.graph.sampling import Fanout, sample
from gcond.linalg.sparse import SparseMatrix, dense, take_rows
from gcond.matching.cost_estimate import BACKWARD, OVERHEAD, step_work
from gcond.matching.distance import Gradients
from gcond.matching.gradients import (
    class_gradients,
    linear_class_gradients,
    long_class_gradients,
    loss_gradients,
)
from gcond.models import Model
from gcond.models.model import Parameters
from gcond.runtime.seeds import generator
from gcond.runtime.threads import fewer_threads

Sampling = Literal["auto", "never", "always"]

LONG = 50_000
"""Rows from which a linear model's gradients go over blocks of them; below, they are the same bits as ever."""


@dataclass(frozen=True)
class Batches:
    """The way to look at the source graph: as a whole, or by sampled batches."""

    sampling: Sampling
    batch: int
    """Labelled nodes per class in a sampled batch; all of them where there are fewer."""
    fanout: Fanout
    memory: int
    """Bytes that exact gradients may take before ``auto`` samples."""


def real_side(model: Model, view: LabelledView, classes: int, seed: int, how: Batches) -> FullBatch | SampledBatches:
    """Exact while it fits into the memory, else, or where it is asked for, sampled."""
    together = 0 if how.sampling == "always" else classes_together(model, view, classes, how.memory)
    if together == 0 and how.sampling != "never":
        return SampledBatches(model, view, classes, seed, how)
    return FullBatch(model, view, classes, max(1, together))


def classes_together(model: Model, view: LabelledView, classes: int, memory: int) -> int:
    """Number of classes whose gradients ``memory`` bytes hold at a time, at most all; 0 if not even one's.

    A model that is linear in the propagated features needs these alone. For any other, the activations of the
    forward pass stay, and each class has their derivatives beside them, and gradients of its own.
    """
    focused = view.focus(model.reach, model.precomputed).inputs
    if model.linear_in(focused) is not None:
        return classes
    shapes = model.shapes(focused.num_features, classes).values()
    forward = 2 * focused.num_nodes * sum(shape[-1] for shape in shapes if len(shape) > 1)
    own = 2 * sum(shape.numel() for shape in shapes)
    number = focused.x.dtype.itemsize
    return max(0, min(classes, int((memory / number - forward) // (forward + own))))


class FullBatch:
    """Exact: all labelled nodes and all that they see.

    A model linear in ``H = Â^K X`` needs the labelled rows of H alone, made once; from then on the size of
    the source graph no longer matters.
    """

    def __init__(self, model: Model, view: LabelledView, classes: int, together: int | None = None) -> None:
        self._model = model
        self._classes = classes
        self._together = together
        self._view = view.by_class().focus(model.reach, model.precomputed)
        design = model.linear_in(self._view.inputs)
        self._design: Tensor | None = None
        if design is not None:
            rows = design.dense() if isinstance(design, Chain) else dense(design)
            self._design = rows[self._view.nodes]
            self._sizes = torch.bincount(self._view.y, minlength=classes).tolist()
        else:  # some weights, so that the sparse forms the model reads are made: torch.func could not, in a derivative
            weights = model.init(self._view.inputs.num_features, classes, generator(0, "size"))
            like = self._view.inputs.x
            fresh = {key: tensor.to(like.device, like.dtype) for key, tensor in weights.items()}
            model.logits(fresh, self._view.inputs)

    def work(self) -> float:
        """Of one call of :meth:`gradients`, estimated; see :mod:`gcond.matching.cost_estimate`."""
        if self._design is not None:
            return 2 * self._design.numel() * self._classes + OVERHEAD
        return self._classes * step_work(self._model, self._view, self._classes)

    @torch.no_grad()
    def gradients(self, parameters: Parameters, when: str) -> Gradients:
        """``G_c`` for every class, at ``parameters``; nothing is drawn at random, whatever ``when`` it is."""
        if self._design is not None and len(self._design) >= LONG and self._design.device.type == "cpu":
            # On one thread: a block is shorter than what a second one may have to be waited for.
            with fewer_threads(1):
                return long_class_gradients(parameters, self._design, self._sizes)
        if self._design is not None:
            return linear_class_gradients(parameters, self._design, self._view.y, self._classes)
        return class_gradients(self._model, parameters, self._view, self._classes, self._together)


class SampledBatches:
    """The paper's way for graphs too large for that: a batch of every class, with sampled neighbours.

    Where there is no graph, a batch is its own rows alone. Means over a batch, drawn without replacement, are right on
    average as they are.
    """

    def __init__(self, model: Model, view: LabelledView, classes: int, seed: int, how: Batches) -> None:
        self._model = model
        self._inputs = view.inputs
        self._structured = isinstance(view.inputs.adjacency, SparseMatrix)
        self._by_class = [view.nodes[view.y == label].cpu() for label in range(classes)]
        self._batch = how.batch
        self._fanout = how.fanout
        self._seed = seed

    def work(self) -> float:
        """Of one call of :meth:`gradients`, estimated; see :mod:`gcond.matching.cost_estimate`."""
        rows = 0.0
        for nodes in self._by_class:
            reached = float(min(len(nodes), self._batch))
            rows += reached
            for hop in range(self._model.reach if self._structured else 0):
                reached = min(reached * self._fanout.at(hop), float(self._inputs.num_nodes))
                rows += reached
        classes = len(self._by_class)
        shapes = self._model.shapes(self._inputs.num_features, classes).values()
        return BACKWARD * rows * sum(shape.numel() for shape in shapes) + classes * OVERHEAD

    @torch.no_grad()
    def gradients(self, parameters: Parameters, when: str) -> Gradients:
        """``G_c`` for every class, at ``parameters``; ``when`` names the step, for what is drawn at random in it."""
        stream = generator(self._seed, f"batch {when}")
        each = []
        for label, nodes in enumerate(self._by_class):
            chosen = nodes[torch.randperm(len(nodes), generator=stream)[: self._batch]]
            inputs, rows = self._around(chosen, stream)
            each.append(loss_gradients(self._model, parameters, inputs, rows, torch.full_like(rows, label)))
        return {key: torch.stack([gradients[key] for gradients in each]) for key in each[0]}

    def _around(self, chosen: Tensor, stream: Generator) -> tuple[Inputs, Tensor]:
        """Inputs of a model for the nodes ``chosen`` [m], and where they are in it: int64 [m]."""
        whole = self._inputs
        if self._structured:
            return sample(whole, chosen, self._model.reach, self._fanout, stream)
        rows = take_rows(whole.x, chosen.to(whole.x.device))
        return Inputs(rows, whole.adjacency, loops=whole.loops), torch.arange(len(chosen), device=whole.x.device)
