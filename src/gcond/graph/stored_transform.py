"""Feature transforms of stored features: statistics by blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gcond.graph.feature_kinds import FeatureKind
from gcond.graph.features import (
    FeatureTransform,
    column_scales_of,
    fit_transform,
    has_negative,
    occurrences,
    refuse_negative,
    scaler_of,
    squares,
)
from gcond.graph.stored_features import StoredFeatures
from gcond.linalg.sparse import dense, take_rows


def fit_stored(kind: FeatureKind, features: StoredFeatures, train: Tensor) -> FeatureTransform:
    """The transform ``kind`` of raw stored features, as :func:`~gcond.graph.features.fit_transform` makes it.

    ``train`` (bool [N]) are the training nodes; all nodes may be seen, since a stored graph is used transductively.
    """
    width = features.shape[1]
    if kind == "standardise":
        nodes = float(train.sum())
        mean = sum((rows.sum(0) for rows in _doubles(features, train)), torch.zeros(width, dtype=torch.float64)) / nodes
        spread = ((rows - mean).square().sum(0) for rows in _doubles(features, train))
        return scaler_of(mean, (sum(spread, torch.zeros(width, dtype=torch.float64)) / nodes).sqrt())
    if kind in ("unit-columns", "tf-idf"):
        total, count = column_sums(features, counts=kind == "tf-idf")
        if kind == "tf-idf":
            return FeatureTransform("tf-idf", occurrences=tuple(count.tolist()), rows=features.shape[0])
        return FeatureTransform("unit-columns", scale=tuple(column_scales_of(total, count).tolist()))
    return fit_transform(kind, torch.empty(0, width), seen=None, train=train)  # the others have no statistics


def column_sums(features: StoredFeatures, *, counts: bool = False) -> tuple[Tensor, Tensor]:
    """Of each column the sum of squares, float64 [d], and the entries that are not zero, int64 [d].

    Of ``counts`` none may be negative.
    """
    width = features.shape[1]
    count, total = torch.zeros(width, dtype=torch.long), torch.zeros(width, dtype=torch.float64)
    for _, rows in features.raw_matrices():
        if counts:
            refuse_negative(rows)
        count += occurrences(rows)
        total += squares(rows)
    return total, count


def any_negative(features: StoredFeatures) -> bool:
    """Whether an entry is below zero."""
    return any(has_negative(rows) for _, rows in features.raw_matrices())


def _doubles(features: StoredFeatures, train: Tensor) -> Iterator[Tensor]:
    """Training rows, block by block: float64 [b, d]."""
    for where, rows in features.raw_matrices(whole=True):
        yield dense(take_rows(rows, train[where].nonzero().squeeze(1))).double()
