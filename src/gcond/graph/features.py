"""Feature transforms: applied once on loading and written down, so that new data can be treated alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import scipy.sparse
import torch
from torch import Tensor

from gcond.config.registry import suggest
from gcond.errors import GcondError
from gcond.graph.feature_kinds import KINDS, FeatureKind
from gcond.linalg.sparse import Matrix, SparseMatrix, dense, take_rows

# Below this share of non-zeros a sparse product beats a dense one by far (benchmarks/choices.py).
SPARSE_BELOW = 0.1

CONSTANT = 1e-7
"""A deviation below this share of the mean is what rounding to float32 leaves of a column that is constant."""
TINY = torch.finfo(torch.float32).tiny
"""What a sum or length must be above for its inverse to be a float32."""


@dataclass(frozen=True)
class FeatureTransform:
    """A transform that was applied to the raw features, with the statistics needed to do it again."""

    kind: FeatureKind = "none"
    mean: tuple[float, ...] = ()
    """Training-node mean per feature, for ``standardise`` and ``structural``."""
    std: tuple[float, ...] = ()
    """Training-node standard deviation per feature, for the same two; 1 where the feature is constant."""
    scale: tuple[float, ...] = ()
    """What each feature is divided by, for ``unit-columns``."""
    occurrences: tuple[int, ...] = ()
    """In how many rows each feature is not zero, for ``tf-idf``."""
    rows: int = 0
    """Out of how many."""

    def to_json(self) -> dict[str, Any]:
        """The kind, and the statistics that it has."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {key: value for key, value in values.items() if key == "kind" or value}

    @classmethod
    def from_json(cls, values: Any) -> FeatureTransform:
        """Read what :meth:`to_json` gave."""
        if not isinstance(values, dict) or values.get("kind") not in KINDS:
            kind = values.get("kind") if isinstance(values, dict) else values
            raise GcondError(f"the recorded feature transform '{kind!s:.40}' is unknown: this gcond has {_listed()}")
        try:
            numbers = {key: tuple(map(float, values.get(key, ()))) for key in ("mean", "std", "scale")}
            counts = tuple(map(int, values.get("occurrences", ())))
            return cls(values["kind"], **numbers, occurrences=counts, rows=int(values.get("rows", 0)))
        except (TypeError, ValueError):
            raise GcondError(f"the statistics of the recorded transform '{values['kind']}' are damaged") from None

    def apply(self, x: Matrix) -> Matrix:
        """``x``, raw, as this transform makes it, with the statistics that it has; sparse stays sparse where it can."""
        if self.kind == "none":
            return x
        if self.kind == "row-normalise":
            return _scale_rows(x, _row_totals(x))
        if self.kind == "unit-rows":
            return _unit_rows(x)
        if self.kind == "standardise":
            mean, std = self._statistics("mean", x), self._statistics("std", x)
            return (dense(x) - mean) / std
        if self.kind == "unit-columns":
            return _scale_columns(x, 1 / self._statistics("scale", x, torch.float64))
        if self.kind == "tf-idf":
            refuse_negative(x)
            occurrences = self._statistics("occurrences", x, torch.float64)
            return _unit_rows(_scale_columns(x, ((1 + self.rows) / (1 + occurrences)).log() + 1))
        raise GcondError(
            "structural features are made from edges and not from other features: load the graph with them"
        )

    def _statistics(self, name: str, x: Matrix, dtype: torch.dtype = torch.float32) -> Tensor:
        found = getattr(self, name)
        if len(found) != x.shape[1]:
            raise GcondError(
                f"the transform '{self.kind}' was made for {len(found)} features, and there are {x.shape[1]}: "
                "give the features that it was made for, or another transform by name"
            )
        return torch.tensor(found, dtype=torch.float64).to(dtype)


def fit_transform(kind: FeatureKind, x: Matrix, *, seen: Tensor | None, train: Tensor) -> FeatureTransform:
    """The transform ``kind`` of raw features ``x``, with statistics of its own.

    ``seen`` are the nodes that training may look at (all of them if None), ``train`` those of them that have labels.
    """
    if kind == "standardise":
        return standardise(x, train)
    if kind == "unit-columns":
        scale = column_scales(x if seen is None else take_rows(x, seen))
        return FeatureTransform("unit-columns", scale=tuple(scale.tolist()))
    if kind == "tf-idf":
        refuse_negative(x)
        rows = x if seen is None else take_rows(x, seen)
        return FeatureTransform("tf-idf", occurrences=tuple(occurrences(rows).tolist()), rows=rows.shape[0])
    if kind in ("none", "row-normalise", "unit-rows"):
        return FeatureTransform(kind)
    raise GcondError(f"unknown feature transform '{kind}'{suggest(kind, KINDS)}: choose one of {_listed()}")


def standardise(x: Matrix, train: Tensor) -> FeatureTransform:
    """Zero mean and unit variance by the statistics of the training nodes only, as scikit-learn's scaler."""
    moments = [(block.mean(0), block.std(0, unbiased=False)) for block in _double_blocks(x, train)]
    mean, std = (torch.cat(parts) for parts in zip(*moments, strict=True))
    return scaler_of(mean, std)


