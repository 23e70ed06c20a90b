"""Feature transforms: applied once on loading and written down, so that new data can be treated alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import scipy.sparse
import torch
from torch import Tensor

from gcond.linalg.sparse import Matrix, SparseMatrix

# Below this share of non-zeros a sparse product beats a dense one by far (benchmarks/choices.py).
SPARSE_BELOW = 0.1


@dataclass(frozen=True)
class FeatureTransform:
    """A transform that was applied to the raw features, with the statistics needed to do it again."""

    kind: Literal["none", "row-normalise", "standardise"] = "none"
    mean: tuple[float, ...] = ()
    """Training-node mean per feature, for ``standardise``."""
    std: tuple[float, ...] = ()
    """Training-node standard deviation per feature, for ``standardise``; 1 where the feature is constant."""

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **({"mean": self.mean, "std": self.std} if self.kind == "standardise" else {})}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> FeatureTransform:
        return cls(values["kind"], tuple(values.get("mean", ())), tuple(values.get("std", ())))


def row_normalise(x: Matrix) -> tuple[Matrix, FeatureTransform]:
    """Divide every row by its sum, as PyG's ``NormalizeFeatures`` does for counts; an empty row stays."""
    if isinstance(x, SparseMatrix):
        sums = x.row_sums()
        scale = torch.where(sums > 0, 1 / sums, 1.0)
        normalised: Matrix = x.with_values(x.values * scale[x.row_index], symmetric=False)
    else:
        sums = x.sum(1, keepdim=True)
        normalised = x * torch.where(sums > 0, 1 / sums, 1.0)
    return normalised, FeatureTransform("row-normalise")


def standardise(x: Tensor, train: Tensor) -> tuple[Tensor, FeatureTransform]:
    """Zero mean and unit variance by the statistics of the training nodes only, as scikit-learn's scaler."""
    # A few columns at a time: a double copy of all training rows could be larger than the features.
    blocks = (columns[train].double() for columns in x.split(64, dim=1))
    moments = [(block.mean(0), block.std(0, unbiased=False)) for block in blocks]
    mean, std = (torch.cat(parts) for parts in zip(*moments, strict=True))
    std[std < 1e-12] = 1.0
    transform = FeatureTransform("standardise", tuple(mean.tolist()), tuple(std.tolist()))
    return (x - mean.float()) / std.float(), transform


def compact(x: Matrix) -> Matrix:
    """Features in the form that suits them: sparse if they are mostly zero, else dense."""
    rows, columns = x.shape
    if isinstance(x, SparseMatrix):
        return x if x.nnz < SPARSE_BELOW * rows * columns else x.to_dense()
    if torch.count_nonzero(x).item() >= SPARSE_BELOW * rows * columns:
        return x
    return SparseMatrix.from_scipy(scipy.sparse.csr_matrix(x.numpy()))
