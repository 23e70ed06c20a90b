"""Structures: ways in which A' comes about, as a function of X', as free numbers, or not at all."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from gcond.errors import GcondError
from gcond.linalg.learned_matrix import LearnedMatrix
from gcond.linalg.sparse import Adjacency, Identity
from gcond.matching.candidates import Candidates, nearest
from gcond.matching.pairs import (
    BLOCK_PAIRS,
    EPSILON,
    KEPT_PAIRS,
    TENSORS_PER_PAIR,
    Block,
    all_pairs,
    pair_scores,
    pair_statistics,
)
from gcond.models.model import Parameters

STATISTICS = ("mean0", "variance0", "mean1", "variance1")
"""Statistics of BN over all pairs, which a file keeps beside the weights of the pairwise MLP."""


@dataclass(frozen=True)
class Structure(ABC):
    """A' from X'. Like a model, it is a description with functions; its weights are a dictionary."""

    @abstractmethod
    def init(self, nodes: int, features: int, generator: Generator) -> Parameters:
        """Fresh weights Φ."""

    def candidates(self, x: Tensor) -> Candidates | None:
        """The pairs of nodes with features ``x`` [n, d] that may have an edge; ``None`` for all of them."""
        return None

    @abstractmethod
    def adjacency(self, parameters: Parameters, x: Tensor, among: Candidates | None = None) -> Adjacency:
        """A' [n, n] of features ``x`` [n, d]: weights from 0 to 1, nothing on the diagonal.

        ``among`` are the pairs that may have one, by default :meth:`candidates` of ``x``.
        """

    def finish(self, parameters: Parameters, x: Tensor) -> dict[str, Tensor]:
        """Tensors for the file, so that A' can be made again for more nodes."""
        return {}

    def kept(self, tensors: Mapping[str, Tensor], features: int) -> Parameters:
        """Φ from the ``tensors`` of a file, as :meth:`finish` gave them; refused if they are not whole."""
        return {}

    def block_bytes(self, nodes: int) -> int | None:
        """Memory for what is made of pairs of nodes beside A' itself; ``None`` where there is no A'."""
        return None

    def entries(self, nodes: int) -> int:
        """Numbers that A' holds, at most."""
        return nodes * nodes

    def work(self, nodes: int, features: int) -> float:
        """Making A' and differentiating it once, see :mod:`gcond.matching.cost_estimate`."""
        return 0

    def largest_product(self, nodes: int, features: int) -> float:
        """Multiply-adds of the largest product in that, by which threads are given out."""
        return 0


@dataclass(frozen=True)
class NoStructure(Structure):
    """A' = I: the graph goes into the features alone (GCond-X)."""

    def init(self, nodes: int, features: int, generator: Generator) -> Parameters:
        return {}

    def adjacency(self, parameters: Parameters, x: Tensor, among: Candidates | None = None) -> Adjacency:
        return Identity()

    def entries(self, nodes: int) -> int:
        return 0


@dataclass(frozen=True)
class FreeStructure(Structure):
    """A' as n² numbers of its own, the paper's ablation: σ of a (symmetrised) matrix."""

    symmetric: bool = True
    edge_bias: float = 0.0
    """Before the sigmoid, at the start."""

    def init(self, nodes: int, features: int, generator: Generator) -> Parameters:
        # Small and random: equal numbers would have equal derivatives for nodes of equal features.
        return {"score": self.edge_bias + 0.1 * torch.randn(nodes, nodes, generator=generator)}

    def adjacency(self, parameters: Parameters, x: Tensor, among: Candidates | None = None) -> Tensor:
        return _weights(parameters["score"], self.symmetric)

    def block_bytes(self, nodes: int) -> int:
        return 0


