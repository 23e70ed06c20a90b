"""The style of all figures: sizes, colours that colour-blind readers can tell apart, and words as they are drawn."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.graph.class_colours import COLOURS
from gcond.reports.display_names import class_labels, clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from gcond.graph import SourceGraph

P = ParamSpec("P")

WIDTH = 7.4
"""Inches: at 160 dots each, text of 10 points is as large as a README's own when shown at its width."""
DPI = 160
INK, FAINT, HAIR = "#222222", "#5f6368", "#d9dce0"
"""Text and axes, what is said aside, and grid lines."""

# page.js has the same shapes in the same order.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
LINES = ("#D55E00", "#0072B2", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#7A5195", "#222222")
"""For lines on white, where the yellow above would be lost."""

SETTINGS: Mapping[str, Any] = {
    "font.family": ["DejaVu Sans"],  # matplotlib brings it along, so that figures are the same everywhere
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": HAIR,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "svg.fonttype": "path",  # the same letters in the same places, whatever fonts a reader has
}


@contextmanager
def applied(**more: Any) -> Iterator[None]:
    """Matplotlib with our settings and nobody else's, put back afterwards."""
    require()
    import matplotlib as mpl

    own: dict[Any, Any] = {key: value for key, value in mpl.rcParamsDefault.items() if not key.startswith("backend")}
    own |= {**SETTINGS, **more}
    with mpl.rc_context(own):
        yield


def styled(make: Callable[P, Figure]) -> Callable[P, Figure]:
    """A function that makes a figure, under :func:`applied`."""

    @functools.wraps(make)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with applied():
            return make(*args, **kwargs)

    return wrapper


def require(package: str = "matplotlib") -> None:
    """Refuse with the way out where the extra is not installed."""
    import importlib

    try:
        importlib.import_module(package)
    except ImportError:
        raise GcondError(f"figures need {package}, which is not installed: pip install 'gcond[report]'") from None


def canvas(title: str, *, height: float, width: float = WIDTH) -> Figure:
    """An empty figure with its ``title`` (plain text) at the top left, without any state of pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    FigureCanvasAgg(figure)
    lines = textwrap.wrap(one_line(title), int(width * 9.6)) or [""]
    figure.suptitle(plain("\n".join(lines)), x=0.012, ha="left", fontsize=12, fontweight="bold")
    figure.set_label(one_line(title))  # what a screen reader says, see svg_text
    return figure


def one_line(text: str) -> str:
    """``text`` on one line, without what XML cannot hold."""
    return " ".join(clean(text).split())


def plain(text: str) -> str:
    """``text`` to be drawn letter for letter: matplotlib takes what is between two ``$`` for mathematics."""
    return text.replace("$", r"\$")


def short(text: str, most: int = 26) -> str:
    """``text``, cleaned and cut to ``most`` letters."""
    text = one_line(text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def legend(axes: Axes | Figure, handles: Sequence[Any], labels: Sequence[str], **options: Any) -> Legend:
    """A legend whose ``labels`` (plain text) may start with ``_``, which matplotlib would leave out."""
    drawn = axes.legend(handles, [str(place) for place in range(len(labels))], **options)
    for text, label in zip(drawn.get_texts(), labels, strict=True):
        text.set_text(plain(label))
    return drawn


def look(label: int) -> tuple[str, str]:
    """Colour and marker of class ``label``: different for the first 56."""
    return COLOURS[label % len(COLOURS)], MARKERS[label // len(COLOURS) % len(MARKERS)]


def names_of(small: CondensedGraph, source: SourceGraph | None = None) -> list[str]:
    """The names of the classes of ``small``, short enough to be drawn; as ``source`` calls them, if that is known."""
    made = small.provenance
    known = (source.class_names if source is not None else ()) or (made.class_names if made is not None else ())
    count = max(small.num_classes, source.num_classes if source is not None else 0)
    return [short(label) for label in class_labels(known, count)]


def subject(small: CondensedGraph) -> str:
    """``Cora condensed to 70 nodes by gcond``."""
    made = small.provenance
    nodes = f"{small.num_nodes:,} node{'s' if small.num_nodes != 1 else ''}"
    if made is None:
        return f"Condensed graph of {nodes}"
    return f"{heading(made.source.get('name', 'a graph'))} condensed to {nodes} by {short(made.method)}"


def heading(name: str) -> str:
    """A source's name as the first word of a title; names that are more than a word are left as they are."""
    name = short(name, 40)
    return name.capitalize() if name.isalpha() and name.islower() else name


def percent_axis(axis: Any, label: str) -> None:
    """``axis`` counts per cent; ticks are plain numbers, since the label has the unit."""
    axis.set_label_text(label)
    axis.set_major_formatter("{x:g}")


def end_labels(axes: Axes, labels: Sequence[tuple[float, float, str, str]], size: float = 9.5) -> None:
    """Write (x, y, text, colour) to the right of the axes, beside where lines end, moved apart where they collide.

    To be called when the limits of ``axes`` are settled.
    """
    from matplotlib.colors import to_rgb

    if not labels:
        return
    low, high = axes.get_ylim()
    bbox = axes.get_position()
    tall = bbox.height * axes.figure.get_figheight() * 72  # type: ignore[union-attr]
    step = (high - low) * 1.25 * size / max(tall, 1)
    order = sorted(range(len(labels)), key=lambda place: labels[place][1])
    wanted = [labels[place][1] for place in order]
    spread = _apart(wanted, step)
    shift = max(0.0, low + step / 2 - spread[0]) - max(0.0, spread[-1] - (high - step / 2))
    for place, y in zip(order, spread, strict=True):
        _, _, text, colour = labels[place]
        axes.annotate(
            plain(text),
            (1.0, y + shift),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=tuple(0.75 * part for part in to_rgb(colour)),  # letters need more contrast than lines
            fontsize=size,
            annotation_clip=False,
        )


def _apart(wanted: Sequence[float], step: float) -> list[float]:
    """Numbers in the order of ``wanted``, which ascend, at least ``step`` apart and close to where they were wanted.

    Neighbours that are too close become a block around their mean, which swallows what it then comes to touch.
    """
    blocks: list[list[float]] = []
    for value in wanted:
        blocks.append([value])
        while len(blocks) > 1:
            left, right = blocks[-2], blocks[-1]
            reach = step * (len(left) + len(right)) / 2
            if sum(right) / len(right) - sum(left) / len(left) >= reach:
                break
            blocks[-2:] = [left + right]
    placed = []
    for block in blocks:
        first = sum(block) / len(block) - step * (len(block) - 1) / 2
        placed += [first + step * place for place in range(len(block))]
    return placed
