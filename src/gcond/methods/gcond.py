"""GCond."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

from torch import Tensor

from gcond.condensed import CondensedGraph, Task
from gcond.condensed.provenance import KEPT_EPOCH
from gcond.config.settings import LATER
from gcond.linalg.learned_matrix import LearnedMatrix
from gcond.linalg.sparse import Adjacency, SparseMatrix
from gcond.matching.probe import Probe
from gcond.matching.schedule import Order, Schedule
from gcond.matching.sparsification import sparsify
from gcond.matching.structure import FreeStructure, PairwiseMLP, Structure
from gcond.matching.synthetic import Rates, Synthetic
from gcond.methods.gradient_matching import GradientMatching
from gcond.runtime.memory import parse_bytes

# What a node's edges weigh together at the start, beside its self-loop of 1. The features of clusters are propagated
# already, and edges of that weight would blur them once more.
AUTO_EDGES = 1.0
AUTO_EDGES_OF_CLUSTERS = 0.1

USUAL = 2.0
"""Threshold of A' in probes, in mean weights, where δ is not given."""
FACTORS = (math.inf, 5.0, USUAL, 0.0)
"""Thresholds among which the last one is chosen, in mean weights: from no edge to all of them."""

EXACT = 2e10
"""Multiply-adds of one product of Φ over all pairs, n² h², up to which ``neighbours=auto`` takes all of them: a step
takes 1.2 seconds of one core then, and a run that ends by its patience after 20 epochs eight minutes."""
NEIGHBOURS = 32
"""Neighbours that it takes beyond."""


