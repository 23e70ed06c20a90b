"""The inputs of a model: node features and the forms of one adjacency, each made once and shared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch import Tensor

from gcond.linalg.edge_products import Pattern
from gcond.linalg.random_projection import projected_features
from gcond.linalg.sparse import (
    Adjacency,
    Identity,
    Matrix,
    SparseMatrix,
    add_self_loops,
    gcn_normalise,
    mean_normalise,
    narrow,
    scaled_laplacian,
)
from gcond.linalg.tall import Columns, Tall

if TYPE_CHECKING:
    from gcond.graph.column_work import ColumnWork

Form = Literal["gcn", "mean", "laplacian"]
T = TypeVar("T")
MOST_OF_ALL = 0.9
"""The share of a graph's nodes from which a copy of them would not be worth making."""


class Inputs:
    """Features ``x`` ([n, d], dense or sparse) on an adjacency ([n, n], see :mod:`gcond.linalg.sparse`).

    Neither changes while a model trains, so whatever depends on them alone is computed at first use
    and kept: the normalised adjacencies and, for dense features, products such as ``ÂX``. Where X or A
    is itself being learned, every step makes inputs of its own, since these keep what they were made from.

    With ``loops`` every node is among its own neighbours, in every form and not only in Â: that is how condensed
    graphs are trained on. Most of their nodes have few edges or none, and a weight that only ever met neighbours
    would stay what chance made it.
    """

    def __init__(self, x: Matrix, adjacency: Adjacency, *, loops: bool = False) -> None:
        self.x = x
        self.adjacency = adjacency
        self.loops = loops
        self._propagated: dict[tuple[Form, int], Matrix | Chain] = {}
        self._kept: dict[Hashable, Any] = {}
        self._elsewhere: dict[torch.device, Inputs] = {}

    @property
    def num_nodes(self) -> int:
        return self.x.shape[0]

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    @property
    def feature_entries(self) -> int:
        """Numbers that the features hold: all of dense ones, those that are not 0 of sparse ones."""
        return self.x.nnz if isinstance(self.x, SparseMatrix) else self.x.numel()

    @property
    def edge_entries(self) -> int:
        """Entries that the adjacency holds, none of the identity."""
        if isinstance(self.adjacency, Identity):
            return 0
        return self.adjacency.numel() if isinstance(self.adjacency, Tensor) else self.adjacency.nnz

    @property
    def may_hold(self) -> int:
        """Bytes that work on these inputs may take; those in memory set no limit."""
        return sys.maxsize

    @property
    def may_take(self) -> int:
        """Those of them that are left beside what the process and its labels hold, whatever it holds just now."""
        return sys.maxsize

    @cached_property
    def gcn(self) -> Adjacency:
        """``Â = D^-½ (A + I) D^-½``."""
        return self._normalised("gcn")

    @cached_property
    def mean(self) -> Adjacency:
        """``D^-1 A``."""
        return self._normalised("mean")

    @cached_property
    def laplacian(self) -> Adjacency:
        """``-D^-½ A D^-½``."""
        return self._normalised("laplacian")

    def _normalised(self, form: Form) -> Adjacency:
        if form == "gcn":
            return gcn_normalise(self.adjacency)
        neighbours = add_self_loops(self.adjacency) if self.loops else self.adjacency
        return mean_normalise(neighbours) if form == "mean" else scaled_laplacian(neighbours)

    def features(self, form: Form, hops: int = 1) -> Matrix | Chain:
        """``S^hops X`` for the adjacency form ``S``, ready to be multiplied by weights.

        Dense features are propagated once. Sparse ones would fill in, so they stay a chain of
        products that multiplies from the right: ``S (X W)`` costs nnz(S) + nnz(X) per column.
        """
        key = (form, hops)
        if key not in self._propagated:
            self._propagated[key] = self._propagate(form, hops)
        return self._propagated[key]

    def spread(self, base: Tensor | Columns, work: ColumnWork, form: Form = "gcn") -> Tall:
        """What ``work`` makes of ``base`` [n, k], products with the adjacency form S: a tall matrix, or some rows."""
        assert isinstance(base, Tensor)
        return work.by_narrow_groups(narrow(getattr(self, form)), base)

    def folded(self, stream: torch.Generator, *, labelled: int = 0, within: int | None = None) -> Tensor | Columns:
        """The features, dense, or folded where they are too many (:mod:`gcond.linalg.random_projection`)."""
        return projected_features(self.x, stream, labelled=labelled, within=within)

    def by_columns(self, tall: Tall) -> Tensor | Columns:
        """``tall`` in a form that can be gone through by columns."""
        assert isinstance(tall, Tensor)
        return tall

    def around(self, nodes: Tensor, reach: int, precomputed: int = 0) -> tuple[Inputs, Tensor]:
        """No more of the graph than outputs of ``nodes`` that look ``reach`` edges away depend on, and its rows.

        ``precomputed`` of these hops are taken on the features alone, which the rows kept bring along. The rows are
        int64, sorted; it is all of the graph where less would not be worth a copy.
        """
        from gcond.graph.neighbourhood import Neighbourhood, within

        everyone = torch.arange(self.num_nodes, device=nodes.device)
        if not isinstance(self.adjacency, SparseMatrix):
            return self, everyone
        rows = within(self.adjacency, nodes, reach - precomputed)
        return (self, everyone) if len(rows) > MOST_OF_ALL * self.num_nodes else (Neighbourhood(self, rows), rows)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of ``make``, made at the first call with ``key`` and kept; it must depend on the inputs alone."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    @property
    def kept_hops(self) -> set[int]:
        """The hops of what :meth:`features` has made so far and keeps."""
        return {hops for _, hops in self._propagated}

    def _propagate(self, form: Form, hops: int) -> Matrix | Chain:
        operator: Adjacency = getattr(self, form)
        if isinstance(self.x, SparseMatrix):
            if isinstance(operator, Identity):
                scale = operator.scale**hops
                return self.x if scale == 1 else self.x.with_values(scale * self.x.values, symmetric=False)
            return Chain((operator,) * hops, self.x) if hops else self.x
        propagated = self.x
        for _ in range(hops):
            propagated = operator @ propagated
        return propagated

    @cached_property
    def edges(self) -> tuple[Tensor, Tensor]:
        """Target and source of every edge of positive weight and one self-loop per node: int64 [E + n], by target."""
        device = self.x.device
        loops = torch.arange(self.num_nodes, device=device)
        if isinstance(self.adjacency, Identity):
            return loops, loops
        if isinstance(self.adjacency, Tensor):
            present = (self.adjacency > 0).fill_diagonal_(True)
            target, source = present.nonzero(as_tuple=True)
            return target, source
        target, source = self.adjacency.row_index, self.adjacency.indices.long()
        keep = (self.adjacency.values > 0) & (target != source)
        target, source = torch.cat([target[keep], loops]), torch.cat([source[keep], loops])
        order = torch.argsort(target, stable=True)
        return target[order], source[order]

    @cached_property
    def pattern(self) -> Pattern:
        """:attr:`edges` as the pattern of a sparse matrix."""
        return Pattern(*self.edges, self.num_nodes)

    @cached_property
    def edge_mask(self) -> Tensor:
        """0 where :attr:`edges` has an edge and -∞ elsewhere, to be added to scores: float32 [n, n]."""
        mask = torch.full((self.num_nodes, self.num_nodes), -torch.inf, device=self.x.device)
        mask[self.edges] = 0
        return mask

    def detached(self) -> Inputs:
        """The same numbers, without the way back to what X and A were made from."""
        x = self.x.detach() if isinstance(self.x, Tensor) else self.x
        adjacency = self.adjacency if isinstance(self.adjacency, Identity) else self.adjacency.detach()
        return Inputs(x, adjacency, loops=self.loops)

    def to(self, device: torch.device | str) -> Inputs:
        """The same on ``device``, moved once: views that share their inputs here share them there."""
        device = torch.device(device)
        if self.x.device == device:
            return self
        if device not in self._elsewhere:
            self._elsewhere[device] = self._move(device)
        return self._elsewhere[device]

    def _move(self, device: torch.device) -> Inputs:
        adjacency = self.adjacency if isinstance(self.adjacency, Identity) else self.adjacency.to(device)
        return Inputs(self.x.to(device), adjacency, loops=self.loops)


