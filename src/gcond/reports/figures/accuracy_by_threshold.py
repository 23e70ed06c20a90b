"""Accuracy and density of A' against the threshold δ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.matching.sparsification import shipped_delta
from gcond.reports.figures import style
from gcond.results import ThresholdPoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACCURACY, DENSITY = "#D55E00", "#0072B2"


@style.styled
def threshold_figure(
    points: Sequence[ThresholdPoint], *, small: CondensedGraph | None = None, model: str = "gcn"
) -> Figure:
    """Test accuracy above, share of A' that is left below; ``small`` gives the title and the δ that was shipped."""
    if not points:
        raise GcondError("there is no threshold to draw: give at least one point")
    points = sorted(points, key=lambda point: point.delta)
    deltas = [point.delta for point in points]
    place = range(len(points))
    about = f"{style.subject(small)}: " if small is not None else ""
    figure = style.canvas(f"{about}{'a' if about else 'A'}ccuracy and density against δ", height=5.2)
    above, below = figure.subplots(2, 1, sharex=True)

    trainings = {point.n for point in points}
    spread = [100 * point.std for point in points] if max(trainings) > 1 else None
    above.errorbar(
        place, [100 * point.mean for point in points], spread, color=ACCURACY, marker="o", capsize=3, markersize=5
    )
    style.percent_axis(above.yaxis, f"test accuracy\nof {style.short(model).upper()}, %")
    said = f"mean ± standard deviation of {max(trainings)} trainings" if spread else "one training each"
    above.set_title(said, loc="right", fontsize=9, color=style.FAINT)
    above.margins(y=0.25)

    density = [100 * point.density for point in points]
    below.bar(place, density, width=0.5, color=DENSITY)
    for at, value in zip(place, density, strict=True):
        below.annotate(
            f"{value:.3g} %" if value else "no edges",
            (at, value),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
    style.percent_axis(below.yaxis, "entries left\nin A', %")
    below.set_ylim(0, 1.18 * max(*density, 1e-6, 0))
    shipped = shipped_delta(small) if small is not None else None
    below.set_xticks(list(place), [f"{delta:g}" + ("\n(as saved)" if delta == shipped else "") for delta in deltas])
    below.set_xlabel("threshold δ: entries of A' up to it are dropped")
    for axes in (above, below):
        axes.grid(axis="y")
        axes.set_xlim(-0.6, len(points) - 0.4)
    figure.align_ylabels()
    return figure
