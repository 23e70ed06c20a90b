"""A run in words: the headline, the comparison and the provenance as plain text that templates lay out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gcond.reports.page.page_runs import Run
from gcond.reports.page.shapes import Line, Search
from gcond.reports.tables import MISSING, accuracy, assignments, percent, seconds, size

ENOUGH = 0.99
"""The share of the whole graph's accuracy from which on the smaller graph makes the better headline."""


class Name(str):
    """A name within a sentence: it may be written from right to left, and must not turn the words around it."""


Sentence = tuple[str, ...]


@dataclass(frozen=True)
class Tile:
    """One headline number."""

    figure: str
    what: str
    detail: str = ""


@dataclass(frozen=True)
class Headline:
    """What the run comes to: one sentence and a few numbers."""

    sentence: Sentence
    tiles: tuple[Tile, ...]
    chosen: str = ""
    """Why this graph of several, in a sentence."""


@dataclass(frozen=True)
class Row:
    """A line of the comparison as text; ``mark`` is ``best``, ``tied`` or nothing."""

    method: str
    kind: str
    cells: tuple[str, ...]
    mark: str
    whole: bool
    new_budget: bool
    """Whether the rows from here on are of another size."""


@dataclass(frozen=True)
class Comparison:
    """All lines of one model."""

    model: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def best_line(run: Run) -> Line | None:
    """The line to boast with: the smallest in bytes that keeps :data:`ENOUGH` of the accuracy, else the most accurate.

    The most accurate one alone would often be the largest graph for a tenth of a per cent. Lines of other models than
    the first do not count.
    """
    lines = [line for line in run.lines if line["kind"] != "whole"]
    lines = [line for line in lines if line["model"] == lines[0]["model"]]
    enough = [line for line in lines if (line.get("kept") or 0) >= ENOUGH]
    if enough:
        return min(enough, key=lambda line: (line["bytes"], -line["mean"]))
    return max(lines, key=lambda line: (line["mean"], -line["bytes"]), default=None)


def _why(run: Run, line: Line) -> str:
    others = [each for each in run.lines if each["kind"] != "whole" and each["model"] == line["model"]]
    if len(others) < 2:
        return ""
    if (line.get("kept") or 0) >= ENOUGH:
        return f"These numbers are of the smallest graph, in bytes, that keeps {percent(ENOUGH, 0)} % of the accuracy."
    return "These numbers are of the most accurate of the graphs below."


def headline(run: Run) -> Headline:
    """Accuracy kept, nodes, bytes and the price, of the best line; without scores, of the first graph."""
    line, name = best_line(run), Name(run.source["name"] or "the source graph")
    if line is None:
        return _unscored(run, name)
    whole = next((each for each in run.lines if each["kind"] == "whole" and each["model"] == line["model"]), None)
    model, kept = line["model"].upper(), line.get("kept")
    changes = assignments(line.get("changes", {}))
    sentence: Sentence = (*_made(run, line, name), ". A ", Name(model), " trained on them")
    sentence += (" with ", Name(changes)) if changes else ()
    sentence += (f" gets {percent(line['mean'])} % of the test nodes right",)
    sentence += (f"; trained on the whole graph, {percent(whole['mean'])} %." if whole else ".",)
    tiles = [
        Tile(f"{percent(kept)} %", "of the accuracy", _against(line, whole))
        if kept is not None
        else Tile(f"{percent(line['mean'])} %", "test accuracy", f"{model}, {_times(line['n'], 'training')}")
    ]
    tiles += _sizes(run, line["nodes"], line["bytes"])
    if line.get("condense_seconds") is not None:
        tiles.append(Tile(seconds(line["condense_seconds"] or 0), "to condense", pays_off(line, whole is not None)))
    return Headline(sentence, tuple(tiles), _why(run, line))


def _made(run: Run, line: Line, name: Name) -> Sentence:
    """``gcond condensed the 2,708 nodes of cora into 70``."""
    before, nodes = run.source.get("nodes"), f"{line['nodes']:,}"
    verb = {"selected": "picked", "merged": "merged"}.get(line["kind"], "condensed")
    start = Name(line["method"]), f" {verb} "
    if not before:
        return (*start, name, f" into {nodes} nodes")
    if verb == "picked":
        return (*start, f"{nodes} of the {before:,} nodes of ", name)
    return (*start, f"the {before:,} nodes of ", name, f" into {nodes}")


