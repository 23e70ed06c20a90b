"""The condensed graph itself: nodes by class, strong edges black and light ones grey."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from gcond.condensed import CondensedGraph
from gcond.condensed.graph_picture import joined_pairs
from gcond.graph.force_layout import sunflower
from gcond.matching.sparsification import shipped_delta, shrinks, thresholded
from gcond.reports.figures import style
from gcond.runtime.seeds import generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[np.float64]

STRONG_EDGE = 0.5
"""Heavier edges are black, as in the paper's figure of condensed graphs; of the heaviest, where that is above 1."""
MOST_ON_A_RING = 12
"""With more classes the ring would be mostly its own empty middle, and they are packed instead."""
MOST_VECTORS = 4000
"""More edges become one picture within an SVG, which would be too large to open otherwise."""
ROUNDS = 30
"""Of moving nodes towards their neighbours, at most; hardly anything moves after about twenty."""
MOST_MOVES = 8000
"""Of nodes in all rounds: an assignment takes time with the cube of a class."""


@style.styled
def graph_figure(small: CondensedGraph, *, delta: float | None = None, seed: int = 0) -> Figure:
    """Draw ``small`` with its classes apart and its nodes close to what they are joined with.

    Edges heavier than :data:`STRONG_EDGE` are black, others grey, darker and wider with their weight; where merged
    edges make weights above 1, it is a share of the heaviest. With ``delta``, A' is thresholded there instead of where
    it was saved (:func:`gcond.matching.sparsification.thresholded`).
    """
    shown = small if delta is None else thresholded(small, delta)
    labels = shown.hard_labels.numpy()
    ends, stored = joined_pairs(shown)
    weight = stored.astype(np.float64)
    border = STRONG_EDGE * max(1.0, float(weight.max(initial=0)))
    centres, radii = _places_of_classes(np.bincount(labels, minlength=shown.num_classes))
    position = layout(labels, ends, weight, centres, seed)

    count = shown.statistics.edges
    what = "no edges" if count == 0 else f"{count:,} edge{'s' if count != 1 else ''}"
    figure = style.canvas(f"{style.subject(small)}: {what}", height=6.6)
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.set_axis_off()
    extent = _name_classes(axes, style.names_of(shown), centres, radii)
    _draw_edges(axes, position, ends, weight, border)
    _draw_nodes(axes, position, labels, points_apart=5.8 * 72 / extent)
    lowest = 0.0 if shrinks(small) else delta if delta is not None else shipped_delta(small) or 0.0
    _explain_edges(figure, shown, weight, lowest, border)
    return figure


