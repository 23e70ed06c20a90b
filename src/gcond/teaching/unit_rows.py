"""Rows of unit length, one for every node, that are only multiplied by: held, or never made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.graph import Inputs
from gcond.graph.column_work import ColumnWork
from gcond.graph.some_rows import some_rows
from gcond.linalg.tall import Columns, row_blocks
from gcond.runtime.seeds import generator

SKETCH = 128
"""Columns by which lengths of rows are estimated: off by about 1/√256, 6 %, which moves how sure a score is and hardly
ever which one is highest."""


def random_signs(rows: int, seed: int, what: str, device: torch.device) -> Tensor:
    """float32 [rows, :data:`SKETCH`]: each row of M @ signs is about √SKETCH times as long as that of M [·, rows]."""
    drawn = torch.randint(2, (rows, SKETCH), generator=generator(seed, what), dtype=torch.int8)
    return drawn.float().mul_(2).sub_(1).to(device)


def estimated_lengths(sketch: Tensor) -> Tensor:
    """Lengths of the rows of M [N, w] from M @ :func:`random_signs`: float32 [N], not zero."""
    return (sketch.norm(dim=1) / sketch.shape[1] ** 0.5).clamp(min=1e-12)


class UnitRows(ABC):
    """The matrix H [N, w], by its products."""

    nodes: Tensor
    """int64 [L]: the labelled nodes."""
    width: int
    count: int
    """The rows, N."""

    @property
    @abstractmethod
    def own(self) -> Tensor:
        """The rows of the labelled nodes: float32 [L, w]."""

    @abstractmethod
    def times(self, columns: Tensor) -> Tensor:
        """``H @ columns``, which are [w, k]: float32 [N, k]."""

    @abstractmethod
    def transposed_times(self, columns: Tensor) -> Tensor:
        """``H.T @ columns``, which are [N, k]: float32 [w, k]."""


@dataclass(frozen=True, eq=False)
class HeldRows(UnitRows):
    """Rows that were made, in memory or in a file."""

    rows: Tensor | Columns
    nodes: Tensor

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.rows.shape[1]

    @property
    def count(self) -> int:  # type: ignore[override]
        return self.rows.shape[0]

    @cached_property
    def own(self) -> Tensor:
        return self.rows[self.nodes]

    def times(self, columns: Tensor) -> Tensor:
        return torch.cat([rows @ columns for _, rows in row_blocks(self.rows)])

    def transposed_times(self, columns: Tensor) -> Tensor:
        total = torch.zeros(self.width, columns.shape[1], device=columns.device)
        for where, rows in row_blocks(self.rows):
            total += rows.T @ columns[where]
        return total


@dataclass(frozen=True, eq=False)
class EstimatedRows(UnitRows):
    r"""What some work with a symmetric graph makes of all features, without a feature's going through the graph.

    The work is linear, :math:`H = D^{-1} S X`, so labelled rows are :math:`(S^⊤ E_L)^⊤ X` and products :math:`S (X W)`.
    The lengths D are not linear: those of labelled rows are exact, all others estimated.
    """

    inputs: Inputs
    nodes: Tensor
    work: ColumnWork
    seed: int

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.inputs.num_features

    @property
    def count(self) -> int:  # type: ignore[override]
        return self.inputs.num_nodes

    @cached_property
    def _plain(self) -> Tensor:
        """The labelled rows before they have length 1: float32 [L, d]."""
        return some_rows(self.inputs, self.nodes, self.work)

    @cached_property
    def own(self) -> Tensor:
        return F.normalize(self._plain)

    @cached_property
    def lengths(self) -> Tensor:
        """float32 [N, 1]."""
        signs = random_signs(self.width, self.seed, "lengths of rows", self.nodes.device)
        return self.with_own(estimated_lengths(self._spread(self.inputs.x @ signs)))[:, None]

    def with_own(self, lengths: Tensor) -> Tensor:
        """``lengths`` [N] in which those of labelled rows are exact."""
        lengths[self.nodes] = self._plain.norm(dim=1).clamp(min=1e-12)
        return lengths

    def times(self, columns: Tensor) -> Tensor:
        return self._spread(self.inputs.x @ columns) / self.lengths

    def transposed_times(self, columns: Tensor) -> Tensor:
        return self.inputs.x.T @ self._spread(columns / self.lengths)

    def _spread(self, columns: Tensor) -> Tensor:
        found = self.inputs.spread(columns, self.work)
        assert isinstance(found, Tensor)
        return found
