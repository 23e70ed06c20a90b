"""The figures of a run as pictures that live inside the page."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gcond.errors import GcondError
from gcond.reports.display_names import with_class_names
from gcond.reports.page.page_run import PageRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gcond.graph import SourceGraph


@dataclass(frozen=True)
class Picture:
    """An SVG as an address: an ``<img>`` runs no script and loads nothing, whatever text the drawing holds."""

    address: str
    caption: str
    of: str = ""
    """The graph that it shows, by a name that may be written from right to left."""

    @property
    def text(self) -> str:
        return f"{self.caption} ({self.of})" if self.of else self.caption


@dataclass(frozen=True)
class Wanted:
    """A figure that may turn out not to be possible."""

    caption: str
    draw: Callable[[], Figure]
    of: str = ""


def pictures_of(run: PageRun, source: SourceGraph | None = None) -> tuple[list[Picture], list[str]]:
    """The figures that this run has the numbers for, and notes on those that it should have had."""
    try:
        from gcond.reports.figures import svg_text
    except ImportError:
        return [], ["There are no figures, because matplotlib is missing: pip install 'gcond[report]'."]
    pictures, notes = [], []
    for wanted in _wanted(run, source):
        try:
            text = svg_text(wanted.draw())
        except (GcondError, ImportError) as error:
            notes.append(f"Without the figure “{wanted.caption}”: {error}")
            continue
        coded = base64.b64encode(text.encode()).decode()
        pictures.append(Picture(f"data:image/svg+xml;base64,{coded}", wanted.caption, wanted.of))
    return pictures, notes


def _wanted(run: PageRun, source: SourceGraph | None) -> Iterator[Wanted]:
    from gcond.reports.figures import accuracy_by_budget as budget
    from gcond.reports.figures import architecture_agreement as architectures
    from gcond.reports.figures import class_balance as balance
    from gcond.reports.figures import feature_map as embedding
    from gcond.reports.figures import learning_curves as curves

    if run.compared and len({line.nodes for line in run.comparison.lines if not line.is_whole}) > 1:
        yield Wanted("Test accuracy against the number of nodes", lambda: budget.budget_figure(run.comparison))
    first, search = run.first_graph, run.search
    if first is not None:
        graph = with_class_names(first.graph, (source.class_names if source is not None else ()) or run.class_names)
        if graph.provenance is not None and graph.provenance.history.get("loss"):
            yield Wanted("How it was learned", lambda: curves.curves_figure(graph), first.label)
        yield Wanted("Features in two dimensions", lambda: embedding.embedding_figure(graph, source), first.label)
        counts = run.source.class_nodes or None
        yield Wanted("Nodes per class", lambda: balance.balance_figure(graph, counts), first.label)
    if search is not None and search.architectures:
        yield Wanted(
            "Architectures: accuracy on the condensed and on the whole graph",
            lambda: architectures.architectures_figure(search),
        )