@dataclass(frozen=True)
class Chain:
    """The product ``S … S X`` kept as its factors, multiplied from the right."""

    operators: tuple[Tensor | SparseMatrix, ...]
    x: SparseMatrix

    @property
    def narrow(self) -> Chain:
        """The same, for products with few columns."""
        return Chain(
            tuple(each.narrow if isinstance(each, SparseMatrix) else each for each in self.operators), self.x.narrow
        )

    def __matmul__(self, weight: Tensor) -> Tensor:
        product = self.x @ weight
        for operator in self.operators:
            product = operator @ product
        return product

    def dense(self) -> Tensor:
        """The product itself, [n, d], multiplied from the left: no more than its own rows is filled in."""
        parts = [part.to_scipy() if isinstance(part, SparseMatrix) else part.cpu().numpy() for part in self.operators]
        left = parts[-1]
        for part in reversed(parts[:-1]):
            left = left @ part
        return self._densely(left)

    def rows(self, index: Tensor) -> Tensor:
        """The rows ``index`` (int64 [m]) of :meth:`dense`, the same numbers; where it can be, no others are made."""
        if not all(isinstance(part, SparseMatrix) for part in self.operators):
            return self.dense()[index]
        left, *others = reversed([part.to_scipy() for part in self.operators if isinstance(part, SparseMatrix)])
        left = left[index.cpu().numpy()]
        for part in others:
            left = left @ part
        return self._densely(left)

    def _densely(self, left: Any) -> Tensor:
        """``left @ X``."""
        import scipy.sparse

        whole = left @ self.x.to_scipy()
        return torch.from_numpy(whole.toarray() if scipy.sparse.issparse(whole) else whole).to(self.x.device)
