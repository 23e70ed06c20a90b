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


def pictures_of(run: PageRun, source: SourceGraph | None = None) -> tuple[list[Picture], list[str]]:
    """The figures that this run has the numbers for, and notes on those that it should have had."""
    try:
        from gcond.reports.figures import svg_text
    except ImportError:
        return [], ["There are no figures, because matplotlib is missing: pip install 'gcond[report]'."]
    pictures, notes = [], []
    for caption, of, draw in _wanted(run, source):
        try:
            text = svg_text(draw())
        except (GcondError, ImportError) as error:
            notes.append(f"Without the figure “{caption}”: {error}")
            continue
        coded = base64.b64encode(text.encode()).decode()
        pictures.append(Picture(f"data:image/svg+xml;base64,{coded}", caption, of))
    return pictures, notes


def _wanted(run: PageRun, source: SourceGraph | None) -> Iterator[tuple[str, str, Callable[[], Figure]]]:
    """Caption, graph and maker of each figure, which may turn out not to be possible."""
    from gcond.reports.figures.accuracy_by_budget import budget_figure
    from gcond.reports.figures.architecture_agreement import architectures_figure
    from gcond.reports.figures.class_balance import balance_figure
    from gcond.reports.figures.feature_map import embedding_figure
    from gcond.reports.figures.learning_curves import curves_figure
    from gcond.reports.figures.tuning_progress import tuning_figure

    if run.compared and len({line.nodes for line in run.comparison.lines if not line.is_whole}) > 1:
        yield "Test accuracy against the number of nodes", "", lambda: budget_figure(run.comparison)
    first, search, tuning = run.first_graph, run.search, run.tuning
    if first is not None:
        graph = with_class_names(first.graph, (source.class_names if source is not None else ()) or run.class_names)
        if graph.provenance is not None and graph.provenance.history.get("loss"):
            yield "How it was learned", first.label, lambda: curves_figure(graph)
        yield "Features in two dimensions", first.label, lambda: embedding_figure(graph, source)
        yield "Nodes per class", first.label, lambda: balance_figure(graph, run.source.class_nodes or None)
    if search is not None and search.architectures:
        caption = "Architectures: accuracy on the condensed and on the whole graph"
        yield caption, "", lambda: architectures_figure(search)
    if tuning is not None and tuning.count("complete"):
        yield "Hyper-parameters: what each configuration reached", "", lambda: tuning_figure(tuning)
