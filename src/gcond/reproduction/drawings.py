"""Pictures of those of the paper's experiments that are rather looked at than read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gcond.evaluation.threshold_sweep import DELTAS
from gcond.results import ReproducedRow, Reproduction, RunFolder, ThresholdPoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(report: Reproduction, folder: Path) -> list[Path]:
    """Pictures of ``report`` beside its tables in ``folder``, one per data set; none for most tables."""
    from gcond.reports.figures import save_figure

    name = report.table
    written = []
    for dataset in report.datasets if name in _MAKERS else ():
        for figure in _MAKERS[name](folder / dataset, report.of(dataset)):
            written.append(folder / f"{name}-{dataset}.png")
            save_figure(figure, written[-1])
    return written


def threshold_points(rows: Sequence[ReproducedRow]) -> list[ThresholdPoint]:
    """The rows of :func:`~.accuracy_tables.sparsification`, which are in order of δ, as points of a curve."""
    points = []
    for delta, row in zip(DELTAS, rows, strict=True):
        density = row.labels[1].removesuffix(" %")
        if row.ours is not None and density:
            mean, std = row.ours.mean / 100, (row.ours.std or 0) / 100
            points.append(ThresholdPoint(delta, float(density) / 100, mean, std, row.n))
    return points


def _thresholds(_: Path, rows: Sequence[ReproducedRow]) -> Iterator[Figure]:
    from gcond.reports.figures.accuracy_by_threshold import threshold_figure

    if points := threshold_points(rows):
        yield threshold_figure(points)


def _search(folder: Path, _: Sequence[ReproducedRow]) -> Iterator[Figure]:
    from gcond.reports.figures.architecture_agreement import architectures_figure

    if (found := RunFolder(folder).search()) is not None:
        yield architectures_figure(found)


_MAKERS: dict[str, Callable[[Path, Sequence[ReproducedRow]], Iterator[Figure]]] = {
    "sparsification": _thresholds,
    "nas": _search,
}