def layout(
    labels: NDArray[np.int64], ends: NDArray[np.int64], weight: NDArray[np.float64], centres: Points, seed: int = 0
) -> Points:
    """A place [n, 2] for every node: the nodes of a class share a disc around its centre, one unit apart.

    A force layout of a graph this sparse scatters the nodes without edges and piles up the others. Here the places of
    a class are fixed, so that no two nodes ever overlap, and only who has which is chosen: in turns, each class is
    assigned to its places such that its nodes are close to the weighted means of their neighbours.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import coo_array

    n = len(labels)
    slots = np.empty((n, 2))
    members = [np.flatnonzero(labels == label) for label in range(len(centres))]
    shuffled = torch.randperm(n, generator=generator(seed, "layout")).numpy()
    for label, nodes in enumerate(members):
        order = nodes[np.argsort(shuffled[nodes])]
        slots[order] = centres[label] + sunflower(len(nodes))
    both = np.concatenate([ends, ends[:, ::-1]])
    near = coo_array((np.concatenate([weight, weight]), (both[:, 0], both[:, 1])), shape=(n, n)).tocsr()
    degree = near.sum(1)
    for _ in range(min(ROUNDS, 1 + MOST_MOVES // n) if len(weight) else 0):
        before = slots.copy()
        for nodes in members:
            if len(nodes) < 2:
                continue
            heavy = np.maximum(degree[nodes], 1e-12)[:, None]
            wanted = (near[nodes] @ slots) / heavy
            cost = ((wanted[:, None] - slots[nodes][None]) ** 2).sum(2)
            cost[degree[nodes] == 0] = 0  # those without edges take what is left
            rows, columns = linear_sum_assignment(cost)
            slots[nodes[rows]] = slots[nodes][columns]
        if np.array_equal(before, slots):
            break
    return slots


def _places_of_classes(counts: NDArray[np.int64]) -> tuple[Points, NDArray[np.float64]]:
    """Centre and radius of the disc of every class, no two of which touch."""
    radii = 0.6 * np.sqrt(np.maximum(counts, 1)) + 0.6
    classes = len(counts)
    if classes == 1:
        return np.zeros((1, 2)), radii
    if classes > MOST_ON_A_RING:
        return pack(radii + 1.0), radii  # with room for a name below each
    room = radii + 0.4
    share = np.cumsum(room) - room / 2
    angle = math.pi / 2 - 2 * math.pi * (share - share[0]) / room.sum()  # from the top, clockwise
    apart = np.abs(2 * np.sin((angle[:, None] - angle[None]) / 2))
    pairs = np.triu_indices(classes, 1)
    ring = float(np.max((room[:, None] + room[None])[pairs] / apart[pairs]))
    return ring * np.stack([np.cos(angle), np.sin(angle)], 1), radii


def pack(radii: NDArray[np.float64]) -> Points:
    """Centres [C, 2] of discs of ``radii`` that lie close together without overlapping."""
    centres = 2.2 * radii.max() * sunflower(len(radii))
    reach = radii[:, None] + radii[None]
    np.fill_diagonal(reach, 0)
    for step in range(600):
        centres *= 0.98 if step < 500 else 1.0  # inwards at first, then only apart
        gap = centres[:, None] - centres[None]
        distance = np.sqrt((gap**2).sum(2)) + 1e-9
        push = np.maximum(reach - distance, 0) / distance / 2
        centres += (push[:, :, None] * gap).sum(1) * 0.5
    gap = centres[:, None] - centres[None]
    distance = np.sqrt((gap**2).sum(2))
    pairs = np.triu_indices(len(radii), 1)
    return centres * max(1.0, float((reach[pairs] / np.maximum(distance[pairs], 1e-9)).max()))


def _name_classes(axes: Axes, names: list[str], centres: Points, radii: NDArray[np.float64]) -> float:
    """Write its name beside each disc and set the limits of the axes; gives what their height has to hold."""
    from matplotlib.patheffects import withStroke

    ring = len(names) <= MOST_ON_A_RING
    low, high = (centres - radii[:, None]).min(0), (centres + radii[:, None]).max(0)
    extent = float((high - low).max())
    letters = max(len(line) for name in names for line in textwrap.wrap(name, 14))
    # Names go beside a ring, and take about 1.3 % of its width per letter; elsewhere they are within.
    across_room, up_room = (extent * (0.02 + 0.013 * letters), extent * 0.07) if ring else (0.0, extent * 0.03)
    size = 10 if ring else 8
    if not ring:
        names = [name.removeprefix("class ") for name in names]
    halo = [withStroke(linewidth=2.5, foreground="white")]
    for name, centre, radius in zip(names, centres, radii, strict=True):
        direction = centre / np.linalg.norm(centre) if ring and len(names) > 1 else np.array([0.0, -1.0])
        x, y = centre + direction * radius
        across, up = direction
        axes.annotate(
            style.plain("\n".join(textwrap.wrap(name, 14)) if ring else style.short(name, 12)),
            (x, y),
            xytext=tuple((3 if ring else 0) * direction),
            textcoords="offset points",
            ha="center" if abs(across) < 0.35 else ("left" if across > 0 else "right"),
            va="center" if abs(up) < 0.35 else ("bottom" if up > 0 else "top"),
            fontsize=size,
            color=style.INK,
            zorder=4,
            path_effects=halo,
        )
    axes.set_xlim(low[0] - across_room, high[0] + across_room)
    axes.set_ylim(low[1] - up_room, high[1] + up_room)
    return max(float(high[1] - low[1]) + 2 * up_room, (float(high[0] - low[0]) + 2 * across_room) * 0.8)


def _draw_edges(
    axes: Axes, position: Points, ends: NDArray[np.int64], weight: NDArray[np.float64], border: float
) -> None:
    from matplotlib.collections import LineCollection

    if len(weight) == 0:
        return
    order = np.argsort(weight, kind="stable")  # heavy ones on top
    weight, lines = weight[order], position[ends[order]]
    strong = weight > border
    crowd = min(1.0, math.sqrt(500 / len(weight)))  # many edges have to be thin and clear
    share = _share(weight, border)
    grey = 0.72 - 0.32 * share
    colours = np.where(strong[:, None], 0.0, grey[:, None]) * np.ones((1, 3))
    alpha = np.where(strong, max(0.35, crowd), max(0.1, crowd))
    width = np.where(strong, 1.4, 0.6 + 0.8 * share) * max(0.4, crowd)
    drawn = LineCollection(list(lines), colors=np.column_stack([colours, alpha]), linewidths=width, zorder=1)
    drawn.set_rasterized(len(weight) > MOST_VECTORS)
    axes.add_collection(drawn)


def _share(weight: NDArray[np.float64], border: float) -> NDArray[np.float64]:
    """Where light edges stand among themselves, 0 to 1: where all weights are light, some are stronger still."""
    light = weight[weight <= border]
    if len(light) == 0:
        return np.ones_like(weight)
    low, high = light.min(), max(light.max(), light.min() + 1e-12)
    return np.clip((weight - low) / (high - low), 0, 1) ** 0.5


def _draw_nodes(axes: Axes, position: Points, labels: NDArray[np.int64], points_apart: float) -> None:
    diameter = min(0.75 * points_apart, 15)
    for label in np.unique(labels):
        colour, marker = style.look(int(label))
        x, y = position[labels == label].T
        axes.scatter(
            x, y, s=diameter**2, c=colour, marker=marker, edgecolors=style.INK, linewidths=0.05 * diameter, zorder=3
        )


def _explain_edges(
    figure: Figure, small: CondensedGraph, weight: NDArray[np.float64], lowest: float, border: float
) -> None:
    from matplotlib.lines import Line2D

    strong = int((weight > border).sum())
    # A pair that is joined both ways is one line, and two edges of a directed graph.
    what = "edge" if small.statistics.edges == len(weight) else "joined pair"
    light, made = len(weight) - strong, small.provenance
    said: dict[str, str] = {}
    if strong:
        said[f"{what} heavier than {border:.3g} ({strong:,})"] = "black"
    if light:
        said[f"{what} of weight {lowest:g} to {border:.3g}, darker if heavier ({light:,})"] = "0.5"
    if not len(weight):
        said["each node is trained on by itself (A' = I)"] = "none"
    if made is not None and made.directed and len(weight):
        said["edges have directions, which are not drawn"] = "none"
    if small.num_classes > MOST_ON_A_RING and not (made and made.class_names):
        said["numbers are classes"] = "none"
    handles = [Line2D([], [], color=colour, linewidth=1.6) for colour in said.values()]
    style.legend(figure, handles, list(said), loc="outside lower center", ncols=2, handlelength=1.6)
