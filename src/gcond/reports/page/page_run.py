"""The subjects of a page: run folders, and condensed files together with others of the same source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gcond import methods
from gcond.condensed import CondensedGraph, Provenance
from gcond.errors import GcondError
from gcond.reports.display_names import cleaned
from gcond.reports.page.remake_commands import commands_of
from gcond.reports.score_changes import changed, with_changes
from gcond.reports.tables import count
from gcond.results import Audit, Comparison, Failure, Line, RunFolder, Search, SourceSummary, Tuning
from gcond.results.audit import AUDIT
from gcond.results.comparison import COMPARISON
from gcond.results.search import SEARCH
from gcond.results.tuning import TUNING
from gcond.runtime.tensor_file import read_metadata_kind

ENOUGH = 0.99
"""The share of the whole graph's accuracy from which on the smaller graph makes the better headline."""


@dataclass(frozen=True)
class PageGraph:
    """One condensed graph that the page shows."""

    file: str
    """As the page names it: relative to the run, without the folders of whoever made it."""
    graph: CondensedGraph

    @property
    def label(self) -> str:
        made = self.graph.provenance
        return f"{made.method}, {self.graph.num_nodes:,} nodes, seed {made.seed}" if made else self.file


@dataclass(frozen=True)
class PageRun:
    """One source graph and what was made of it."""

    name: str
    comparison: Comparison
    """Of files, a line for each score that they remember; without lines where only architectures were searched."""
    graphs: tuple[PageGraph, ...] = ()
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    search: Search | None = None
    tuning: Tuning | None = None
    audit: Audit | None = None
    compared: bool = False
    """Whether the lines are of a comparison, in which all methods were measured alike at every budget."""

    @property
    def source(self) -> SourceSummary:
        return self.comparison.source

    @property
    def failures(self) -> tuple[Failure, ...]:
        searched = (part.failures for part in (self.search, self.tuning, self.audit) if part is not None)
        return self.comparison.failures + tuple(failure for part in searched for failure in part)

    @property
    def class_names(self) -> tuple[str, ...]:
        made = next((each.graph.provenance for each in self.graphs if each.graph.provenance), None)
        return self.source.class_names or (made.class_names if made else ())

    @property
    def best_line(self) -> Line | None:
        """The line to boast with: the smallest in bytes that keeps :data:`ENOUGH` of the accuracy, else the best.

        The most accurate one alone would often be the largest graph for a tenth of a per cent. Lines of other models
        than the first do not count.
        """
        lines = [line for line in self.comparison.lines if not line.is_whole]
        lines = [line for line in lines if line.model == lines[0].model]
        enough = [line for line in lines if (line.kept or 0) >= ENOUGH]
        if enough:
            return min(enough, key=lambda line: (line.bytes, -line.mean))
        return max(lines, key=lambda line: (line.mean, -line.bytes), default=None)

    @property
    def first_graph(self) -> PageGraph | None:
        """The graph of the headline if it is at hand, else the first one."""
        names = self.best_line.graphs if self.best_line else ()
        at_hand = {each.file: each for each in self.graphs}
        return next((at_hand[name] for name in names if name in at_hand), self.graphs[0] if self.graphs else None)


def read_runs(paths: Sequence[str | Path]) -> list[PageRun]:
    """Run folders in their order, and then files, those of one source together; every text in them is cleaned."""
    runs: list[PageRun] = []
    files: dict[str, list[PageGraph]] = {}
    for path in map(Path, paths):
        if path.is_dir():
            runs.append(_of_folder(path))
            continue
        if path.exists() and path.suffix == ".json":
            raise GcondError(f"'{path}' is part of a run: give its folder '{path.parent}' instead")
        if read_metadata_kind(path) == "source":
            raise GcondError(f"'{path}' is a source graph: a page is about condensed files or run folders")
        graph = CondensedGraph.load(path)
        made = graph.provenance
        files.setdefault(made.source.get("sha256", "") if made else str(path), []).append(PageGraph(path.name, graph))
    return [cleaned(run) for run in (*runs, *map(_of_files, files.values()))]


