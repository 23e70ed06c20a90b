"""Class balance: every class's share of the condensed graph, beside its share of the source's labelled nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONDENSED, SOURCE = "#D55E00", "#9aa0a6"
MOST = 60
"""Classes that are drawn, the largest ones; a page is only so long."""


@style.styled
def balance_figure(small: CondensedGraph, source_class_nodes: Sequence[int] | None = None) -> Figure:
    """Two bars for each class, the largest class on top; the numbers beside them are nodes."""
    ours = torch.bincount(small.hard_labels, minlength=small.num_classes).tolist()
    theirs = list(source_class_nodes) if source_class_nodes is not None else None
    if theirs is not None and len(theirs) != len(ours):
        raise GcondError(f"the source has {len(theirs)} classes and the condensed graph {len(ours)}: give its own")
    if theirs is not None and sum(theirs) <= 0:
        theirs = None
    order = sorted(range(len(ours)), key=lambda label: (-(theirs or ours)[label], -ours[label], label))
    shown = order[:MOST]
    names = style.names_of(small)

    series = [("condensed graph", CONDENSED, ours)]
    if theirs is not None:
        series.append(("labelled nodes of the source", SOURCE, theirs))
    thick = 0.8 / len(series)
    inch = 0.30 if len(series) == 1 else 0.40
    figure = style.canvas(f"{style.subject(small)}: class balance", height=1.7 + inch * len(shown))
    axes = figure.add_subplot()
    bars = []
    for place, (_, colour, counts) in enumerate(series):
        share = [100 * counts[label] / sum(counts) for label in shown]
        at = [row + (place - (len(series) - 1) / 2) * thick for row in range(len(shown))]
        bars.append(axes.barh(at, share, height=thick * 0.9, color=colour))
        for y, x, label in zip(at, share, shown, strict=True):
            axes.annotate(
                f"{counts[label]:,}",
                (x, y),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                color=style.INK,
            )
    axes.set_yticks(range(len(shown)), [style.plain(names[label]) for label in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.1)
    axes.grid(axis="x")
    rest = f"; the {len(order) - MOST:,} smallest classes are left out" if len(order) > MOST else ""
    style.percent_axis(axes.xaxis, f"share of nodes, % (number of nodes beside the bar{rest})")
    if len(series) > 1:
        style.legend(
            axes,
            bars,
            [name for name, _, _ in series],
            loc="lower left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0.2,
            ncols=2,
            handlelength=1.2,
        )
    return figure
