"""``gcond.compact``: a condensed graph in few bytes, as few as validation accuracy allows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from gcond.condensed import Compaction, CondensedGraph
from gcond.condensed.compaction import Bits
from gcond.condensed.origin import load_origin, source_difference
from gcond.condensed.provenance import CompactionRecord, Cost, TriedCut
from gcond.config import settings
from gcond.config.metric import Metric
from gcond.errors import DivergedError, GcondError, warn
from gcond.graph import Budget, LabelledView, SourceGraph
from gcond.matching.callback import Callback
from gcond.methods.gradient_matching import GradientMatching
from gcond.methods.method import Method
from gcond.models import GCN
from gcond.runtime.device import choose_device
from gcond.runtime.progress_tick import Tick, ignore
from gcond.runtime.stopwatch import Stopwatch
from gcond.runtime.threads import threads_for
from gcond.runtime.torch_settings import with_usual_torch
from gcond.training import Recipe, fit
from gcond.training.largest_product import largest_product

if TYPE_CHECKING:
    from torch_geometric.data import Data

TOLERANCE = 0.002
"""Mean validation accuracy that a cut may cost, a fraction; the strongest that costs no more is taken, so less than the
0.003 that are meant: among many cuts, one that is a little too strong may be lucky."""

# How a cut is judged: the usual test model, trained half as long from the same seeds on every one.
MODEL = GCN(layers=2, hidden=256)
RECIPE = Recipe(epochs=300, validate_every=10)
RUNS = 10

STRONGEST = 64
"""The strongest cut keeps one of so many features; the next ones keep 2^¼ times as many each in 4 bits, and twice as
many each in 8."""

ENOUGH = 0.04
"""Share of the source's bytes that is few enough for most: of cuts below it only the weakest is tried, since validation
nodes are too few to see the little that each stronger one costs, unless one is :data:`CLOSE`."""
TINY = 0.02
"""Share of the source's bytes that is few enough for anyone."""
CLOSE = 0.03
"""Share of the variance of X', about the mean of its rows, that a cut may change to be tried all the same down to
:data:`TINY`: three times what rounding all entries to 4 bits does."""
FEW = 0.05
"""Share of the source's bytes above which a cut that keeps to the tolerance is still many bytes; then the best one
below it is taken instead, if it costs at most :data:`DEARER` times the tolerance."""
DEARER = 1.5


@with_usual_torch
def compact(
    condensed: CondensedGraph | str | Path,
    *,
    on: SourceGraph | Data | str | Path | None = None,
    entries: int | None = None,
    bits: Bits | None = None,
    tolerance: float = TOLERANCE,
    seed: int = 0,
    keep_structure: bool = False,
    device: str = "auto",
    on_progress: Tick = ignore,
) -> CondensedGraph:
    """The graph ``condensed`` (or its file) in few bytes: each row of X' keeps its largest entries, in few bits each.

    How few is chosen by a ladder of cuts from strong to weak, the first of them at about 4 % of the source's bytes, or
    as few as 2 % where that leaves X' nearly as it is. A GCN is trained on each, from the same seeds, and scored on the
    validation nodes of the source graph ``on``; the first whose mean accuracy is at most ``tolerance`` below that of
    the uncut graph is taken. Where that is more than 5 % of the source's bytes, the best one below 5 % is taken if it
    costs at most one and a half times the tolerance.
    ``entries`` per row or ``bits`` (4, 8, 16 or 32, by default 8) say it instead, and need no source.

    Soft labels and weights of edges are rounded too, indices lie in the smallest integers. The weights of a learned
    structure, from which a graph can be grown, are dropped unless ``keep_structure``. Scores of ``condensed`` are of
    another graph and are dropped; the provenance says what was cut, and what each cut of the ladder scored.
    """
    small = condensed if isinstance(condensed, CondensedGraph) else CondensedGraph.load(condensed)
    seed = settings.whole_number(seed, "seed")
    if not 0 <= tolerance < 1:
        raise GcondError(f"tolerance={tolerance:g} is no share of accuracy: give 0 or more, and less than 1")
    if entries is not None or bits is not None:
        return _finish(small, Choice(Compaction(entries, bits or 8)), keep_structure=keep_structure)
    if on is None:
        raise GcondError(
            "how much can be cut is judged on the source graph: give on=SOURCE, or say it yourself, as entries=100 does"
        )
    graph = load_origin(small.provenance, on)
    if said := source_difference(small.provenance, graph):
        warn(said)
    choice = choose(small, graph, seed, choose_device(device), tolerance=tolerance, on_progress=on_progress)
    return _finish(small, choice, keep_structure=keep_structure)


