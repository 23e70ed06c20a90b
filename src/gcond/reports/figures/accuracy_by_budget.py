"""Accuracy against budget: a line for each method, with the whole graph above."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gcond.errors import GcondError
from gcond.reports.figures import style
from gcond.results import Comparison, Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@style.styled
def budget_figure(comparison: Comparison) -> Figure:
    """A panel for each test model, budgets side by side in their order."""
    lines = comparison.lines
    reduced = [line for line in lines if not line.is_whole]
    if not reduced:
        raise GcondError("the comparison has no condensed graph in it: there is no budget to draw against")
    models = list(dict.fromkeys(line.model for line in reduced))
    methods = list(dict.fromkeys(line.method for line in reduced))
    budgets = sorted({(line.nodes, line.ratio) for line in reduced})
    columns = min(2, len(models))
    rows = -(-len(models) // columns)
    title = f"{style.heading(comparison.source.name)}: test accuracy against the size of the condensed graph"
    figure = style.canvas(title, height=(1.0 + 3.2 * rows) if columns == 1 else (1.2 + 2.7 * rows))
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, model in zip(panels, models, strict=False):
        mine = [line for line in lines if line.model == model]
        _panel(axes, mine, methods, budgets)
        axes.set_title(style.plain(style.short(model).upper()) if len(models) > 1 else "", loc="left")
        what = "test accuracy, %" if len(models) > 1 else f"test accuracy of {style.short(model).upper()}, %"
        style.percent_axis(axes.yaxis, style.plain(what))
    for axes in figure.axes[len(models) :]:
        axes.set_visible(False)
    bars = "   |   bars: standard deviation" if any(line.n > 1 for line in reduced) else ""
    figure.supxlabel(f"nodes of the condensed graph (share of the source){bars}", fontsize=10, color=style.INK)
    return figure


def _deviation(line: Line) -> float:
    """In per cent; none to draw of a single training."""
    return math.nan if line.spread is None else 100 * line.spread


def _panel(axes: Axes, lines: Sequence[Line], methods: Sequence[str], budgets: Sequence[tuple[int, float]]) -> None:
    ends: list[tuple[float, float, str, str]] = []
    axes.set_xlim(-0.5, len(budgets) - 0.5)
    for whole in (line for line in lines if line.is_whole):
        mean, std = 100 * whole.mean, _deviation(whole)
        if not math.isnan(std):
            axes.axhspan(mean - std, mean + std, color="0.88", zorder=0)
        axes.axhline(mean, color="0.35", linestyle=(0, (4, 3)), linewidth=1.4, zorder=1)
        ends.append((1, mean, f"whole graph {mean:.1f}", "0.25"))
    step = min(0.08, 0.6 / len(methods))
    for place, method in enumerate(methods):
        mine = sorted(
            (line for line in lines if line.method == method and not line.is_whole),
            key=lambda line: line.nodes,
        )
        if not mine:
            continue
        colour = style.LINES[place % len(style.LINES)]
        shift = step * (place - (len(methods) - 1) / 2)
        means = [100 * line.mean for line in mine]
        axes.errorbar(
            [budgets.index((line.nodes, line.ratio)) + shift for line in mine],
            means,
            [_deviation(line) for line in mine],
            color=colour,
            marker=style.MARKERS[place % len(style.MARKERS)],
            markersize=6,
            capsize=2.5,
            elinewidth=1.2,
            linestyle="-" if place < len(style.LINES) else "--",
            zorder=3,
        )
        ends.append((1, means[-1], f"{style.short(method, 18)} {means[-1]:.1f}", colour))
    axes.set_xticks(range(len(budgets)), [f"{nodes:,}\n({100 * ratio:.2g} %)" for nodes, ratio in budgets])
    axes.grid(axis="y")
    axes.margins(y=0.08)
    style.end_labels(axes, ends, size=9 if len(ends) < 8 else 8)