@dataclass(frozen=True)
class GCond(GradientMatching):
    r"""Features and structure, learned so that a GNN's gradients on them match those on the source graph.

    .. math:: \min_{X', Φ} E_{θ_0 \sim P} \sum_{t<T} \sum_c
              D\big(∇_θ L(\mathrm{GNN}_{θ_t}(g_Φ(X'), X'), Y'_c),\; ∇_θ L(\mathrm{GNN}_{θ_t}(A, X), Y_c)\big)

    with ``A' = g_Φ(X')`` by an MLP on every pair of nodes, ``X'`` and ``Φ`` taking turns, and ``θ`` trained on the
    condensed graph between two steps. At the end, light edges of A' are dropped (``delta``).
    """

    name: ClassVar[str] = "gcond"
    summary: ClassVar[str] = "features and structure learned by matching gradients"
    citation: ClassVar[str] = "Jin et al., Graph Condensation for Graph Neural Networks, ICLR 2022"

    structure: Literal["mlp", "free"] = "mlp"
    """A' as a function of X' by a pairwise MLP, or as free numbers, the paper's ablation."""
    structure_hidden: int = 128
    """Width of the pairwise MLP (released: 128, and 256 for the three large graphs)."""
    neighbours: int | Literal["auto"] = field(default="auto", metadata=LATER)
    """The nearest nodes, by X' at the beginning of each epoch, that a node may have an edge with (and those whose
    nearest it is): all other pairs weigh 0, and the pairwise MLP costs n·m·h² in place of n²·h². 0 is all pairs, as in
    the paper. ``auto`` is all pairs while these take about a second a step (1,100 nodes at the usual width), and 32
    neighbours beyond."""
    edge_bias: float | Literal["auto"] = "auto"
    """Its last bias at the start. At 0, as released, A' starts as a full graph of weights about 0.5, in which all
    nodes look alike after two propagations; with ``auto`` a node's edges weigh 1 in all, as much as its self-loop, or a
    tenth of that where X' starts from clusters, which the graph is in already."""
    lr_structure: float = 1e-4
    """Adam's rate for Φ (released, for the citation graphs)."""
    schedule: Order = "structure-first"
    """Who has the first turn, or ``joint`` for both at every step."""
    features_epochs: int = 8
    """Epochs of one turn of X', τ₁ (released: 40)."""
    structure_epochs: int = 2
    """Epochs of one turn of Φ, τ₂ (released: 10, so the same share)."""
    delta: float | Literal["auto"] = "auto"
    """Weights of A' up to this are dropped at the end (paper: 0.05 for small graphs and 0.01 for large ones, and up to
    0.8 in its sweep). ``auto`` follows the weights that there are: probes look at those above twice their mean, and
    how much is kept in the end, from everything to nothing, is chosen by validation."""
    sparsify: Literal["threshold", "shrink"] = "threshold"
    """``threshold`` keeps the others as they are; ``shrink`` is the paper's ReLU(A' - δ)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.structure_hidden < 1 or self.lr_structure <= 0:
            raise ValueError("structure_hidden must be at least 1, and lr_structure positive")
        if self.neighbours != "auto" and self.neighbours < 0:
            raise ValueError("neighbours must be auto, a number of nodes, or 0 for all of them")
        if self.neighbours != "auto" and self.neighbours and self.structure == "free":
            raise ValueError("neighbours are of structure=mlp: structure=free has a number of its own for every pair")
        if self.delta != "auto" and not 0 <= self.delta < 1:
            raise ValueError("delta must be at least 0 and below 1")
        self.turns()

    def structure_for(self, task: Task) -> Structure:
        adjacency = task.train.inputs.adjacency
        symmetric = not isinstance(adjacency, SparseMatrix) or adjacency.symmetric
        edges = AUTO_EDGES_OF_CLUSTERS if self.init == "clusters" else AUTO_EDGES
        nodes = int(task.quota.sum())
        neighbours = self.neighbours_of(nodes)
        among = nodes if neighbours is None else neighbours + 1
        bias = math.log(edges / among) if self.edge_bias == "auto" else self.edge_bias
        if self.structure == "free":
            return FreeStructure(symmetric, bias)
        return PairwiseMLP(self.structure_hidden, symmetric, bias, parse_bytes(self.memory), neighbours)

    def neighbours_of(self, nodes: int) -> int | None:
        """Nearest nodes that each of so many may have an edge with; ``None`` for all of them."""
        if self.structure == "free":
            return None
        if self.neighbours == "auto":
            return NEIGHBOURS if (nodes * self.structure_hidden) ** 2 > EXACT else None
        return self.neighbours if 0 < self.neighbours < nodes - 1 else None

    def turns(self) -> Schedule:
        return Schedule(self.schedule, self.features_epochs, self.structure_epochs)

    def rates(self, x: Tensor) -> Rates:
        return replace(super().rates(x), structure=self.lr_structure)

    def probes_after(self) -> int:
        return len(FACTORS) if self.delta == "auto" and self.probe_every else 0

    def ship(self, adjacency: Adjacency) -> Adjacency:
        assert isinstance(adjacency, Tensor | LearnedMatrix)
        return self.cut(relative_threshold(adjacency, USUAL) if self.delta == "auto" else self.delta, adjacency)

    def cut(self, delta: float, adjacency: Adjacency) -> Adjacency:
        """A' without weights up to ``delta``."""
        assert isinstance(adjacency, Tensor | LearnedMatrix)
        return sparsify(adjacency, delta, shrink=self.sparsify == "shrink")

    def finished(self, task: Task, synthetic: Synthetic) -> CondensedGraph:
        if (neighbours := self.neighbours_of(len(synthetic.y))) is not None and self.neighbours == "auto":
            task.notes.choices["neighbours"] = neighbours
        if self.delta != "auto":
            return super().finished(task, synthetic)
        adjacency = synthetic.settled().adjacency
        assert isinstance(adjacency, Tensor | LearnedMatrix)
        probe = Probe(task.val, task.num_classes, task.seed, self.metric, importance=task.importance)
        deltas = [relative_threshold(adjacency, factor) for factor in (FACTORS if self.probe_every else (USUAL,))]
        best = deltas[0]
        if len(deltas) > 1:
            found = [probe.accuracy(synthetic.view(partial(self.cut, delta))) for delta in deltas]
            # Of equal ones the first, with fewer edges. Where nothing was learned, edges are those of a network at
            # random, and the start has none.
            if task.notes.choices.get(KEPT_EPOCH) != 0 or max(found) > probe.clearly_more(found[0]):
                best = deltas[found.index(max(found))]
        task.notes.choices["delta"] = best
        return synthetic.finish(partial(self.cut, best))


def relative_threshold(adjacency: Tensor | LearnedMatrix, factor: float) -> float:
    """``factor`` times the mean weight of A' [n, n], at most its largest one, which leaves nothing, and below 1.

    The mean is over all pairs of nodes, or those that may have an edge where these are fewer.
    """
    weights = adjacency.values if isinstance(adjacency, LearnedMatrix) else adjacency
    largest = float(weights.max())
    mean = float(weights.sum()) / max(1, weights.numel() - adjacency.shape[0])
    return min(factor * mean, largest, math.nextafter(1.0, 0.0)) if factor else 0.0