def condense_compact(
    method: Method,
    graph: SourceGraph,
    budget: Budget,
    seed: int,
    *,
    device: torch.device | str = "cpu",
    callbacks: Sequence[Callback] = (),
    threads: int | None = None,
) -> CondensedGraph:
    """``method.condense``, compacted. Where features are learned the cut is in place while they learn.

    It is then chosen on what learning starts from, unless the method says itself how many entries it keeps; in how many
    bits they are held is decided at the end.
    """
    if not isinstance(method, GradientMatching):
        small = method.condense(graph, budget, seed, device, callbacks, threads=threads)
        return _finish(small, choose(small, graph, seed, device, metric=method.chooses_by))
    first: Choice | None = None
    if not method.entries:
        unlearned = dataclasses.replace(method, epochs=0, probe_every=0)
        start = unlearned.condense(graph, budget, seed, device, threads=threads)
        first = choose(start, graph, seed, device, metric=method.metric)
        method = dataclasses.replace(method, entries=first.compaction.entries or 0)
    small = method.condense(graph, budget, seed, device, callbacks, threads=threads)
    entries = method.entries or small.x.shape[1]
    choice = choose(small, graph, seed, device, entries=entries, metric=method.metric)
    return _finish(small, dataclasses.replace(choice, start=first))


@dataclass(frozen=True)
class Rung:
    """A cut that was tried."""

    compaction: Compaction
    bytes: int
    accuracy: float
    """Mean validation accuracy, a fraction."""


@dataclass(frozen=True)
class Choice:
    """The cut that is taken, and how that was found."""

    compaction: Compaction
    uncut: float | None = None
    """Mean validation accuracy before, where it was measured."""
    tolerance: float | None = None
    rungs: tuple[Rung, ...] = ()
    seconds: tuple[float, float] = (0.0, 0.0)
    """Wall and CPU seconds that it took."""
    start: Choice | None = None
    """The choice of entries before anything was learned."""
    metric: Metric = "accuracy"
    """What stands in the place of accuracy."""

    @property
    def spent(self) -> tuple[float, float]:
        """:attr:`seconds`, those of the start included."""
        earlier = self.start.spent if self.start is not None else (0.0, 0.0)
        return self.seconds[0] + earlier[0], self.seconds[1] + earlier[1]


def choose(
    small: CondensedGraph,
    graph: SourceGraph,
    seed: int,
    device: torch.device | str = "cpu",
    *,
    tolerance: float = TOLERANCE,
    entries: int | None = None,
    metric: Metric = "accuracy",
    on_progress: Tick = ignore,
) -> Choice:
    """The strongest cut of ``small`` that keeps its validation accuracy (or ``metric``).

    ``entries`` leaves the bits to choose.
    """
    for what, own, there in (
        ("features", small.x.shape[1], graph.num_features),
        ("classes", small.num_classes, graph.num_classes),
    ):
        if own != there:
            raise GcondError(
                f"the condensed graph has {own} {what} and '{graph.name}' has {there}: give the source it was made from"
            )
    val = graph.view("val").to(device)
    if len(val.nodes) == 0:
        raise GcondError("there is no validation node to judge a cut by: say yourself how many entries a row keeps")
    watch, uncut = Stopwatch(), _reached(small, val, seed, metric)
    rungs: list[Rung] = []
    cuts = ladder(small, entries)
    if entries is None:
        cuts = cuts[_first(small, cuts, graph.nbytes) :]
    for place, compaction in enumerate(cuts):
        on_progress("trying cuts", place, len(cuts), str(compaction))
        smaller = small.compacted(compaction)
        same = smaller.sha256 == small.sha256  # only the form is another, so there is nothing to measure
        rungs.append(Rung(compaction, smaller.nbytes, uncut if same else _reached(smaller, val, seed, metric)))
        if rungs[-1].accuracy >= uncut - tolerance:
            break
    taken = rungs[-1]
    if taken.bytes > FEW * graph.nbytes:
        few = [rung for rung in reversed(rungs) if rung.bytes <= FEW * graph.nbytes]
        best = max(few, key=lambda rung: rung.accuracy, default=taken)  # of equal ones the weakest
        taken = best if best.accuracy >= uncut - DEARER * tolerance else taken
    return Choice(taken.compaction, uncut, tolerance, tuple(rungs), watch.spent(), metric=metric)


