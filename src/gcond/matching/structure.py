"""Structures: ways in which A' comes about, as a function of X', as free numbers, or not at all."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from gcond.errors import GcondError
from gcond.linalg.sparse import Adjacency, Identity
from gcond.matching.pairs import EPSILON, TENSORS_PER_PAIR, pair_scores, pair_statistics
from gcond.models.model import Parameters

STATISTICS = ("mean0", "variance0", "mean1", "variance1")
"""Statistics of BN over all pairs, which a file keeps beside the weights of the pairwise MLP."""


@dataclass(frozen=True)
class Structure(ABC):
    """A' from X'. Like a model, it is a description with functions; its weights are a dictionary."""

    @abstractmethod
    def init(self, nodes: int, features: int, generator: Generator) -> Parameters:
        """Fresh weights Φ."""

    @abstractmethod
    def adjacency(self, parameters: Parameters, x: Tensor) -> Adjacency:
        """A' [n, n] of features ``x`` [n, d]: weights from 0 to 1, nothing on the diagonal."""

    def finish(self, parameters: Parameters, x: Tensor) -> dict[str, Tensor]:
        """Tensors for the file, so that A' can be made again for more nodes."""
        return {}

    def kept(self, tensors: Mapping[str, Tensor], features: int) -> Parameters:
        """Φ from the ``tensors`` of a file, as :meth:`finish` gave them; refused if they are not whole."""
        return {}

    def block_bytes(self, nodes: int) -> int | None:
        """Memory for what is made of pairs of nodes beside A' itself; ``None`` where there is no A'."""
        return None

    def work(self, nodes: int, features: int) -> float:
        """Making A' and differentiating it once, see :mod:`gcond.matching.cost_estimate`."""
        return 0


@dataclass(frozen=True)
class NoStructure(Structure):
    """A' = I: the graph goes into the features alone (GCond-X)."""

    def init(self, nodes: int, features: int, generator: Generator) -> Parameters:
        return {}

    def adjacency(self, parameters: Parameters, x: Tensor) -> Adjacency:
        return Identity()


@dataclass(frozen=True)
class FreeStructure(Structure):
    """A' as n² numbers of its own, the paper's ablation: σ of a (symmetrised) matrix."""

    symmetric: bool = True
    edge_bias: float = 0.0
    """Before the sigmoid, at the start."""

    def init(self, nodes: int, features: int, generator: Generator) -> Parameters:
        # Small and random: equal numbers would have equal derivatives for nodes of equal features.
        return {"score": self.edge_bias + 0.1 * torch.randn(nodes, nodes, generator=generator)}

    def adjacency(self, parameters: Parameters, x: Tensor) -> Tensor:
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
    """

    hidden: int = 128
    symmetric: bool = True
    edge_bias: float = 0.0
    """The last layer's bias at the start: below 0, the graph starts sparse."""
    memory: int | None = None
    """Bytes that the pairs may take; ``None`` for all of them at once."""

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

    def adjacency(self, parameters: Parameters, x: Tensor) -> Tensor:
        left, right, _ = self._halves(parameters, x)
        names = {"weight": "weight1", "gamma": "gamma1", "beta": "beta1", "out": "weight2"}
        second = {name: parameters[key] for name, key in names.items()}
        statistics = (parameters["mean1"], parameters["variance1"]) if "mean1" in parameters else None
        score = pair_scores(left, right, **second, statistics=statistics, rows=self.rows(len(x), x.element_size()))
        return _weights(score + parameters["bias2"], self.symmetric)

    @torch.no_grad()
    def finish(self, parameters: Parameters, x: Tensor) -> dict[str, Tensor]:
        """Φ with the statistics of BN over today's pairs: with these, new nodes leave the edges of old ones alone."""
        left, right, moments = self._halves({key: parameters[key] for key in parameters if key not in STATISTICS}, x)
        moments += pair_statistics(left, right, parameters["weight1"], self.rows(len(x), x.element_size()))
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
        whole = TENSORS_PER_PAIR * nodes * nodes * self.hidden * 4
        return whole if self.memory is None else min(whole, self.memory)

    def work(self, nodes: int, features: int) -> float:
        return 3 * nodes * self.hidden * (nodes * self.hidden + 2 * features)

    def rows(self, nodes: int, number: int = 4) -> int | None:
        """Rows of pairs that fit into :attr:`memory`."""
        if self.memory is None:
            return None
        return max(1, self.memory // (TENSORS_PER_PAIR * nodes * self.hidden * number))

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