def _of_folder(path: Path) -> PageRun:
    """The run in the folder ``path``, as ``gcond compare``, ``nas``, ``tune`` and ``audit`` left it."""
    folder = RunFolder(path)
    comparison, search, tuning, audit = folder.comparison(), folder.search(), folder.tuning(), folder.audit()
    source = next((part.source for part in (comparison, search, tuning, audit) if part is not None), None)
    if source is None:
        raise GcondError(f"'{path}' is not a run: it has neither {COMPARISON} nor {SEARCH} nor {TUNING} nor {AUDIT}")
    found = replace(comparison, lines=with_changes(comparison)) if comparison else Comparison(source, ())
    graphs, notes = _shown_graphs(folder, found.lines)
    return PageRun(
        name=path.resolve().name,
        comparison=found,
        graphs=tuple(graphs),
        commands=tuple(part.command for part in (found, search, tuning, audit) if part is not None and part.command),
        notes=tuple(notes),
        search=search,
        tuning=tuning,
        audit=audit,
        compared=comparison is not None,
    )


def _shown_graphs(folder: RunFolder, lines: Sequence[Line]) -> tuple[list[PageGraph], list[str]]:
    """The first graph of every method and budget, and notes: more seeds of the same look alike, and weigh."""
    wanted: dict[tuple[str, int], tuple[str, ...]] = {}
    for line in lines:
        if line.graphs:
            wanted.setdefault((line.method, line.nodes), line.graphs)
    graphs: dict[str, PageGraph] = {}
    missing, damaged = 0, []
    for names in wanted.values():
        for name in names:
            file = folder.graph_file(name)
            if file is None:
                missing += 1
                continue
            try:
                graphs[name] = PageGraph(name, CondensedGraph.load(file))
                break
            except GcondError:
                damaged.append(f"{name} is damaged and left out.")
    gone = [f"{count(missing, 'graph')} of this run {'is' if missing == 1 else 'are'} no longer in its folder."]
    return list(graphs.values()), gone * (missing > 0) + damaged


def _of_files(group: Sequence[PageGraph]) -> PageRun:
    """A run made up of files alone: what they remember of their source, their cost and their scores."""
    lines: list[Line] = []
    commands: list[str] = []
    notes: list[str] = []
    for each in group:
        made = each.graph.provenance
        if made is None:
            notes.append(f"{each.file} does not say how it was made.")
            continue
        lines += _lines(each, made)
        commands += commands_of(made, each.file)
        if not made.scores:
            notes.append(f"{each.file} has no scores yet: gcond evaluate records them in the file.")
    made = group[0].graph.provenance
    source = SourceSummary.remembered(made) if made else SourceSummary("")
    return PageRun(
        name=source.name or Path(group[0].file).stem,
        comparison=Comparison(source, tuple(lines)),
        graphs=tuple(group),
        commands=tuple(dict.fromkeys(commands)),
        notes=tuple(notes),
    )


def _lines(shown: PageGraph, made: Provenance) -> list[Line]:
    """A line for each recorded score; what the whole graph reaches is not known to a file."""
    found = shown.graph.statistics
    method = methods.available().get(made.method)
    return [
        Line(
            method=made.method,
            kind=method.kind if method is not None else "",
            model=score.model,
            nodes=found.nodes,
            ratio=made.budget.get("ratio", 0.0),
            edges=found.edges,
            bytes=found.bytes,
            mean=score.mean,
            std=score.std,
            n=len(score.runs),
            condense_cpu_seconds=made.cost.get("cpu_seconds"),
            train_cpu_seconds=score.cpu_seconds / max(len(score.runs), 1),
            peak_rss_mb=made.cost.get("peak_rss_mb"),
            graphs=(shown.file,),
            changes=changed(score),
            metrics=score.metrics,
        )
        for score in made.scores
    ]
