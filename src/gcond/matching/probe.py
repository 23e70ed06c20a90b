"""The validation probe: how well does a quick model trained on the current condensed graph do?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, TypedDict

import torch
from torch import Tensor

from gcond.config.metric import Metric
from gcond.errors import DivergedError, GcondError
from gcond.graph import Inputs, LabelledView
from gcond.graph.inputs import Chain
from gcond.linalg.sparse import Identity, SparseMatrix, narrow
from gcond.matching.cost_estimate import BACKWARD, OVERHEAD, step_work
from gcond.models import GCN, MLP, Model
from gcond.models.model import Dropout, Parameters
from gcond.runtime.seeds import generator
from gcond.runtime.threads import SPARSE
from gcond.training import Recipe, fit
from gcond.training.metrics import clearly_more
from gcond.training.progress import longest
from gcond.training.side_by_side_perceptrons import best_validation

MOST_LOOKING = 1e11
"""Multiply-adds that one probe may spend on looking at the validation nodes through the graph, about five seconds of
one core. Cora has 6e8, Coauthor CS 3e9, Amazon Computers 8e10; a graph of ogbn-arxiv's size has 3e11, and a probe took
seventeen seconds, most of them in sparse products."""
MOST_ROWS = 5_000
"""Validation nodes that are scored where the graph is not looked at: with these the standard error of an accuracy is
0.7 points at most, and half of that for the difference of two probes, which look at the same ones; on more, looking
would take longer than training does."""
MOST_ENTRIES = 10_000_000
"""Numbers in their rows: 40 MB. Where features are that many, fewer nodes are scored, but never below 500."""


@dataclass(frozen=True)
class Probed:
    """Validation accuracy that a probe found, and when."""

    epoch: int
    """Epochs done when it was taken."""
    accuracy: float
    """Validation accuracy, a fraction; or the metric that the method chooses by."""


@dataclass(frozen=True)
class NarrowGCN(GCN):
    """A GCN with few hidden units, by the products for few columns; it is never trained side by side with others."""

    hidden: int = 64

    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        features = inputs.features("gcn")
        first = features.narrow if isinstance(features, Chain | SparseMatrix) else features
        return self.stack(parameters, first, dropout, narrow(inputs.gcn))


@dataclass(frozen=True, eq=False)
class Probe:
    """A narrow network, trained briefly on the condensed graph and scored on validation nodes, at its best epoch.

    Where the graph can be looked at quickly it is a GCN. On a large graph each look at the validation nodes would go
    through most of it, so both sides are propagated once, ``H = Â²X`` and ``H' = Â'²X'``, and the network is an MLP on
    the rows of these: it sees as far as the GCN does, with its activation after the hops and not between them. H is
    made of :attr:`scored` validation nodes alone.
    """

    val: LabelledView
    classes: int
    seed: int
    metric: Metric = "accuracy"
    """What it measures in place of accuracy, and chooses the epoch by."""
    on_rows: bool | None = None
    """Whether it looks at propagated rows; ``None`` where looking at the graph costs over :data:`MOST_LOOKING`."""
    importance: Tensor | None = None
    """float32 [C]: what a validation node counts by its class; ``None`` where all count the same."""
    model: ClassVar[Model] = NarrowGCN(layers=2)
    recipe: ClassVar[Recipe] = Recipe(epochs=120, lr=0.03, patience=0, validate_every=5)
    runs: ClassVar[int] = 2
    hops: ClassVar[int] = 2
    row_model: ClassVar[MLP] = MLP(layers=2, hidden=64)
    row_recipe: ClassVar[Recipe] = Recipe(epochs=120, lr=0.03, patience=0, validate_every=20)
    """Fewer looks than a GCN's: on seven condensed graphs of `synthetic:arxiv`, from 47 to 86 %, six looks and twenty
    gave the same order, that of GCNs on the whole graph, and at most 0.2 points of difference; half as many epochs gave
    another order."""

    def accuracy(self, condensed: LabelledView) -> float:
        """Mean validation accuracy over the runs: the same seeds at every probe, so that probes compare.

        A graph that the model diverges on scores 0.
        """
        if len(self.val.nodes) == 0:
            raise GcondError("there is no validation node to probe on: give some, or turn probes off by probe_every=0")
        recipe = replace(self.row_recipe if self.without_graph else self.recipe, metric=self.metric)
        seeds = range(self.seed, self.seed + self.runs)
        by: _Measure = {"classes": self.classes, "importance": self.importance}
        try:
            if self.without_graph:
                train, val = (_rows_and_labels(view) for view in (propagated_rows(condensed, self.hops), self.rows))
                found = best_validation(self.row_model, train, val, seeds=seeds, recipe=recipe, **by)
            else:
                found = fit(self.model, condensed, self.val, seeds=seeds, recipe=recipe, **by).val_accuracy
        except DivergedError:
            return 0.0
        return float(found.mean())

    def linear(self, condensed: LabelledView) -> float:
        """The same for a model without hidden units on propagated rows, which is what SGC is; one run is enough."""
        recipe = replace(self.row_recipe, metric=self.metric)
        by: _Measure = {"classes": self.classes, "importance": self.importance}
        try:
            rows = propagated_rows(condensed, self.hops)
            found = fit(MLP(layers=1), rows, self.rows, seeds=[self.seed], recipe=recipe, **by)
        except DivergedError:
            return 0.0
        return float(found.val_accuracy)

    def bears(self, before: LabelledView, after: LabelledView) -> bool:
        """Whether a linear model learns from ``after`` what it learns from ``before``, or not clearly less."""
        return self.linear(before) <= self.clearly_more(self.linear(after))

    def clearly_more(self, reached: float) -> float:
        """The least accuracy that another graph has to have in place of one that ``reached`` so much."""
        return clearly_more(reached, self.val.y[: self.scored], self.classes, self.metric, self.importance)

    @cached_property
    def without_graph(self) -> bool:
        """Whether it looks at propagated rows, by the cost of looking at the graph unless that was said."""
        return self.looking() > MOST_LOOKING if self.on_rows is None else self.on_rows

    @property
    def scored(self) -> int:
        """The number of validation nodes that it is scored on."""
        if not self.without_graph:
            return len(self.val.nodes)
        return min(len(self.val.nodes), MOST_ROWS, max(500, MOST_ENTRIES // self.val.inputs.num_features))

    @property
    def precomputed(self) -> int:
        """Hops that the source's features are propagated by for it."""
        return self.hops if self.without_graph else self.model.precomputed

    @cached_property
    def rows(self) -> LabelledView:
        """The validation nodes that are scored, drawn by the seed where there are more, without the graph."""
        everyone = torch.randperm(len(self.val.nodes), generator=generator(self.seed, "validation rows"))
        chosen = everyone[: self.scored].sort().values.to(self.val.nodes.device)
        return propagated_rows(replace(self.val, nodes=self.val.nodes[chosen], y=self.val.y[chosen]), self.hops)

    def looking(self) -> float:
        """Multiply-adds of all looks at the validation nodes through the graph, sparse ones as they last, by its sizes.

        Nothing is taken from the graph for it: a graph of which a look would need most may not even be in memory.
        """
        inputs, count = self.val.inputs, len(self.val.nodes)
        if inputs.num_nodes == 0:  # an inductive graph without validation nodes
            return 0.0
        degree = inputs.edge_entries / inputs.num_nodes
        seen = min(inputs.num_nodes, count * (1 + degree))
        hidden = inputs.feature_entries / inputs.num_nodes * self.model.hidden
        row = hidden + self.classes * (self.model.hidden + SPARSE * degree)
        return self.runs * longest(self.recipe).looks * seen * row

    def work(self, condensed: LabelledView) -> float:
        """Estimated cost of a probe, see :mod:`gcond.matching.cost_estimate`."""
        if self.without_graph:
            shapes = self.row_model.shapes(self.val.inputs.num_features, self.classes).values()
            row, whole = sum(shape.numel() for shape in shapes), longest(self.row_recipe)
            step, look = (rows * row + OVERHEAD / BACKWARD for rows in (len(condensed.nodes), self.scored))
            return self.runs * (whole.epoch * BACKWARD * step + whole.looks * look)
        look = step_work(self.model, self.val, self.classes) / BACKWARD
        whole = longest(self.recipe)
        return self.runs * (whole.epoch * step_work(self.model, condensed, self.classes) + whole.looks * look)


class _Measure(TypedDict):
    classes: int
    importance: Tensor | None


def _rows_and_labels(view: LabelledView) -> tuple[Tensor, Tensor]:
    assert isinstance(view.inputs.x, Tensor)
    return view.inputs.x, view.y


@torch.no_grad()
def propagated_rows(view: LabelledView, hops: int) -> LabelledView:
    """The labelled nodes of ``view`` with ``Â^hops X`` as their features, and without a graph."""
    rows = view.propagated(hops)
    everyone = torch.arange(len(rows), device=rows.device)
    return LabelledView(Inputs(rows, Identity()), everyone, view.y, view.source_index[view.nodes.cpu()])


def probe_interval(asked: int, share: float, epoch_work: float, probe_work: float) -> int:
    """Epochs from one probe to the next: as ``asked``, or more where probes would be above ``share`` of all work."""
    return max(asked, math.ceil(probe_work * (1 - share) / (share * epoch_work)))
