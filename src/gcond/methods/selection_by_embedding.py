"""Selection in an embedding: what herding and k-center share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from gcond.condensed import CondensedGraph, Task
from gcond.graph import LabelledView
from gcond.graph.stored_inputs import StoredInputs
from gcond.matching.callback import Callback
from gcond.methods.method import Method, induced_subgraph
from gcond.models import GCN
from gcond.models.model import Parameters
from gcond.training import Recipe, fit
from gcond.training.class_scores import class_scores
from gcond.training.largest_product import largest_product

Embedding = Literal["output", "hidden"]


@dataclass(frozen=True)
class SelectionByEmbedding(Method):
    """Labelled nodes picked class by class by where a trained GCN puts them, and the edges among them.

    The GCN learns from the training view alone and keeps its last weights: choosing an epoch would
    read validation nodes, which a selection has no need of.
    """

    kind: ClassVar[Literal["selected"]] = "selected"

    embedding: Embedding = "output"
    """Vector to compare nodes by: ``output``, its log-probabilities, as the released scripts do, or ``hidden``."""
    epochs: int = 600
    """Epochs the GCN trains for (released scripts)."""
    hidden: int = 256
    """Width of the GCN's hidden layer (released scripts)."""
    lr: float = 0.01
    """Adam's rate for the GCN; a tenth of it in the second half (released scripts)."""
    weight_decay: float = 5e-4
    """L2 penalty on the GCN's weights (released scripts)."""
    dropout: float = 0.5
    """On the GCN's hidden layer while it trains (released scripts)."""

    def __post_init__(self) -> None:
        # Both refuse what cannot be trained, and should do so before the work starts.
        self.model()
        self.recipe()

    def model(self) -> GCN:
        return GCN(layers=2, hidden=self.hidden)

    def recipe(self) -> Recipe:
        return Recipe(self.epochs, self.lr, self.weight_decay, self.dropout, select="last")

    @abstractmethod
    def pick(self, points: Tensor, count: int) -> Tensor:
        """``count`` different rows of ``points`` (float64 [m, k], one class), as they are picked: int64 [count]."""

    def largest_product(self, task: Task) -> float:
        return largest_product(self.model(), task.train, task.num_classes)

    def reduce(self, task: Task, callbacks: Sequence[Callback] = ()) -> CondensedGraph:
        points = embed(task, self.model(), self.recipe(), self.embedding)
        chosen = []
        for label, count in enumerate(task.quota.tolist()):
            candidates = task.candidates(label).cpu()
            chosen.append(candidates[self.pick(points[task.train.y.cpu() == label], count)])
        return induced_subgraph(task, torch.cat(chosen))


@torch.no_grad()
def embed(task: Task, model: GCN, recipe: Recipe, embedding: Embedding) -> Tensor:
    """Train ``model`` on the training view and place its m labelled nodes: float64 [m, C] for ``output``, or [m, h].

    Distances are compared on the CPU in float64, where a sum over many nodes still tells close candidates apart.
    """
    with torch.enable_grad():
        trained = fit(model, task.train, None, classes=task.num_classes, seeds=[task.seed], recipe=recipe)
    (parameters,) = trained.parameters
    if embedding == "output":
        return _scores(model, parameters, task.train).log_softmax(-1).double().cpu()
    # All layers but the last are themselves a GCN, whose scores before the activation are the hidden layer's.
    without_last = GCN(model.layers - 1, model.hidden, model.activation)
    return model.activate(_scores(without_last, parameters, task.train)).double().cpu()


def _scores(model: GCN, parameters: Parameters, view: LabelledView) -> Tensor:
    """The scores of the labelled nodes: [m, w]."""
    if not isinstance(view.inputs, StoredInputs):
        return model.logits(parameters, view.inputs)[view.nodes]
    blocks = [(places, scores) for _, places, scores in class_scores(model, [parameters], view.inputs, view.nodes)]
    found = torch.empty(len(view.nodes), blocks[0][1].shape[1])
    for places, scores in blocks:
        found[places] = scores
    return found
