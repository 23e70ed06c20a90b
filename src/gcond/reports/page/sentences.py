"""A run in sentences: the title of its page, its headline, and what searches found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gcond.reports.page.page_run import ENOUGH, PageRun
from gcond.reports.tables import accuracy, assignments, count, percent, seconds, size
from gcond.reports.tuning_table import searched_on
from gcond.results import Audit, Line, Search, Tuning


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
    """The headline of a run: one sentence and a few numbers."""

    sentence: Sentence
    tiles: tuple[Tile, ...]
    chosen: str = ""
    """Why this graph of several, in a sentence."""


def page_title(runs: Sequence[PageRun]) -> str:
    """``cora in 70 nodes`` for one run, else the sources by name."""
    names = list(dict.fromkeys(run.source.name or run.name for run in runs))
    if len(runs) > 1:
        return f"Condensed graphs: {', '.join(names)}"
    line, first = runs[0].best_line, runs[0].first_graph
    nodes = line.nodes if line else first.graph.num_nodes if first else None
    what = _searched(runs[0]) or "comparison"
    return f"{names[0]} in {nodes:,} nodes" if nodes else f"{names[0]}: {what}"


def headline(run: PageRun) -> Headline:
    """Accuracy kept, nodes, bytes and the price, of the best line; without scores, of the first graph."""
    line, name = run.best_line, Name(run.source.name or "the source graph")
    if line is None:
        return _unscored(run, name)
    alike = [each for each in run.comparison.lines if each.model == line.model]
    whole = next((each for each in alike if each.is_whole), None)
    model, changes, reached = line.model.upper(), assignments(line.changes), accuracy(line.mean, line.spread)
    sentence: Sentence = (*_made(run, line, name), ". A ", Name(model), " trained on them")
    sentence += (" with ", Name(changes)) if changes else ()
    sentence += (f" gets {percent(line.mean)} % of the test nodes right",)
    sentence += (f"; trained on the whole graph, {percent(whole.mean)} %." if whole else ".",)
    if line.kept is None:
        tiles = [Tile(f"{percent(line.mean)} %", "test accuracy", f"{model}, {count(line.n, 'training')}")]
    else:
        against = f"{reached} against {accuracy(whole.mean, whole.spread)}" if whole else f"{reached} %"
        tiles = [Tile(f"{percent(line.kept)} %", "of the accuracy", against)]
    tiles += _sizes(run, line.nodes, line.bytes)
    if line.condense_cpu_seconds is not None:
        tiles.append(_price(line.condense_cpu_seconds, _pays_off(line, whole is not None)))
    return Headline(sentence, tuple(tiles), _why(line, len(alike) - (whole is not None)))


def search_sentence(search: Search) -> str:
    """A sentence on how many architectures were tried, and how far the two graphs agree on them."""
    sentence = _tried(search)
    if search.pearson is not None:
        sentence += f"; their validation accuracies on the two graphs correlate by {search.pearson:.2f} (Pearson)"
        sentence += f" and {search.spearman:.2f} (Spearman, ranks)" if search.spearman is not None else ""
    return f"{sentence}.{' The winners were then trained and tested on the whole graph.' if search.winners else ''}"


def tuning_sentence(found: Tuning) -> str:
    """A sentence on what was tried, and what the winner reaches on the whole graph."""
    models = ", ".join(model.upper() for model in found.models)
    where = f"on {searched_on(found)}"
    sentence = f"{count(len(found.trials), 'configuration')} of {models} {_were(len(found.trials))} tried {where}"
    winner, usual = found.winner, found.usual
    if winner is None or winner.mean is None:
        return f"{sentence}; none of them has been tested on the whole graph yet."
    sentence += (
        f". Trained on the whole graph, the winner gets {accuracy(winner.mean, winner.spread)} % of the test nodes"
    )
    sentence += f" right (n = {len(winner.test)})"
    if usual is not None and usual is not winner and usual.mean is not None:
        sentence += f", the usual configuration {accuracy(usual.mean, usual.spread)} %"
    return f"{sentence}. No test node was looked at before that."


def audit_sentence(found: Audit) -> Sentence:
    """Accuracy without noise, and under the worst of it before condensing, on everything trained on; first model."""
    model, stages = found.models[0], found.noises("before")
    parts: list[str] = [f"Test accuracy with {model.upper()} without noise"]
    parts.append(", and at worst where the source was changed before condensing: " if stages else ": ")
    shown = [(subject.name, clean) for subject in found.subjects if (clean := found.accuracy(subject.name, model))]
    for place, (name, clean) in enumerate(shown):
        noisy = [one.mean for noise in stages if (one := found.accuracy(name, model, "before", noise))]
        worst = f" and {percent(min(noisy))} %" if noisy else f"{' (not measured with noise)' if stages else ''}"
        parts += ["; " if place else "", Name(name), f" {percent(clean.mean)} %{worst}"]
    return (*parts, ".")


def _searched(run: PageRun) -> str:
    """The kind of search that the run holds, if it holds one."""
    if run.search:
        return "architecture search"
    if run.tuning:
        return "hyper-parameter search"
    return "audit" if run.audit else ""


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _tried(search: Search) -> str:
    """``160 of 162 APPNP architectures were trained on both graphs``, where the rest failed or is still to come."""
    tried, what = len(search.architectures), f"{search.model.upper()} architecture"
    wanted = math.prod(len(values) for values in search.grid.values()) if search.grid else 0
    verb = _were(tried)
    if wanted > tried:
        return f"{tried:,} of {count(wanted, what)} {verb} trained on both graphs"
    return f"{count(tried, what)} {verb} tried"


def _made(run: PageRun, line: Line, name: Name) -> Sentence:
    """``gcond condensed the 2,708 nodes of cora into 70``."""
    before, nodes = run.source.nodes, f"{line.nodes:,}"
    verb = {"selected": "picked", "merged": "merged"}.get(line.kind, "condensed")
    start = Name(line.method), f" {verb} "
    if not before:
        return (*start, name, f" into {nodes} nodes")
    if verb == "picked":
        return (*start, f"{nodes} of the {before:,} nodes of ", name)
    return (*start, f"the {before:,} nodes of ", name, f" into {nodes}")


def _unscored(run: PageRun, name: Name) -> Headline:
    first = run.first_graph
    if first is None:
        kind = _searched(run)
        what = f"{'An' if kind[0] == 'a' else 'A'} {kind} on " if kind else "No condensed graph came of "
        return Headline((what, name, "."), ())
    found, made = first.graph.statistics, first.graph.provenance
    by = (" by ", Name(made.method)) if made else ()
    tiles = _sizes(run, found.nodes, found.bytes)
    if made and "cpu_seconds" in made.cost:
        tiles.append(_price(made.cost["cpu_seconds"]))
    unknown = ". How well models train on them is not recorded."
    return Headline((f"{found.nodes:,} nodes made", *by, " from ", name, unknown), tuple(tiles))


def _sizes(run: PageRun, nodes: int, stored: float) -> list[Tile]:
    tiles = []
    before, bytes_before = run.source.nodes, run.source.bytes
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


def _price(cpu_seconds: float, detail: str = "") -> Tile:
    return Tile(seconds(cpu_seconds), "of CPU time to condense", detail)


def _pays_off(line: Line, compared: bool) -> str:
    """After how many trainings the time spent on condensing has come back."""
    if line.break_even is not None:
        return f"paid back after {count(line.break_even, 'training')}"
    timed = compared and line.train_cpu_seconds is not None
    return "training is no quicker, so it does not pay back in time" if timed else ""


def _why(line: Line, rivals: int) -> str:
    if rivals < 2:
        return ""
    if (line.kept or 0) >= ENOUGH:
        return f"These numbers are of the smallest graph, in bytes, that keeps {percent(ENOUGH, 0)} % of the accuracy."
    return "These numbers are of the most accurate of the graphs below."
