"""The rows that the ridge is fitted on and scored by, made from the side of the features or of the labelled nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor

from gcond.graph import Inputs
from gcond.graph.column_work import ColumnWork
from gcond.linalg.sparse import Identity
from gcond.linalg.tall import Columns, unit_rows
from gcond.runtime.memory import hand_back
from gcond.runtime.seeds import generator
from gcond.teaching.unit_rows import SKETCH, EstimatedRows, HeldRows, UnitRows, estimated_lengths, random_signs

PENALTIES = (0.3, 1.0, 3.0, 0.1, 10.0)
"""λ for rows of unit length, the usual ones first, so that they win where validation cannot tell."""
POWER_PENALTIES = (0.3, 0.1, 1.0, 0.03, 0.01)
"""The same for powers of the kernel, by which all nodes are more alike."""
SAME = 0.01
"""Relative change of the weights below which a penalty is taken for the same as another: where labelled rows are many,
most are, and scores of each would go through the graph for nothing."""
CHEAP = 3e7
"""Multiply-adds that all features may take through the hops: a tenth of a second, for which nothing is estimated."""
MOST_HELD = 16_000_000
"""Numbers in the columns of the labelled side: 64 MB, of which a product holds two or three."""
MOST_POWERED = 5_000_000
"""Numbers in the columns of a power of the kernel: 20 MB, of which a dozen are held. Beyond, a power takes seconds."""
HIGHEST_POWER = 3
"""Of the kernel: from the fourth on, answers follow the largest classes."""

Fitted: TypeAlias = tuple[Tensor | Columns, dict[float, Tensor]]
"""Rows [N, w], and the weights [w, C] of each penalty: scores are their product, and the shares of the classes."""


@dataclass(frozen=True, eq=False)
class RidgeRows:
    """Ridge regression on the rows of what some work with the graph makes of X, of unit length."""

    inputs: Inputs
    nodes: Tensor
    """int64 [L]: the labelled nodes."""
    target: Tensor
    """float32 [L, C]."""
    seed: int

    def of(self, work: ColumnWork) -> UnitRows:
        """From whichever side is cheaper, that of the features or that of the labelled nodes."""
        return self.from_labelled(work) if self._by_labelled(work) else self.from_features(work)

    def from_features(self, work: ColumnWork) -> HeldRows:
        """All features go through the hops, or what they are folded into."""
        return HeldRows(unit_rows(self.inputs.by_columns(self.inputs.spread(self._features, work))), self.nodes)

    def from_labelled(self, work: ColumnWork) -> EstimatedRows:
        """No feature goes through the hops, only as many columns as there are labelled nodes, classes and penalties."""
        return EstimatedRows(self.inputs, self.nodes, work, self.seed)

    def fitted(self, rows: UnitRows) -> Fitted:
        """The regression on ``rows`` as they are."""
        weights = dict(regressions(rows.own, self.target))
        return (rows.rows, weights) if isinstance(rows, HeldRows) else _scored(weights, rows)

    def powers(self, rows: UnitRows) -> Iterator[tuple[int, Fitted]]:
        r"""The regression by powers of the kernel K = H Hᵀ, brought to ones on its diagonal: the second, the third.

        By :math:`K^2` two nodes are alike as far as the same nodes are like both. So unlabelled nodes have a say in it,
        which helps where few are labelled: cluster kernels by a polynomial of the spectrum (Chapelle, Weston and
        Schölkopf, NIPS 2002). With :math:`G = H^⊤ H` it is :math:`K^p = H G^{p-1} H^⊤`, so that products with H and Hᵀ
        are all it takes. The diagonal is exact for labelled nodes and estimated for all others.

        Nothing where many nodes are labelled: a regression on as many rows as columns needs no help.
        """
        count, device = len(self.nodes), self.nodes.device
        columns = max(count, SKETCH, len(POWER_PENALTIES) * self.target.shape[1])
        if count >= rows.width or columns * rows.count > MOST_POWERED:
            return
        through = rows.own.T
        # With Z of random signs, a row of H G^k Z [d, ·] is as long as the root of an entry of K^(2k+1)'s diagonal, and
        # one of H G^k Hᵀ Z [N, ·] of K^(2k+2)'s.
        sketches = {1: random_signs(rows.width, self.seed, "diagonal of odd powers", device)}
        for power in range(2, HIGHEST_POWER + 1):
            through = rows.transposed_times(rows.times(through))
            if power == 2:
                drawn = random_signs(rows.count, self.seed, "diagonal of even powers", device)
                sketches[0] = rows.transposed_times(drawn)
            else:
                sketches[power % 2] = rows.transposed_times(rows.times(sketches[power % 2]))
            among = rows.own @ through
            own = among.diagonal().clamp(min=1e-24).sqrt()
            lengths = estimated_lengths(rows.times(sketches[power % 2]))
            lengths[self.nodes] = own
            alike = among / (own[:, None] * own)
            weights = dict(kernel_regressions(alike, through / own, self.target))
            hand_back()
            yield power, _scored(weights, rows, lengths)

    @cached_property
    def _features(self) -> Tensor | Columns:
        return self.inputs.folded(generator(self.seed, "folding features"), labelled=len(self.nodes))

    def _by_labelled(self, work: ColumnWork) -> bool:
        """Whether fewer columns go through the hops from the side of the labelled nodes, and that is worth an estimate.

        By sizes alone, so that a graph on disk has the same teacher as in memory; its one-way edges cannot be turned.
        """
        inputs, columns = self.inputs, len(self.nodes) + SKETCH + len(PENALTIES) * self.target.shape[1]
        if not isinstance(inputs.adjacency, Identity) and not getattr(inputs.adjacency, "symmetric", False):
            return False
        edges = 0 if isinstance(inputs.adjacency, Identity) else inputs.edge_entries
        return (
            work.products * (edges + inputs.num_nodes) * inputs.num_features > CHEAP
            and columns <= inputs.num_features
            and columns * inputs.num_nodes <= MOST_HELD
        )


def _scored(weights: dict[float, Tensor], rows: UnitRows, lengths: Tensor | None = None) -> Fitted:
    """The scores of all weights in the place of rows, and which columns belong to each penalty."""
    scores = rows.times(torch.cat(list(weights.values()), dim=1))
    if lengths is not None:
        scores = scores / lengths[:, None]
    classes = scores.shape[1] // len(weights)
    picks = torch.eye(scores.shape[1], device=scores.device).split(classes, dim=1)
    return scores, dict(zip(weights, picks, strict=True))


def regressions(own: Tensor, target: Tensor) -> Iterator[tuple[float, Tensor]]:
    """The :data:`PENALTIES` that differ, with the weights [w, C] of rows ``own`` [L, w]; one decomposition for all."""
    if len(own) <= own.shape[1]:
        return _solved(own @ own.T, target, PENALTIES, own.T)
    return _solved(own.T @ own, own.T @ target, PENALTIES)


def kernel_regressions(alike: Tensor, through: Tensor, target: Tensor) -> Iterator[tuple[float, Tensor]]:
    """The same by a kernel: ``alike`` [L, L] of labelled nodes, ``through`` [w, L] what leads from a row to each."""
    return _solved(alike, target, POWER_PENALTIES, through)


def _solved(
    gram: Tensor, right: Tensor, penalties: tuple[float, ...], columns: Tensor | None = None
) -> Iterator[tuple[float, Tensor]]:
    """``columns (gram + λ I)⁻¹ right`` for each penalty λ that changes it."""
    values, vectors = torch.linalg.eigh(gram.double())
    within = vectors.T @ right.double()
    tried: list[Tensor] = []
    for penalty in penalties:
        solved = (vectors @ (within / (values + penalty)[:, None])).float()
        weights = solved if columns is None else columns @ solved
        if all((weights - other).norm() > SAME * other.norm() for other in tried):
            tried.append(weights)
            yield penalty, weights