def scaler_of(mean: Tensor, std: Tensor) -> FeatureTransform:
    """The transform ``standardise`` with these statistics, float64 [d]; a column that is constant stays at its mean."""
    std = torch.where(std <= torch.clamp(CONSTANT * mean.abs(), min=TINY), 1.0, std)
    return FeatureTransform("standardise", tuple(mean.tolist()), tuple(std.tolist()))


def column_scales(x: Matrix) -> Tensor:
    """The root mean square of what is not zero in each column, and 1 where nothing is: float64 [d].

    Words that are there or not have 1 and stay what they are.
    """
    return column_scales_of(squares(x), occurrences(x))


def squares(x: Matrix) -> Tensor:
    """The sum of squares of each column: float64 [d]."""
    if isinstance(x, SparseMatrix):
        total = torch.zeros(x.shape[1], dtype=torch.float64)
        return total.index_add_(0, x.indices.long(), x.values.double().square())
    return torch.cat([columns.double().square_().sum(0) for columns in x.split(_columns_at_a_time(len(x)), dim=1)])


def column_scales_of(total: Tensor, count: Tensor) -> Tensor:
    """:func:`column_scales` of columns with ``total`` sums of squares over ``count`` entries that are not zero."""
    scale = (total / count.clamp(min=1)).sqrt()
    scale[scale < TINY] = 1.0
    return scale


def has_negative(x: Matrix) -> bool:
    """Whether an entry is below zero."""
    values = x.values if isinstance(x, SparseMatrix) else x
    return values.numel() > 0 and bool(values.min() < 0)


def compact(x: Matrix) -> Matrix:
    """Features in the form that suits them: sparse if they are mostly zero, else dense."""
    rows, columns = x.shape
    if isinstance(x, SparseMatrix):
        return x if x.nnz < SPARSE_BELOW * rows * columns else x.to_dense()
    if torch.count_nonzero(x).item() >= SPARSE_BELOW * rows * columns:
        return x
    return SparseMatrix.from_scipy(scipy.sparse.csr_matrix(x.numpy()))


def _listed() -> str:
    return ", ".join(KINDS)


def _columns_at_a_time(rows: int) -> int:
    """Columns that may be copied as doubles: 64, or as few as 64 MB hold."""
    return max(1, min(64, 2**23 // max(1, rows)))


def _double_blocks(x: Matrix, rows: Tensor) -> Iterator[Tensor]:
    """Some rows as doubles, a few columns at a time: such a copy of all of them could be larger than the features."""
    width = _columns_at_a_time(len(rows))
    if isinstance(x, SparseMatrix):
        index = rows.nonzero().squeeze(1) if rows.dtype == torch.bool else rows
        chosen = x.rows(index).to_scipy().tocsc()
        for start in range(0, x.shape[1], width):
            yield torch.from_numpy(chosen[:, start : start + width].toarray()).double()
    else:
        for columns in x.split(width, dim=1):
            yield columns[rows].double()


def occurrences(x: Matrix) -> Tensor:
    """In how many rows each column is not zero: int64 [d]."""
    if isinstance(x, SparseMatrix):
        return torch.bincount(x.indices[x.values != 0], minlength=x.shape[1])
    return torch.count_nonzero(x, dim=0)


def _row_totals(x: Matrix) -> Tensor:
    """Sums of absolute values [N]: of counts the plain sums, and never near zero where entries are not."""
    if isinstance(x, SparseMatrix):
        return x.with_values(x.values.abs(), symmetric=False).row_sums()
    return x.abs().sum(1)


def _unit_rows(x: Matrix) -> Matrix:
    if isinstance(x, SparseMatrix):
        lengths = x.with_values(x.values.double().square(), symmetric=False).row_sums().sqrt().float()
    else:
        lengths = torch.linalg.vector_norm(x, dim=1, dtype=torch.float64).float()
    return _scale_rows(x, lengths)


def _scale_rows(x: Matrix, totals: Tensor) -> Matrix:
    """Every row divided by its total; an empty row stays."""
    scale = torch.where(totals > TINY, 1 / totals, 1.0)
    if isinstance(x, SparseMatrix):
        return x.with_values(x.values * scale[x.row_index], symmetric=False)
    return x * scale[:, None]


def _scale_columns(x: Matrix, scale: Tensor) -> Matrix:
    """Every column times a number, which is float64, so that neither large nor small ones leave what float32 holds."""
    if isinstance(x, SparseMatrix):
        return x.with_values((x.values * scale[x.indices.long()]).float(), symmetric=False)
    return torch.cat([(x[:, at : at + 64] * scale[at : at + 64]).float() for at in range(0, x.shape[1], 64)], dim=1)


def refuse_negative(x: Matrix) -> None:
    if has_negative(x):
        raise GcondError(
            "tf-idf weighs counts, and some features are negative: choose standardise or unit-rows instead"
        )
