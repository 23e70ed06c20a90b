"""What a page is about, read from run folders and condensed files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from gcond import methods, models
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.provenance import Provenance
from gcond.config import settings
from gcond.errors import GcondError
from gcond.evaluation.evaluate import recipe_for
from gcond.reports.display_names import clean
from gcond.reports.page.remake_commands import commands_of
from gcond.reports.page.shapes import Comparison, Line, Search, Setting, Source, read_json
from gcond.reports.score_changes import changed
from gcond.results.run_folder import COMPARISON, SEARCH
from gcond.runtime.tensor_file import read_metadata_kind

T = TypeVar("T")


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
    compared: bool = False
    """Whether the lines are of a comparison, in which all methods were measured alike at every budget."""

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
    return [_cleaned(run) for run in (*runs, *map(_from_files, files.values()))]


def read_folder(folder: Path) -> Run:
    """What ``gcond compare`` and ``gcond nas`` left in ``folder``."""
    comparison, search = folder / COMPARISON, folder / SEARCH
    if not comparison.is_file() and not search.is_file():
        raise GcondError(f"'{folder}' is not a run: it has neither {COMPARISON} nor {SEARCH}")
    found = read_json(comparison, Comparison) if comparison.is_file() else None
    searched = read_json(search, Search) if search.is_file() else None
    lines = [_changed(line, found.get("recipe", {})) for line in found["lines"]] if found else []
    pieces, notes = _pieces(folder, lines)
    parts: list[Comparison | Search] = [part for part in (found, searched) if part is not None]
    return Run(
        name=folder.resolve().name,
        source=parts[0]["source"],
        lines=tuple(lines),
        pieces=tuple(pieces),
        commands=tuple(part["command"] for part in parts if part.get("command")),
        advice=tuple(found.get("advice", [])) if found else (),
        failures=tuple((failure["what"], failure["error"]) for part in parts for failure in part.get("failures", [])),
        notes=tuple(notes),
        search=searched,
        compared=found is not None,
    )


def _changed(line: Line, recipe: Mapping[str, Setting]) -> Line:
    """``line`` with what ``recipe``, that was asked for, changes in the usual training of its model."""
    cls = models.available().get(line["model"])
    if not recipe:
        return line
    if cls is None:  # what is usual for it is not known
        return {**line, "changes": dict(recipe)}
    try:
        used = settings.as_dict(recipe_for(cls(), recipe))
    except GcondError:  # of a version that trains in another way
        used = dict(recipe)
    return {**line, "changes": changed({"model": line["model"], "settings": {}, "recipe": used})}


def _pieces(folder: Path, lines: Sequence[Line]) -> tuple[list[Piece], list[str]]:
    """The first graph of every method and budget: more seeds of the same look alike, and weigh."""
    pieces: dict[str, Piece] = {}
    missing, notes = 0, []
    seen: set[tuple[str, int]] = set()
    for line in lines:
        if (line["method"], line["nodes"]) in seen or not line.get("graphs"):
            continue
        seen.add((line["method"], line["nodes"]))
        for name in line["graphs"]:
            place = _place(folder, name)
            if place is None:
                missing += 1
                continue
            try:
                pieces[name] = Piece(name, CondensedGraph.load(place))
            except GcondError:
                notes.append(f"{name} is damaged and left out.")
                continue
            break
    gone = "1 graph of this run is" if missing == 1 else f"{missing} graphs of this run are"
    return list(pieces.values()), [f"{gone} no longer in its folder."] * (missing > 0) + notes


def _place(folder: Path, name: str) -> Path | None:
    """Where the graph ``name`` of a run is; None if it is not there."""
    try:
        place = (folder / name).resolve()
        inside = place.is_relative_to(folder.resolve())
        there = inside and place.is_file()
    except (OSError, ValueError):  # no file can have such a name
        return None
    if not inside:
        raise GcondError(f"'{folder / COMPARISON}' names '{name}', which is outside the run")
    return place if there else None


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
        source=_source(made) if made else {"name": ""},
        lines=tuple(lines),
        pieces=pieces,
        commands=tuple(dict.fromkeys(commands)),
        notes=tuple(notes),
    )


def _source(made: Provenance) -> Source:
    origin: Source = {"name": "", **made.source, "setting": made.setting, "classes": made.num_classes}  # type: ignore[typeddict-item]
    if made.class_names:
        origin["class_names"] = list(made.class_names)
    return origin


def _lines(file: str, graph: CondensedGraph, made: Provenance) -> list[Line]:
    """A line a recorded score; what the whole graph reaches is not known to a file."""
    found = graph.statistics
    method = methods.available().get(made.method)
    return [
        Line(
            method=made.method,
            kind=method.kind if method is not None else "",
            model=score["model"],
            nodes=found.nodes,
            edges=found.edges,
            bytes=found.bytes,
            mean=score["mean"],
            std=score["std"],
            n=len(score["runs"]),
            ratio=made.budget.get("ratio", 0.0),
            condense_seconds=made.cost.get("wall_seconds"),
            train_seconds=score["seconds"] / max(len(score["runs"]), 1),
            peak_rss_mb=made.cost.get("peak_rss_mb"),
            graphs=[file],
            changes=changed(score),
        )
        for score in made.scores
    ]


def _cleaned(value: T) -> T:
    """``value`` with every text in it cleaned: data sets, classes and files may be called anything."""
    found: Any = value
    if isinstance(value, str):
        found = clean(value)
    elif isinstance(value, list | tuple):
        found = type(value)(_cleaned(part) for part in value)
    elif isinstance(value, dict):
        found = {_cleaned(key): _cleaned(part) for key, part in value.items()}
    elif isinstance(value, Run | Piece | Provenance):
        found = replace(value, **{field.name: _cleaned(getattr(value, field.name)) for field in fields(value)})
    elif isinstance(value, CondensedGraph):
        found = replace(value, provenance=_cleaned(value.provenance))
    return found
