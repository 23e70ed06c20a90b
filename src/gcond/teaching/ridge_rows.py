"""The rows that the ridge is fitted on and scored by, made from the side of the features or of the labelled nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.graph import Inputs
from gcond.graph.column_work import ColumnWork
from gcond.graph.some_rows import some_rows
from gcond.linalg.sparse import Identity
from gcond.linalg.tall import Columns, unit_rows
from gcond.runtime.seeds import generator

PENALTIES = (0.3, 1.0, 3.0, 0.1, 10.0)
"""λ for rows of unit length, the usual ones first, so that they win where validation cannot tell."""
SAME = 0.01
"""Relative change of the weights below which a penalty is taken for the same as another: where labelled rows are many,
most are, and scores of each would go through the graph for nothing."""
SKETCH = 128
"""Columns by which lengths of rows are estimated: off by about 1/√256, 6 %, which moves how sure a score is and hardly
ever which one is highest."""
CHEAP = 3e7
"""Multiply-adds that all features may take through the hops: a tenth of a second, for which nothing is estimated."""

MOST_HELD = 16_000_000
"""Numbers in the columns of the labelled side: 64 MB, of which a product holds two or three."""

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

    def of(self, work: ColumnWork) -> Fitted:
        """From whichever side is cheaper, that of the features or that of the labelled nodes."""
        return self.from_labelled(work) if self._by_labelled(work) else self.from_features(work)

    def from_features(self, work: ColumnWork) -> Fitted:
        """All features go through the hops, or what they are folded into."""
        rows = unit_rows(self.inputs.by_columns(self.inputs.spread(self._features, work)))
        return rows, dict(regressions(rows[self.nodes], self.target))

    def from_labelled(self, work: ColumnWork) -> Fitted:
        r"""No feature goes through the hops: what ``work`` makes is linear, :math:`\bar H = S X`.

        The labelled rows :math:`\bar H_L = (S^⊤ E_L)^⊤ X` take as many columns as there are labelled nodes, the scores
        :math:`S (X W)` as many as there are classes and penalties. What is not linear, the lengths of all other rows,
        is estimated from :data:`SKETCH` columns of random signs.
        """
        own = some_rows(self.inputs, self.nodes, work)
        weights = dict(regressions(F.normalize(own), self.target))
        drawn = torch.randint(2, (self.inputs.num_features, SKETCH), generator=generator(self.seed, "lengths of rows"))
        signs = (2.0 * drawn - 1).to(own.device)
        found = self.inputs.spread(self.inputs.x @ torch.cat([*weights.values(), signs], dim=1), work)
        assert isinstance(found, Tensor)
        scores, sketch = found[:, :-SKETCH], found[:, -SKETCH:]
        length = (sketch.norm(dim=1) / SKETCH**0.5).clamp(min=1e-12)
        length[self.nodes] = own.norm(dim=1).clamp(min=1e-12)
        picks = torch.eye(scores.shape[1], device=own.device).split(self.target.shape[1], dim=1)
        return scores / length[:, None], dict(zip(weights, picks, strict=True))

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


def regressions(own: Tensor, target: Tensor) -> Iterator[tuple[float, Tensor]]:
    """The :data:`PENALTIES` that differ, with the weights [w, C] of rows ``own`` [L, w]; one decomposition for all."""
    dual = len(own) <= own.shape[1]
    values, vectors = torch.linalg.eigh((own @ own.T if dual else own.T @ own).double())
    within = vectors.T @ (target if dual else own.T @ target).double()
    tried: list[Tensor] = []
    for penalty in PENALTIES:
        solved = (vectors @ (within / (values + penalty)[:, None])).float()
        weights = own.T @ solved if dual else solved
        if all((weights - other).norm() > SAME * other.norm() for other in tried):
            tried.append(weights)
            yield penalty, weights
