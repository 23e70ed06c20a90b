"""The course of a search for hyper-parameters: what every configuration reached, and the best so far."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from gcond.errors import GcondError
from gcond.reports.figures import style
from gcond.reports.tables import seconds
from gcond.results import Tuning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FULL, GIVEN_UP, BEST, USUAL = "#0072B2", "#9aa0a6", "#D55E00", "#009E73"


@style.styled
def tuning_figure(found: Tuning) -> Figure:
    """A dot for each configuration in the order in which they were drawn, and a line for the best so far."""
    tried = [(trial, 100 * trial.val) for trial in found.trials if trial.val is not None]
    complete = [(trial.number, value) for trial, value in tried if trial.state == "complete"]
    if not complete:
        raise GcondError("the search has no configuration that was fully trained yet: there is nothing to draw")
    name = style.heading(found.source.name)
    models = style.short(", ".join(model.upper() for model in found.models))
    where = "the whole graph" if found.condensed is None else f"{found.condensed.nodes:,} condensed nodes"
    figure = style.canvas(f"{name}: {len(found.trials):,} configurations of {models} on {where}", height=4.4)
    axes = figure.add_subplot()
    given_up = [(trial.number, value) for trial, value in tried if trial.state == "pruned"]
    usual = [(trial.number, value) for trial, value in tried if trial.usual]
    dots: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 5}
    handles = []
    for points, label, look in (
        (given_up, "given up on the way", {**dots, "color": GIVEN_UP, "markerfacecolor": "none"}),
        (complete, "fully trained", {**dots, "color": FULL}),
        (usual, "usual configuration", {**dots, "color": USUAL, "marker": "s", "markersize": 7}),
    ):
        if points:
            handles += axes.plot(*zip(*points, strict=True), label=label, zorder=3, **look)
    best = list(accumulate((value for _, value in complete), max))
    ends = [number for number, _ in complete], best
    handles += axes.step(
        [*ends[0], found.trials[-1].number], [*ends[1], best[-1]], where="post", color=BEST, label="best so far"
    )
    style.percent_axis(axes.yaxis, f"validation {found.metric}, %")
    axes.set_xlabel("configuration, in the order drawn")
    axes.set_title(f"{seconds(found.search_cpu_seconds)} of CPU time", loc="left", color=style.INK)
    low = min(best[0], *(value for _, value in complete))
    axes.set_ylim(low - 0.35 * max(1.0, best[-1] - low) - 1, None)  # what was given up early may lie far below
    axes.grid(axis="y")
    style.legend(figure, handles, [str(handle.get_label()) for handle in handles], loc="outside lower center", ncols=4)
    return figure
