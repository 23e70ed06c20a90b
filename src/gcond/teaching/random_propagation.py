"""The network teacher: an MLP on randomly propagated features whose answers must agree with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.config.metric import Metric
from gcond.graph import Inputs, LabelledView
from gcond.linalg.adam import Adam
from gcond.linalg.sparse import Adjacency, SparseMatrix, narrow, transposed
from gcond.runtime.seeds import generator
from gcond.training.metrics import measured_once


@dataclass(frozen=True)
class RandomPropagation:
    r"""A small MLP on features propagated after nodes were dropped at random (GRAND, Feng et al., NeurIPS 2020).

    .. math:: f(M) = \mathrm{ReLU}\Big(\tfrac{1}{K+1} \sum_{k \le K} Â^k M X W_1 + b_1\Big) W_2 + b_2

    with M a diagonal matrix that drops nodes. Every epoch draws several M; their predictions on *all* nodes are pulled
    to their sharpened mean, so unlabelled nodes teach as well. Propagation is linear: :math:`X W_1` is made once per
    epoch for all draws, and what is propagated has as many columns as their hidden layers, not as the features.
    """

    citation: ClassVar[str] = "Feng et al., Graph Random Neural Networks, NeurIPS 2020"

    hops: int = 4
    hidden: int = 32
    epochs: int = 150
    lr: float = 0.03
    """GRAND's 0.01 needs three times the epochs, and knows no more of unlabelled nodes (docs/clusters.md)."""
    weight_decay: float = 5e-4
    node_dropout: float = 0.5
    hidden_dropout: float = 0.5
    draws: int = 2
    sharpening: float = 0.5
    """Temperature of the mean that draws are pulled to (GRAND, for the citation graphs)."""
    ramp: int = 50
    """Epochs in which the pull comes to its full weight: answers that agree before anything is learned are all alike,
    and with few labels it never gets away from that (Laine and Aila, Temporal Ensembling, ICLR 2017)."""
    look_every: int = 5
    """Epochs between two looks at the validation nodes."""
    patience: int = 40
    """Epochs without a better look after which it ends."""

    def memory(self, inputs: Inputs, classes: int) -> int:
        """Bytes that a training holds at the most with ``inputs`` in memory, these included."""
        # The adjacency as it is and normalised; features and their transpose, an index beside each of sparse entries.
        graph = 24 * (inputs.edge_entries + inputs.num_nodes) + 16 * (inputs.feature_entries + inputs.num_nodes)
        # Matrices of a step, there and back, counted by autograd's needs: 16 as wide as a layer, 12 as scores.
        return graph + 4 * inputs.num_nodes * self.draws * (16 * self.hidden + 12 * classes)

    def start(self, features: int, classes: int, seed: int, device: torch.device) -> dict[str, Tensor]:
        """The weights before anything is learned."""
        return {
            "in": _glorot(features, self.hidden, seed, "in", device),
            "in bias": torch.zeros(self.hidden, device=device),
            "out": _glorot(self.hidden, classes, seed, "out", device),
            "out bias": torch.zeros(classes, device=device),
        }

    def log_probabilities(
        self,
        train: LabelledView,
        val: LabelledView,
        classes: int,
        seed: int,
        metric: Metric = "accuracy",
        *,
        start: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Of every class at every node of the training graph, by the weights of the best validation look: [N, C].

        It learns from ``start``, which is overwritten, or from :meth:`start`.
        """
        inputs, device = train.inputs, train.y.device
        x = inputs.x.narrow if isinstance(inputs.x, SparseMatrix) else inputs.x
        operator = narrow(inputs.gcn)
        stream = generator(seed, "random propagation", device)
        weights = self.start(inputs.num_features, classes, seed, device) if start is None else start
        adam = Adam(weights, self.lr, self.weight_decay)
        leaves = {key: tensor.detach().requires_grad_() for key, tensor in weights.items()}  # the same memory

        def answers(masks: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
            """Of each draw, whose nodes and hidden units are multiplied by ``masks``: [draws, N, C]."""
            projected = x @ leaves["in"]
            side_by_side = torch.cat([projected * nodes for nodes, _ in masks], 1)  # one product for all draws
            spread = propagated_mean(operator, side_by_side, self.hops).split(self.hidden, 1)
            hidden = [F.relu(each + leaves["in bias"]) * units for each, (_, units) in zip(spread, masks, strict=True)]
            return (torch.stack(hidden) @ leaves["out"] + leaves["out bias"]).log_softmax(2)

        def draw() -> tuple[Tensor, Tensor]:
            size = inputs.num_nodes
            nodes = dropped((size, 1), self.node_dropout, stream)
            return nodes, dropped((size, self.hidden), self.hidden_dropout, stream)

        everything = [(torch.ones((), device=device), torch.ones((), device=device))]
        best, kept, since = (-1.0, 0.0), torch.empty(0), 0
        for epoch in range(1, self.epochs + 1):
            with torch.enable_grad():
                drawn = answers([draw() for _ in range(self.draws)])
                fitting = F.nll_loss(drawn[:, train.nodes].flatten(0, 1), train.y.repeat(self.draws))
                each_draw = drawn.exp()
                agreed = each_draw.detach().mean(0) ** (1 / self.sharpening)
                agreed = agreed / agreed.sum(1, keepdim=True)
                pull = (each_draw - agreed).square().sum(2).mean()
                loss = fitting + min(1.0, epoch / self.ramp) * pull
                gradients = torch.autograd.grad(loss, list(leaves.values()))
            adam.step(dict(zip(leaves, gradients, strict=True)))
            if epoch % self.look_every and epoch < self.epochs:
                continue
            with torch.no_grad():
                found = answers(everything)[0]
            judged = _judge(found, val, metric)
            since += self.look_every
            if judged > best or not len(val.nodes):  # without anyone to ask, the later is better
                best, kept, since = judged, found, 0
            elif since >= self.patience and len(val.nodes):
                break
        return kept


def propagated_mean(adjacency: Adjacency, columns: Tensor, hops: int) -> Tensor:
    """The mean of ``M, ÂM, …, Â^hops M``, differentiable in M, ``columns`` [N, k]."""
    mean: Tensor = _PropagatedMean.apply(columns, adjacency, hops)  # type: ignore[no-untyped-call]
    return mean


class _PropagatedMean(torch.autograd.Function):
    """As one step for autograd, whose own steps would take longer than the products of a small graph."""

    @staticmethod
    def forward(columns: Tensor, adjacency: Adjacency, hops: int) -> Tensor:
        total, spread = columns.clone(), columns
        for _ in range(hops):
            spread = adjacency @ spread
            total += spread
        return total.div_(hops + 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Adjacency, int], output: Tensor) -> None:
        _, ctx.adjacency, ctx.hops = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return propagated_mean(transposed(ctx.adjacency), grad, ctx.hops), None, None


def _judge(found: Tensor, val: LabelledView, metric: Metric) -> tuple[float, float]:
    """The ``metric`` on validation nodes, and of equal ones the higher likelihood."""
    if not len(val.nodes):
        return (0.0, 0.0)
    shown = found[val.nodes]
    return measured_once(shown.argmax(1), val.y, shown.shape[1], metric), -float(F.nll_loss(shown, val.y))


def dropped(shape: tuple[int, ...], rate: float, stream: torch.Generator) -> Tensor:
    """What dropout multiplies by."""
    drawn = torch.rand(shape, generator=stream, device=stream.device)
    return drawn.ge_(rate).div_(1 - rate)


def _glorot(fan_in: int, fan_out: int, seed: int, what: str, device: torch.device) -> Tensor:
    bound = (6 / (fan_in + fan_out)) ** 0.5
    drawn = torch.rand(fan_in, fan_out, generator=generator(seed, f"teacher {what}"))
    return ((2 * drawn - 1) * bound).to(device)
