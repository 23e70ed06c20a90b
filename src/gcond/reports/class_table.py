"""Accuracy class by class, and where there are many classes the worst of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gcond.condensed import ClassMetrics
from gcond.reports.display_names import class_labels
from gcond.reports.tables import Table, known, percent

MOST = 20
"""Classes that are all shown; of more, the worst half as many are."""


def class_table(columns: Mapping[str, ClassMetrics | None], names: Sequence[str] = (), title: str = "") -> Table | None:
    """A row for each class, called by ``names``, and a column for each thing measured; ``None`` where nothing was.

    Of more than :data:`MOST` classes those are shown that the first column is worst at.
    """
    found = {heading: metrics.class_accuracy for heading, metrics in columns.items() if metrics is not None}
    if not found:
        return None
    first = next(iter(found.values()))
    labels = class_labels(names, len(first))
    order = list(range(len(first)))
    if len(first) > MOST:
        order = sorted((place for place in order if first[place] is not None), key=lambda place: first[place] or 0.0)
        order = order[: MOST // 2]
        title = f"{title}, the {len(order)} worst of {len(first)}" if title else f"{len(order)} worst of {len(first)}"
    rows = tuple((labels[place], *(known(shares[place], percent) for shares in found.values())) for place in order)
    return Table(("class", *found), rows, title)