def _first(small: CondensedGraph, cuts: Sequence[Compaction], whole: int) -> int:
    """The place of the strongest cut that is tried, of those from strong to weak, for a source of ``whole`` bytes."""
    sizes = [small.compacted(cut).nbytes for cut in cuts]
    usual, least = (max(0, sum(size <= share * whole for size in sizes) - 1) for share in (ENOUGH, TINY))
    variance = float((small.x - small.x.mean(0)).square().sum())
    for place in range(least, usual):
        if float((small.compacted(cuts[place]).x - small.x).square().sum()) <= CLOSE * variance:
            return place
    return usual


def ladder(small: CondensedGraph, entries: int | None = None) -> list[Compaction]:
    """Cuts of ``small`` from strong to weak, by bytes; one changes nothing but the form, so one of them will do."""
    features = small.x.shape[1]
    most = int(torch.count_nonzero(small.x, dim=1).max())
    widest = None if entries is None or entries >= features else entries
    last = [Compaction(widest, 4), Compaction(widest, 8), Compaction(widest, 16), Compaction(widest, 32)]
    if entries is not None:
        return last
    counts = [max(1, round(features / STRONGEST * 2 ** (step / 4))) for step in range(24)]
    cuts = [*(Compaction(count, 4) for count in counts), *(Compaction(count, 8) for count in counts[::4])]
    some = [cut for cut in dict.fromkeys(cuts) if cut.entries is not None and cut.entries < most]
    return sorted([*some, *last], key=lambda cut: small.compacted(cut).nbytes)


def _reached(small: CondensedGraph, val: LabelledView, seed: int, metric: Metric) -> float:
    """Mean validation accuracy, or ``metric``, of :data:`RUNS` models, 0 where they diverge."""
    seeds, recipe = list(range(seed, seed + RUNS)), dataclasses.replace(RECIPE, metric=metric)
    view = small.view().to(val.y.device)
    work = max(largest_product(MODEL, each, small.num_classes) for each in (view, val))
    try:
        with threads_for(work):
            found = fit(MODEL, view, val, classes=small.num_classes, seeds=seeds, recipe=recipe)
    except DivergedError:
        return 0.0
    return float(found.val_accuracy.mean())


def _finish(small: CondensedGraph, choice: Choice, *, keep_structure: bool = False) -> CondensedGraph:
    """``small`` as ``choice`` has it, and that in its provenance."""
    made = small.compacted(choice.compaction)
    made = made if keep_structure else dataclasses.replace(made, structure={})
    if made.provenance is None:
        return made
    wall, cpu = choice.spent
    cost = Cost(**made.provenance.cost)
    cost["wall_seconds"] = cost.get("wall_seconds", 0.0) + wall
    cost["cpu_seconds"] = cost.get("cpu_seconds", 0.0) + cpu
    record = CompactionRecord(compacted_from=small.sha256, bytes_before=small.nbytes, bytes_after=made.nbytes)
    record |= _described(choice)
    if choice.start is not None:
        record["start"] = _described(choice.start)
    provenance = dataclasses.replace(made.provenance, cost=cost, compaction=record)
    return dataclasses.replace(made, provenance=provenance)


def _described(choice: Choice) -> CompactionRecord:
    record = CompactionRecord(entries=choice.compaction.entries, bits=choice.compaction.bits)
    if choice.uncut is None or choice.tolerance is None:
        return record
    rungs = [
        TriedCut(entries=cut.entries, bits=cut.bits, bytes=rung.bytes, val_accuracy=rung.accuracy)
        for rung in choice.rungs
        for cut in (rung.compaction,)
    ]
    tried = CompactionRecord(val_accuracy=choice.uncut, tolerance=choice.tolerance, runs=RUNS, ladder=rungs)
    if choice.metric != "accuracy":
        tried["metric"] = choice.metric
    return record | tried
