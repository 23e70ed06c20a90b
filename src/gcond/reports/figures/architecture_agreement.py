"""Architecture search: what each architecture reaches on the condensed graph against what it reaches on the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gcond.errors import GcondError
from gcond.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS, CONDENSED, WHOLE = "#0072B2", "#D55E00", "#009E73"


@style.styled
def architectures_figure(nas: Mapping[str, Any]) -> Figure:
    """Draw what ``nas.json`` holds: a dot an architecture, the two winners marked."""
    tried: Sequence[Mapping[str, Any]] = [
        row for row in nas["architectures"] if row["condensed"] is not None and row.get("whole") is not None
    ]
    if not tried:
        raise GcondError("the search has no architecture that was trained on both graphs: there is nothing to draw")
    across = [100 * row["condensed"] for row in tried]
    up = [100 * row["whole"] for row in tried]
    name, model = style.heading(nas["source"]["name"]), style.short(str(nas["model"])).upper()
    figure = style.canvas(
        f"{name}: {len(tried):,} {model} architectures, condensed graph against whole graph", height=5.6
    )
    axes = figure.add_subplot()
    axes.scatter(across, up, s=26 if len(tried) < 200 else 16, color=DOTS, alpha=0.55, linewidths=0, zorder=2)
    nodes = nas.get("condensed", {}).get("nodes")
    on = f"the condensed graph ({nodes:,} nodes)" if isinstance(nodes, int) else "the condensed graph"
    style.percent_axis(axes.xaxis, style.plain(f"validation accuracy after training on {on}, %"))
    style.percent_axis(axes.yaxis, "validation accuracy after training\non the whole graph, %")
    axes.grid()
    axes.margins(0.08)
    found = [
        f"{label} correlation {nas[key]:.2f}"
        for label, key in (("Pearson", "pearson"), ("Spearman", "spearman"))
        if nas.get(key) is not None
    ]
    axes.set_title(" · ".join(found), loc="left", color=style.INK)

    from matplotlib.lines import Line2D

    handles, words = [Line2D([], [], linestyle="none", marker="o", color=DOTS, alpha=0.55, markersize=5)], []
    words.append("one architecture")
    for side, colour, marker in (("condensed", CONDENSED, "D"), ("whole", WHOLE, "s")):
        winner = nas.get("winners", {}).get(side)
        row = next((row for row in tried if winner and row["settings"] == winner["settings"]), None)
        if winner is None or row is None:
            continue
        axes.plot(
            100 * row["condensed"],
            100 * row["whole"],
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
        spread = f" ± {100 * winner['std']:.1f}" if winner["n"] > 1 else ""
        words.append(f"best on the {side} graph: test accuracy {100 * winner['mean']:.1f}{spread} %")
    style.legend(figure, handles, words, loc="outside lower center", ncols=1, handletextpad=0.4)
    return figure
