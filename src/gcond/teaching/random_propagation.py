"""The network teacher: an MLP on randomly propagated features whose answers must agree with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.graph import LabelledView
from gcond.linalg.adam import Adam
from gcond.linalg.sparse import SparseMatrix
from gcond.runtime.seeds import generator


@dataclass(frozen=True)
class RandomPropagation:
    r"""A small MLP on features propagated after nodes were dropped at random (GRAND, Feng et al., NeurIPS 2020).

    .. math:: f(M) = \mathrm{ReLU}\Big(\tfrac{1}{K+1} \sum_{k \le K} Â^k M X W_1 + b_1\Big) W_2 + b_2

    with M a diagonal matrix that drops nodes. Every epoch draws several M; their predictions on *all* nodes are pulled
    to their sharpened mean, so unlabelled nodes teach as well. Propagation is linear: :math:`X W_1` is made once per
    epoch for all draws, and what is propagated has as many columns as the hidden layer, not as the features.
    """

    citation: ClassVar[str] = "Feng et al., Graph Random Neural Networks, NeurIPS 2020"

    hops: int = 4
    hidden: int = 32
    epochs: int = 400
    lr: float = 0.01
    weight_decay: float = 5e-4
    node_dropout: float = 0.5
    hidden_dropout: float = 0.5
    draws: int = 2
    sharpening: float = 0.5
    """Temperature of the mean that draws are pulled to (GRAND, for the citation graphs)."""
    look_every: int = 10
    """Epochs between two looks at the validation nodes."""
    patience: int = 80
    """Epochs without a better look after which it ends."""

    def work(self, view: LabelledView) -> float:
        """Multiply-adds of a training, there and back."""
        x, adjacency = view.inputs.x, view.inputs.adjacency
        entries = x.nnz if isinstance(x, SparseMatrix) else x.shape[0] * x.shape[1]
        edges = adjacency.nnz + view.inputs.num_nodes if isinstance(adjacency, SparseMatrix) else 0
        return 3.0 * self.epochs * self.hidden * (entries + self.draws * self.hops * edges)

    def log_probabilities(self, train: LabelledView, val: LabelledView, classes: int, seed: int) -> Tensor:
        """Of every class at every node of the training graph, by the weights of the best validation look: [N, C]."""
        inputs, device = train.inputs, train.y.device
        stream = generator(seed, "random propagation", device)
        weights = {
            "in": _glorot(inputs.num_features, self.hidden, seed, "in", device),
            "in bias": torch.zeros(self.hidden, device=device),
            "out": _glorot(self.hidden, classes, seed, "out", device),
            "out bias": torch.zeros(classes, device=device),
        }
        adam = Adam(weights, self.lr, self.weight_decay)
        leaves = {key: tensor.detach().requires_grad_() for key, tensor in weights.items()}  # the same memory

        def answers(projected: Tensor, *, drop: bool) -> Tensor:
            if drop:
                projected = projected * _kept((len(projected), 1), self.node_dropout, stream)
            total = projected
            for _ in range(self.hops):
                projected = inputs.gcn @ projected
                total = total + projected
            hidden = F.relu(total / (self.hops + 1) + leaves["in bias"])
            if drop:
                hidden = hidden * _kept(tuple(hidden.shape), self.hidden_dropout, stream)
            return (hidden @ leaves["out"] + leaves["out bias"]).log_softmax(1)

        best, kept, since = (-1.0, 0.0), torch.empty(0), 0
        for epoch in range(1, self.epochs + 1):
            with torch.enable_grad():
                projected = inputs.x @ leaves["in"]
                drawn = [answers(projected, drop=True) for _ in range(self.draws)]
                fitting = torch.stack([F.nll_loss(each[train.nodes], train.y) for each in drawn]).mean()
                each_draw = torch.stack([each.exp() for each in drawn])
                agreed = each_draw.detach().mean(0) ** (1 / self.sharpening)
                agreed = agreed / agreed.sum(1, keepdim=True)
                loss = fitting + (each_draw - agreed).square().sum(2).mean()
                gradients = torch.autograd.grad(loss, list(leaves.values()))
            adam.step(dict(zip(leaves, gradients, strict=True)))
            if epoch % self.look_every and epoch < self.epochs:
                continue
            with torch.no_grad():
                found = answers(inputs.x @ leaves["in"], drop=False)
            judged = _judge(found, val)
            since += self.look_every
            if judged > best or not len(val.nodes):
                best, kept, since = judged, found, 0
            elif since >= self.patience and len(val.nodes):
                break
        return kept


def _judge(found: Tensor, val: LabelledView) -> tuple[float, float]:
    """Validation accuracy, and of equal ones the higher likelihood; without validation nodes the later is better."""
    if not len(val.nodes):
        return (0.0, float("inf"))
    shown = found[val.nodes]
    return float((shown.argmax(1) == val.y).double().mean()), -float(F.nll_loss(shown, val.y))


def _kept(shape: tuple[int, ...], rate: float, stream: torch.Generator) -> Tensor:
    """What dropout multiplies by."""
    return (torch.rand(shape, generator=stream, device=stream.device) >= rate) / (1 - rate)


def _glorot(fan_in: int, fan_out: int, seed: int, what: str, device: torch.device) -> Tensor:
    bound = (6 / (fan_in + fan_out)) ** 0.5
    drawn = torch.rand(fan_in, fan_out, generator=generator(seed, f"teacher {what}"))
    return ((2 * drawn - 1) * bound).to(device)
