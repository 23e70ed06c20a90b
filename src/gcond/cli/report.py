"""``gcond report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common, check_new_file, flag, say_notes
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.cli.output import Voice
    from gcond.graph import SourceGraph
    from gcond.reports.page import PageRun


def command(
    runs: Annotated[
        list[Path],
        Parameter(
            help="Folders that `gcond compare`, `gcond nas`, `gcond tune` or `gcond audit` wrote, and condensed files.",
            negative=(),
        ),
    ],
    /,
    *,
    on: Annotated[str | None, Parameter(help="The source graph, for class names and its nodes in the figures.")] = None,
    out: Annotated[Path, Parameter(alias="-o", help="The page.")] = Path("page.html"),
    force: Annotated[bool, flag("Replace the page if it exists.")] = False,
    title: Annotated[str, Parameter(help="Its title; one of the data sets and sizes if not given.")] = "",
    common: Common = DEFAULTS,
) -> None:
    """Make one HTML page of runs and condensed files; it opens from disk and needs no network.

    For example: gcond report runs/cora cora-gcond-70.safetensors -o cora.html
    """
    voice = common.start()
    from gcond.reports.page import read_runs, render_page
    from gcond.reports.tables import size
    from gcond.runtime.files import atomic_path

    _check_out(out, runs)
    check_new_file(out, "", force)
    found = read_runs(runs)
    source = _source(found, on, common, voice) if on is not None else None
    with voice.progress("drawing"):
        text = render_page(found, title=title, source=source)
    data = text.encode()
    with atomic_path(out) as temporary:
        temporary.write_bytes(data)
    graphs = sum(len(run.graphs) for run in found)
    said = f"wrote {out} ({size(len(data))}): open it in a browser"
    voice.result({"out": str(out), "runs": len(found), "graphs": graphs, "bytes": len(data)}, said)


def _check_out(out: Path, runs: list[Path]) -> None:
    """Refuse to write the page over what it is about: a page can be made again, a condensed graph takes hours."""
    for run in runs:
        if out.exists() and run.exists() and out.samefile(run):
            raise GcondError(f"'{out}' is what the page is about: give another name with -o")
    if out.suffix.lower() not in (".html", ".htm"):
        raise GcondError(f"'{out}' is not a page: give a name that ends in .html with -o")


def _source(runs: list[PageRun], on: str, common: Common, voice: Voice) -> SourceGraph:
    """The graph ``on`` as the first run read it; if it is no run's source, it is said."""
    from gcond.condensed.origin import load_origin

    shown = [each.graph for run in runs for each in run.graphs]
    made = next((graph.provenance for graph in shown if graph.provenance is not None), None)
    graph = load_origin(made, on, data_dir=common.data)
    say_notes(graph, voice)
    if not any(run.source.sha256 in ("", graph.sha256) for run in runs):
        voice.warn(f"no run is of '{graph.name}' as it is now, so the page shows nothing of it")
    return graph
