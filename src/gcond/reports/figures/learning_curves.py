"""The course of learning: the loss of every epoch and the validation probes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOSS, PROBE = "#0072B2", "#D55E00"
WIDE = 10
"""A loss that falls to less than a tenth is drawn by its logarithm: the end would be a flat line otherwise."""


@style.styled
def curves_figure(small: CondensedGraph) -> Figure:
    """Loss above, validation accuracy below, over the epochs of the condensation; the state that was kept is marked.

    In the place of accuracy there may be another metric by which the method probed.
    """
    history = small.provenance.history if small.provenance is not None else {}
    loss = history.get("loss", [])
    probes = list(zip(history.get("probe_epoch", []), history.get("probe", []), strict=False))
    if not loss and not probes:
        raise GcondError("this graph has no loss curve: only what a method learned with epochs has one")
    kept = kept_probe(history, small.provenance.kept_epoch if small.provenance is not None else None)
    panels = [draw for draw, data in ((_loss, loss), (partial(_probe, kept=kept), probes)) if data]
    what = " and ".join(name for name, data in (("loss", loss), ("validation probe", probes)) if data)
    figure = style.canvas(f"{style.subject(small)}: {what}", height=1.4 + 2.0 * len(panels))
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, draw in zip(all_axes, panels, strict=True):
        draw(axes, history)
        axes.grid(axis="y")
        axes.margins(x=0.02)
    if probes:
        metric = small.provenance.metric if small.provenance is not None else "accuracy"
        style.percent_axis(all_axes[-1].yaxis, f"validation\n{metric}, %")
    all_axes[-1].set_xlabel("epoch (a fresh model each)")
    all_axes[-1].xaxis.get_major_locator().set_params(integer=True)
    figure.align_ylabels()
    return figure


def kept_probe(history: dict[str, list[float]], kept: int | None = None) -> tuple[float, float] | None:
    """Epoch and accuracy of the state that was kept, which files of earlier versions do not say.

    There it is the best probe, of equal ones the start or else the latest.
    """
    probes = list(zip(history.get("probe_epoch", []), history.get("probe", []), strict=False))
    if not probes:
        return None
    if kept is not None:
        return next(((epoch, accuracy) for epoch, accuracy in probes if epoch == kept), None)
    best = max(accuracy for _, accuracy in probes)
    epochs = [epoch for epoch, accuracy in probes if accuracy == best]
    return (0.0 if 0 in epochs else max(epochs)), best


def _loss(axes: Axes, history: dict[str, list[float]]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    loss = history["loss"]
    epochs = range(1, len(loss) + 1)
    axes.plot(epochs, loss, color=LOSS, marker="o", markersize=3 if len(loss) > 1 else 6)
    axes.set_ylabel("matching loss")
    if min(loss) > 0 and max(loss) > WIDE * min(loss):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(loss) < 100 * min(loss) else (1,)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylabel("matching loss\n(log scale)")
        axes.set_ylim(min(loss) / 1.3, max(loss) * 1.3)
    else:
        axes.set_ylim(min(0, *loss), 1.08 * max(*loss, 1e-12))
    retried = sorted(set(history.get("retried_epoch", [])))
    if retried:
        top = axes.get_xaxis_transform()
        axes.plot(retried, [0.96] * len(retried), "v", color=style.INK, markersize=6, transform=top)
        axes.annotate(
            "tried again at half the rates",
            (retried[-1], 0.96),
            xycoords=top,
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )


def _probe(axes: Axes, history: dict[str, list[float]], kept: tuple[float, float] | None) -> None:
    epochs = history["probe_epoch"][: len(history["probe"])]
    accuracy = [100 * value for value in history["probe"][: len(epochs)]]
    axes.plot(epochs, accuracy, color=PROBE, marker="o", markersize=5)
    axes.margins(y=0.2)
    if epochs and epochs[0] == 0:
        _beside(axes, 0, accuracy[0], "start", up=accuracy[0] >= max(accuracy), left=False)
    if kept is None:
        return
    epoch, best = kept[0], 100 * kept[1]
    axes.plot([epoch], [best], "o", markersize=10, markerfacecolor="none", markeredgecolor=style.INK, zorder=4)
    late = epoch > 0.7 * max(epochs)
    _beside(axes, epoch, best, f"kept: epoch {epoch:g}, {best:.1f} %", up=True, left=late)


def _beside(axes: Axes, x: float, y: float, text: str, *, up: bool, left: bool) -> None:
    axes.annotate(
        text,
        (x, y),
        xytext=(-4 if left else 4, 9 if up else -9),
        textcoords="offset points",
        ha="right" if left else "left",
        va="bottom" if up else "top",
        fontsize=9.5,
    )