def _unscored(run: Run, name: Name) -> Headline:
    if not run.pieces:
        what = "An architecture search on " if run.search else "No condensed graph came of "
        return Headline((what, name, "."), ())
    piece = run.pieces[0]
    found, made = piece.graph.statistics, piece.graph.provenance
    by = (" by ", Name(made.method)) if made else ()
    tiles = _sizes(run, found.nodes, found.bytes)
    if made and "wall_seconds" in made.cost:
        tiles.append(Tile(seconds(made.cost["wall_seconds"]), "to condense"))
    unknown = ". How well models train on them is not recorded."
    return Headline((f"{found.nodes:,} nodes made", *by, " from ", name, unknown), tuple(tiles))


def _sizes(run: Run, nodes: int, stored: float) -> list[Tile]:
    tiles = []
    before, bytes_before = run.source.get("nodes"), run.source.get("bytes")
    if before:
        tiles.append(_smaller(nodes, before, "nodes", f"{nodes:,} instead of {before:,}"))
    if bytes_before:
        tiles.append(_smaller(stored, bytes_before, "bytes", f"{size(stored)} instead of {size(bytes_before)}"))
    return tiles


def _smaller(now: float, before: float, what: str, detail: str) -> Tile:
    """Never rounded up to 100 %: something is always left."""
    if now > before:
        return Tile(f"{now / before:.1f} ×", f"the {what}", detail)
    share = 100 * (1 - now / before)
    shown = next((text for digits in (1, 2, 3) if float(text := f"{share:.{digits}f}") < 100), "over 99.999")
    return Tile(f"{shown} %", f"fewer {what}", detail)


def _against(line: Line, whole: Line | None) -> str:
    if whole is None:
        return f"{accuracy(line['mean'], _spread(line))} %"
    return f"{accuracy(line['mean'], _spread(line))} against {accuracy(whole['mean'], _spread(whole))}"


def _spread(line: Line) -> float | None:
    return line["std"] if line["n"] > 1 else None


