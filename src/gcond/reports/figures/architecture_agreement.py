"""Architecture search: what each architecture reaches on the condensed graph against what it reaches on the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcond.errors import GcondError
from gcond.reports.figures import style
from gcond.reports.tables import accuracy
from gcond.results import SIDES, Search

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS, CONDENSED, WHOLE = "#0072B2", "#D55E00", "#009E73"


@style.styled
def architectures_figure(search: Search) -> Figure:
    """A dot for each architecture, the two winners marked."""
    tried = search.architectures
    if not tried:
        raise GcondError("the search has no architecture that was trained on both graphs: there is nothing to draw")
    name, model = style.heading(search.source.name), style.short(search.model).upper()
    figure = style.canvas(
        f"{name}: {len(tried):,} {model} architectures, condensed graph against whole graph", height=5.6
    )
    axes = figure.add_subplot()
    across, up = [100 * one.condensed for one in tried], [100 * one.whole for one in tried]
    axes.scatter(across, up, s=26 if len(tried) < 200 else 16, color=DOTS, alpha=0.55, linewidths=0, zorder=2)
    on = f"the condensed graph ({search.condensed.nodes:,} nodes)"
    style.percent_axis(axes.xaxis, f"validation accuracy after training on {on}, %")
    style.percent_axis(axes.yaxis, "validation accuracy after training\non the whole graph, %")
    axes.grid()
    axes.margins(0.08)
    correlations = {"Pearson": search.pearson, "Spearman": search.spearman}
    found = [f"{label} correlation {value:.2f}" for label, value in correlations.items() if value is not None]
    axes.set_title(" · ".join(found), loc="left", color=style.INK)

    from matplotlib.lines import Line2D

    handles, words = [Line2D([], [], linestyle="none", marker="o", color=DOTS, alpha=0.55, markersize=5)], []
    words.append("one architecture")
    for side, colour, marker in zip(SIDES, (CONDENSED, WHOLE), ("D", "s"), strict=True):
        winner = search.winners.get(side)
        chosen = next((one for one in tried if winner and one.settings == winner.settings), None)
        if winner is None or chosen is None:
            continue
        axes.plot(
            100 * chosen.condensed,
            100 * chosen.whole,
            marker,
            color="none",
            markeredgecolor=colour,
            markeredgewidth=2.2,
            markersize=11 if side == "condensed" else 14,
            zorder=4,
        )
        handles.append(
            Line2D([], [], linestyle="none", marker=marker, color="none", markeredgecolor=colour, markeredgewidth=2)
        )
        words.append(f"best on the {side} graph: test accuracy {accuracy(winner.mean, winner.spread)} %")
    style.legend(figure, handles, words, loc="outside lower center", ncols=1, handletextpad=0.4)
    return figure
