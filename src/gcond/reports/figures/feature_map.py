"""t-SNE of the condensed features, among those of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.linalg.sparse import dense, take_rows
from gcond.reports.figures import style
from gcond.runtime.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Points = NDArray[np.float64]

MOST_SOURCE_NODES = 1000
"""Drawn by chance from the labelled nodes of a larger source: more would only cover each other."""
COMPONENTS = 50
"""Principal components that t-SNE looks at, as van der Maaten and Hinton do (JMLR 2008)."""
PERPLEXITY = 30
FEWEST = 4


@style.styled
def embedding_figure(small: CondensedGraph, source: SourceGraph | None = None, *, seed: int = 0) -> Figure:
    """The features of ``small`` in two dimensions, with those of ``source`` embedded together with them."""
    from matplotlib.lines import Line2D

    labels = small.hard_labels.numpy()
    x, theirs = small.x, np.empty(0, dtype=np.int64)
    if source is not None:
        if source.num_features != x.shape[1]:
            raise GcondError(
                f"the graph has {x.shape[1]} features and '{source.name}' has {source.num_features}: "
                "give the source that it was made from"
            )
        chosen = sample_nodes(source, seed)
        x = torch.cat([x, dense(take_rows(source.x, chosen))])
        theirs = source.y[chosen].numpy()
    place = tsne(x, seed)
    ours, background = place[: len(labels)], place[len(labels) :]

    names = style.names_of(small, source)
    figure = style.canvas(f"{style.subject(small)}: t-SNE of its features", height=5.4)
    axes = figure.add_subplot()
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel("first t-SNE dimension (no unit)", color=style.FAINT)
    axes.set_ylabel("second t-SNE dimension (no unit)", color=style.FAINT)
    size = 75 if len(labels) <= 150 else 75 * (150 / len(labels)) ** 0.5
    for label in range(len(names)):
        colour, marker = style.look(label)
        if len(theirs):
            across, up = background[theirs == label].T
            axes.scatter(across, up, s=9, c=colour, marker=marker, alpha=0.4, linewidths=0, zorder=1)
    for label in range(len(names)):
        colour, marker = style.look(label)
        across, up = ours[labels == label].T
        axes.scatter(
            across, up, s=size, c=colour, marker=marker, edgecolors="black", linewidths=0.9, zorder=3, alpha=0.95
        )
    axes.margins(0.04)

    def key(colour: str, marker: str, *, large: bool = True) -> Line2D:
        edge = "black" if large else "none"
        return Line2D(
            [], [], linestyle="none", marker=marker, color=colour, markeredgecolor=edge, markersize=8 if large else 4
        )

    shown = sorted({*labels.tolist(), *theirs.tolist()} - {-1})
    handles = [key(*style.look(label)) for label in shown]
    words = [names[label] for label in shown]
    if source is not None:
        handles += [key("#9aa0a6", "o"), key("#9aa0a6", "o", large=False)]
        words += [f"condensed node ({len(labels):,})", f"source node ({len(theirs):,})"]
    columns = -(-len(handles) // 24)
    style.legend(
        axes,
        handles,
        words,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        ncols=columns,
        fontsize=9.5 if columns == 1 else 8,
        handletextpad=0.3,
        columnspacing=0.8,
    )
    return figure


def sample_nodes(source: SourceGraph, seed: int) -> Tensor:
    """Up to :data:`MOST_SOURCE_NODES` nodes of ``source`` that have a class, drawn from ``seed``, in their order."""
    labelled = (source.y >= 0).nonzero().squeeze(1)
    if len(labelled) > MOST_SOURCE_NODES:
        drawn = torch.randperm(len(labelled), generator=generator(seed, "embedding"))[:MOST_SOURCE_NODES]
        labelled = labelled[drawn].sort().values
    return labelled


def tsne(x: Tensor, seed: int) -> Points:
    """Rows of ``x`` in two dimensions, the same for the same ``seed`` (openTSNE: Poličar et al., JSS 2024)."""
    if len(x) < FEWEST:
        raise GcondError(f"{len(x)} nodes are too few for t-SNE: it takes {FEWEST} or more")
    style.require("openTSNE")
    from openTSNE import TSNE  # type: ignore[import-untyped]
    from sklearn.decomposition import PCA  # type: ignore[import-untyped]

    points = x.double().numpy()
    if not bool((points != points[0]).any()):
        raise GcondError("all nodes have the same features: t-SNE has nothing to tell apart")
    if min(points.shape) > COMPONENTS:
        points = PCA(COMPONENTS, svd_solver="randomized", random_state=seed % 2**32).fit_transform(points)
    embedding = TSNE(
        perplexity=min(PERPLEXITY, (len(points) - 1) / 3),
        initialization="pca",
        neighbors="exact",  # what is approximate there depends on the machine
        random_state=seed % 2**32,
        n_jobs=1,
    ).fit(points)
    return np.asarray(embedding, dtype=np.float64)