def _times(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def pays_off(line: Line, compared: bool) -> str:
    """After how many trainings the time spent on condensing has come back."""
    trainings = line.get("break_even")
    if trainings is None:
        timed = compared and line.get("train_seconds") is not None
        return "training is no quicker, so it does not pay back in time" if timed else ""
    return f"paid back after {_times(round(trainings), 'training')}"


_COLUMNS = (
    # What people look for first comes first: a phone shows the first few columns.
    "nodes",
    "test accuracy %",
    "kept %",
    "trainings",
    "size",
    "of source",
    "edges",
    "to condense",
    "to train once",
    "peak memory",
    "paid back after",
    "p against best",
    "trained with",
)


def comparisons(run: Run) -> list[Comparison]:
    """A table a model; a column in which nothing is known is left out."""
    tables = []
    for model in dict.fromkeys(line["model"] for line in run.lines):
        lines = [line for line in run.lines if line["model"] == model]
        cells = [_cells(line, run.source.get("bytes")) for line in lines]
        known = [i for i in range(len(_COLUMNS)) if any(row[i] != MISSING for row in cells)]
        rows = tuple(
            Row(
                "whole graph" if line["kind"] == "whole" else line["method"],
                "" if line["kind"] == "whole" else line["kind"],
                tuple(row[i] for i in known),
                line.get("mark", ""),
                line["kind"] == "whole",
                place > 0 and line["nodes"] != lines[place - 1]["nodes"],
            )
            for place, (line, row) in enumerate(zip(lines, cells, strict=True))
        )
        tables.append(Comparison(model, tuple(_COLUMNS[i] for i in known), rows))
    return tables


def _cells(line: Line, source_bytes: int | None) -> tuple[str, ...]:
    whole = line["kind"] == "whole"

    def maybe(key: str, show: Any) -> str:
        value = line.get(key)
        return MISSING if value is None else show(value)

    return (
        f"{line['nodes']:,}",
        accuracy(line["mean"], _spread(line)),
        maybe("kept", percent),
        f"{line['n']:,}",
        size(line["bytes"]),
        _share(line["bytes"] / source_bytes) if source_bytes else MISSING,
        f"{line['edges']:,.0f}",
        MISSING if whole else maybe("condense_seconds", seconds),
        maybe("train_seconds", seconds),
        maybe("peak_rss_mb", lambda mb: size(mb * 1e6)),
        maybe("break_even", lambda count: f"{count:,.0f}"),
        maybe("p_value", lambda p: f"{p:.3f}" if p >= 0.001 else "< 0.001"),
        assignments(line.get("changes", {})) or MISSING,
    )


def _share(fraction: float) -> str:
    return f"{100 * fraction:.1f} %" if fraction >= 0.0995 else f"{100 * fraction:.2g} %"


def source_facts(run: Run) -> dict[str, str]:
    """What is known of the source, by name."""
    source = run.source
    counts = {
        key: f"{source[key]:,}" for key in ("nodes", "edges", "features", "classes") if source.get(key) is not None
    }  # type: ignore[literal-required]
    return {
        key: value
        for key, value in {
            "name": source.get("name", ""),
            **counts,
            "size": size(source["bytes"]) if source.get("bytes") else "",
            "setting": source.get("setting", ""),
            "sha256": source.get("sha256", ""),
        }.items()
        if value
    }


def piece_rows(run: Run) -> list[dict[str, str]]:
    """A row a graph: file, how it was made, its price and its fingerprint."""
    rows = []
    for piece in run.pieces:
        made, found = piece.graph.provenance, piece.graph.statistics
        cost: Mapping[str, Any] = made.cost if made else {}
        rows.append(
            {
                "file": piece.file,
                "method": made.method if made else MISSING,
                "seed": str(made.seed) if made else MISSING,
                "nodes": f"{found.nodes:,}",
                "edges": f"{found.edges:,}",
                "size": size(found.bytes),
                "wall time": seconds(cost["wall_seconds"]) if "wall_seconds" in cost else MISSING,
                "CPU time": seconds(cost["cpu_seconds"]) if "cpu_seconds" in cost else MISSING,
                "peak memory": size(1e6 * cost["peak_rss_mb"]) if "peak_rss_mb" in cost else MISSING,
                "gcond": made.gcond_version if made else MISSING,
                "sha256 of the tensors": piece.graph.sha256[:16] + "…",
            }
        )
    return rows


def settings_of(run: Run) -> list[tuple[str, str]]:
    """Each method with the settings that it ran with; the same ones once."""
    found = [
        (made.method, assignments(made.settings) or "no settings")
        for made in (piece.graph.provenance for piece in run.pieces)
        if made is not None
    ]
    return list(dict.fromkeys(found))


def search_facts(search: Search) -> tuple[str, list[tuple[str, ...]]]:
    """One sentence on an architecture search, and its two winners as rows."""
    pearson, took = search.get("pearson"), search.get("seconds") or {}
    sentence = _tried(search)
    if pearson is not None:
        sentence += f"; their validation accuracies on the two graphs correlate by {pearson:.2f} (Pearson)"
        spearman = search.get("spearman")
        sentence += f" and {spearman:.2f} (Spearman, ranks)" if spearman is not None else ""
    rows: list[tuple[str, ...]] = []
    for where, title in (("condensed", "condensed graph"), ("whole", "whole graph")):
        winner, spent = (search.get("winners") or {}).get(where), took.get(where)
        if winner is None and spent is None:
            continue
        rows.append(
            (
                title,
                seconds(spent) if spent is not None else MISSING,
                assignments(winner["settings"]) if winner else MISSING,
                accuracy(winner["mean"], winner["std"] if winner["n"] > 1 else None) if winner else MISSING,
            )
        )
    then = " The winners were then trained and tested on the whole graph." if rows else ""
    return f"{sentence}.{then}", rows


def _tried(search: Search) -> str:
    """``160 of 162 APPNP architectures were trained on both graphs``, where the rest failed or is still to come."""
    count, what = len(search["architectures"]), f"{search['model'].upper()} architecture"
    wanted = math.prod(len(values) for values in search["grid"].values()) if search.get("grid") else 0
    if wanted > count:
        return f"{count:,} of {_times(wanted, what)} {'was' if count == 1 else 'were'} trained on both graphs"
    return f"{_times(count, what)} {'was' if count == 1 else 'were'} tried"


def page_title(runs: Sequence[Run]) -> str:
    """``cora in 70 nodes`` for one run, else the sources by name."""
    names = list(dict.fromkeys(run.source["name"] or run.name for run in runs))
    if len(runs) > 1:
        return f"Condensed graphs: {', '.join(names)}"
    line, search = best_line(runs[0]), runs[0].search
    nodes = line["nodes"] if line else runs[0].pieces[0].graph.num_nodes if runs[0].pieces else None
    what = "architecture search" if search else "comparison"
    return f"{names[0]} in {nodes:,} nodes" if nodes else f"{names[0]}: {what}"