@dataclass(frozen=True)
class PairwiseMLP(Structure):
    r"""g_Φ, the paper's equation (7): an MLP looks at the features of every pair of nodes.

    .. math:: A'_{ij} = σ\Big(\tfrac{1}{2} \big(\mathrm{MLP}_Φ([x_i; x_j]) + \mathrm{MLP}_Φ([x_j; x_i])\big)\Big)

    or, where the source is directed, ``σ(MLP_Φ([x_i; x_j]))`` for the edge from j to i. The MLP is Linear(2d→h),
    BN, ReLU, Linear(h→h), BN, ReLU, Linear(h→1), as released; BN always uses the statistics of all n² pairs.
    The biases of the first two layers, which BN takes out again, are not there.

    With ``neighbours`` m only pairs in which one node is among the m nearest of the other have a weight, n·m of them in
    place of n², and A' is sparse. The first layer is then normalised by all pairs as before, which costs nothing. The
    second is by the pairs that are looked at and every node with itself, which would cost n² h² by all: BN is to give
    the ReLU after it numbers about 0, and pairs that are near are not about the mean of all. With m = n - 1 these are
    all pairs, and everything is the same.
    """

    hidden: int = 128
    symmetric: bool = True
    edge_bias: float = 0.0
    """The last layer's bias at the start: below 0, the graph starts sparse."""
    memory: int | None = None
    """Bytes that the pairs may take; ``None`` for no limit."""
    neighbours: int | None = None
    """The nearest nodes that a node may have an edge with, and those whose nearest it is; ``None`` for all."""

    def init(self, nodes: int, features: int, generator: Generator) -> Parameters:
        h = self.hidden
        return {
            "source": _uniform((features, h), 2 * features, generator),
            "target": _uniform((features, h), 2 * features, generator),
            "gamma0": torch.ones(h),
            "beta0": torch.zeros(h),
            "weight1": _uniform((h, h), h, generator),
            "gamma1": torch.ones(h),
            "beta1": torch.zeros(h),
            "weight2": _uniform((h,), h, generator),
            "bias2": _uniform((1,), h, generator) + self.edge_bias,
        }

    def candidates(self, x: Tensor) -> Candidates | None:
        if self.neighbours is None:
            return None
        return Candidates.of(*nearest(x.detach(), self.neighbours), len(x), self.pairs_together(x.element_size()))

    def adjacency(self, parameters: Parameters, x: Tensor, among: Candidates | None = None) -> Tensor | LearnedMatrix:
        among = self.candidates(x) if among is None else among
        left, right, _ = self._halves(parameters, x)
        names = {"weight": "weight1", "gamma": "gamma1", "beta": "beta1", "out": "weight2"}
        second = {name: parameters[key] for name, key in names.items()}
        statistics = (parameters["mean1"], parameters["variance1"]) if "mean1" in parameters else None
        score = pair_scores(left, right, **second, statistics=statistics, blocks=self._blocks(x, among))
        score = score + parameters["bias2"]
        if among is not None:
            return among.weights(score, symmetric=self.symmetric)
        return _weights(score.view(len(x), len(x)), self.symmetric)

    @torch.no_grad()
    def finish(self, parameters: Parameters, x: Tensor) -> dict[str, Tensor]:
        """Φ with the statistics of BN over today's pairs: with these, new nodes leave the edges of old ones alone."""
        left, right, moments = self._halves({key: parameters[key] for key in parameters if key not in STATISTICS}, x)
        moments += pair_statistics(left, right, parameters["weight1"], self._blocks(x, self.candidates(x)))
        fixed = dict(zip(STATISTICS, moments, strict=True))
        return {key: tensor.detach().clone() for key, tensor in (parameters | fixed).items()}

    def kept(self, tensors: Mapping[str, Tensor], features: int) -> Parameters:
        expected: Parameters = {}
        if self.hidden:
            with torch.device("meta"):  # for the shapes alone
                weights = self.init(1, features, None)  # type: ignore[arg-type]
                expected = weights | dict.fromkeys(STATISTICS, torch.empty(self.hidden))
        found, wanted = ({key: (x.shape, x.dtype) for key, x in each.items()} for each in (tensors, expected))
        if found != wanted:
            raise GcondError("the weights of the structure are missing or of another shape: condense the graph again")
        return {key: tensor.clone() for key, tensor in tensors.items()}

    def block_bytes(self, nodes: int) -> int:
        whole = TENSORS_PER_PAIR * self._quick_pairs(nodes) * self.hidden * 4
        return whole if self.memory is None else min(whole, self.memory)

    def entries(self, nodes: int) -> int:
        if self.neighbours is None:
            return nodes * nodes
        return nodes * min(nodes, 2 * self.neighbours + 1)  # twice, where nobody is the nearest of its nearest

    def work(self, nodes: int, features: int) -> float:
        return 3 * self.hidden * (self.entries(nodes) * self.hidden + 2 * nodes * features)

    def largest_product(self, nodes: int, features: int) -> float:
        return self.hidden * max(self._quick_pairs(nodes) * self.hidden, nodes * features)

    def _quick_pairs(self, nodes: int) -> int:
        """Pairs whose hidden layers are in memory at a time, unless :attr:`memory` is for fewer."""
        pairs = self.entries(nodes)
        return pairs if pairs <= KEPT_PAIRS else max(BLOCK_PAIRS, nodes)

    def _blocks(self, x: Tensor, among: Candidates | None) -> Sequence[Block]:
        if among is not None:
            return among.blocks
        return all_pairs(len(x), len(x), self.rows(len(x), x.element_size()))

    def rows(self, nodes: int, number: int = 4) -> int | None:
        """Rows of all pairs that fit into :attr:`memory`."""
        return None if self.memory is None else max(1, self.memory // (TENSORS_PER_PAIR * nodes * self.hidden * number))

    def pairs_together(self, number: int = 4) -> int | None:
        """Pairs that fit into :attr:`memory`."""
        return None if self.memory is None else max(1, self.memory // (TENSORS_PER_PAIR * self.hidden * number))

    @staticmethod
    def _halves(parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """BN of ``target_i + source_j``, the first layer, in two parts [n, h] whose sum it is; and mean and variance.

        These are over all pairs of ``x``, in which the two are independent, or fixed by :meth:`finish`.
        """
        target, source = x @ parameters["target"], x @ parameters["source"]
        if "mean0" in parameters:
            mean, variance = parameters["mean0"], parameters["variance0"]
        else:
            var_t, mean_t = torch.var_mean(target, dim=0, correction=0)
            var_s, mean_s = torch.var_mean(source, dim=0, correction=0)
            mean, variance = mean_t + mean_s, var_t + var_s
        scale = parameters["gamma0"] * (variance + EPSILON).rsqrt()
        return target * scale, (source - mean) * scale + parameters["beta0"], (mean, variance)


def kept_width(tensors: Mapping[str, Tensor]) -> int | None:
    """Width h of the pairwise MLP that the ``tensors`` of a file are of; ``None`` where they are not of one."""
    return tensors["weight2"].numel() if "weight2" in tensors else None


def _weights(score: Tensor, symmetric: bool) -> Tensor:
    """σ of the (symmetrised) scores, without self-loops: normalisation adds those."""
    if symmetric:  # by half of it: the sigmoid of equal numbers may differ in the last bit from place to place
        upper = torch.sigmoid((score + score.mT) / 2).triu(1)
        return upper + upper.mT
    return torch.sigmoid(score).masked_fill(torch.eye(len(score), dtype=torch.bool, device=score.device), 0.0)


def _uniform(shape: tuple[int, ...], inputs: int, generator: Generator) -> Tensor:
    """Uniform on ±1/√inputs, as ``torch.nn.Linear`` starts (and with it the released code)."""
    bound = 1 / math.sqrt(inputs)
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)
