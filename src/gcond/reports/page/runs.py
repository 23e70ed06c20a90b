"""What a page is about, read from run folders and condensed files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcond.artefact import CondensedGraph, Provenance
from gcond.errors import GcondError
from gcond.reports.page.commands import commands_of
from gcond.reports.page.shapes import Comparison, Line, Search, Source, read_json
from gcond.statistics import describe
from gcond.storage import read_metadata_kind

COMPARISON, SEARCH = "comparison.json", "nas.json"


@dataclass(frozen=True)
class Piece:
    """One condensed graph that the page shows."""

    file: str
    """As the page names it: relative to the run, without the folders of whoever made it."""
    graph: CondensedGraph

    @property
    def label(self) -> str:
        made = self.graph.provenance
        return f"{made.method}, {self.graph.num_nodes:,} nodes, seed {made.seed}" if made else self.file


@dataclass(frozen=True)
class Run:
    """One source graph and what was made of it."""

    name: str
    source: Source
    lines: tuple[Line, ...]
    pieces: tuple[Piece, ...]
    commands: tuple[str, ...]
    advice: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    search: Search | None = None
    raw_comparison: Mapping[str, Any] | None = None
    raw_search: Mapping[str, Any] | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        made = next((piece.graph.provenance for piece in self.pieces if piece.graph.provenance), None)
        return tuple(self.source.get("class_names") or ()) or (made.class_names if made else ())

    def piece_of(self, line: Line) -> Piece | None:
        """The first graph of ``line`` that is at hand."""
        files = {piece.file: piece for piece in self.pieces}
        return next((files[file] for file in line.get("graphs", []) if file in files), None)


def read_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Run folders in their order, and condensed files together with others of the same source."""
    runs: list[Run] = []
    files: dict[str, list[tuple[Path, CondensedGraph]]] = {}
    for path in map(Path, paths):
        if path.is_dir():
            runs.append(read_folder(path))
            continue
        if path.exists() and path.suffix == ".json":
            raise GcondError(f"'{path}' is part of a run: give its folder '{path.parent}' instead")
        if read_metadata_kind(path) == "source":
            raise GcondError(f"'{path}' is a source graph: a page is about condensed files or run folders")
        graph = CondensedGraph.load(path)
        made = graph.provenance
        files.setdefault(made.source.get("sha256", "") if made else str(path), []).append((path, graph))
    return runs + [_from_files(group) for group in files.values()]


def read_folder(folder: Path) -> Run:
    """What ``gcond compare`` and ``gcond nas`` left in ``folder``."""
    comparison, search = folder / COMPARISON, folder / SEARCH
    if not comparison.is_file() and not search.is_file():
        raise GcondError(f"'{folder}' is not a run: it has neither {COMPARISON} nor {SEARCH}")
    found: Comparison = {"source": {}, "lines": []}
    raw: dict[str, Any] | None = None
    if comparison.is_file():
        found, raw = read_json(comparison, Comparison)
    searched, raw_search = read_json(search, Search) if search.is_file() else (None, None)
    pieces, notes = _pieces(folder, found["lines"])
    commands = [found.get("command", ""), searched.get("command", "") if searched else ""]
    return Run(
        name=folder.resolve().name,
        source=found["source"] or (searched.get("source", {}) if searched else {}),
        lines=tuple(found["lines"]),
        pieces=tuple(pieces),
        commands=tuple(command for command in commands if command),
        advice=tuple(found.get("advice", [])),
        failures=tuple((failure["what"], failure["error"]) for failure in found.get("failures", [])),
        notes=tuple(notes),
        search=searched,
        raw_comparison=raw,
        raw_search=raw_search,
    )


def _pieces(folder: Path, lines: Sequence[Line]) -> tuple[list[Piece], list[str]]:
    """The first graph of every method and budget: more seeds of the same look alike, and weigh."""
    pieces: dict[str, Piece] = {}
    missing = 0
    seen: set[tuple[str, int]] = set()
    for line in lines:
        if (line["method"], line["nodes"]) in seen or not line.get("graphs"):
            continue
        seen.add((line["method"], line["nodes"]))
        for name in line["graphs"]:
            place = (folder / name).resolve()
            if not place.is_relative_to(folder.resolve()):
                raise GcondError(f"'{folder / COMPARISON}' names '{name}', which is outside the run")
            if place.is_file():
                pieces[name] = Piece(name, CondensedGraph.load(place))
                break
            missing += 1
    gone = "1 graph of this run is" if missing == 1 else f"{missing} graphs of this run are"
    return list(pieces.values()), [f"{gone} no longer in its folder."] if missing else []


def _from_files(group: Sequence[tuple[Path, CondensedGraph]]) -> Run:
    """A run made up of files alone: what they remember of their source, their cost and their scores."""
    pieces = tuple(Piece(path.name, graph) for path, graph in group)
    made = group[0][1].provenance
    lines, commands, notes = [], [], []
    for path, graph in group:
        if graph.provenance is None:
            notes.append(f"{path.name} does not say how it was made.")
            continue
        lines += _lines(path.name, graph, graph.provenance)
        commands += commands_of(graph.provenance, path.name)
        if not graph.provenance.scores:
            notes.append(f"{path.name} has no scores yet: gcond evaluate records them in the file.")
    return Run(
        name=made.source.get("name", group[0][0].stem) if made else group[0][0].stem,
        source=_source(made) if made else {},
        lines=tuple(lines),
        pieces=pieces,
        commands=tuple(dict.fromkeys(commands)),
        notes=tuple(notes),
    )


def _source(made: Provenance) -> Source:
    origin: Source = {**made.source, "setting": made.setting, "classes": made.num_classes}  # type: ignore[typeddict-item]
    if made.class_names:
        origin["class_names"] = list(made.class_names)
    return origin


def _lines(file: str, graph: CondensedGraph, made: Provenance) -> list[Line]:
    """A line a recorded score; what the whole graph reaches is not known to a file."""
    found = describe(graph)
    kind = "selected" if graph.source_index is not None else "merged" if graph.cluster is not None else "learned"
    return [
        Line(
            method=made.method,
            kind=kind,
            model=score["model"],
            nodes=found.nodes,
            edges=found.edges,
            bytes=found.bytes,
            mean=score["mean"],
            std=score["std"],
            n=len(score["runs"]),
            ratio=made.budget.get("ratio"),
            condense_seconds=made.cost.get("wall_seconds"),
            train_seconds=score["seconds"] / max(len(score["runs"]), 1),
            peak_rss_mb=made.cost.get("peak_rss_mb"),
            graphs=[file],
        )
        for score in made.scores
    ]
