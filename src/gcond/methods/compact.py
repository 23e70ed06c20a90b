"""``gcond.compact``: a condensed graph in few bytes, as few as validation accuracy allows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from gcond.callbacks.deadline import OUT_OF_TIME
from gcond.condensed import Compaction, CondensedGraph
from gcond.condensed.compaction import LARGEST_STEP, SMALLEST_STEP, Bits, relative_step
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
from gcond.training.fit import predict
from gcond.training.largest_product import largest_product

if TYPE_CHECKING:
    from torch_geometric.data import Data

TOLERANCE = 0.002
"""Mean validation accuracy that a cut may cost, a fraction; the strongest that costs no more is taken, so less than the
0.003 that are meant: among many cuts, one that is a little too strong may be lucky. See also :data:`DEARER`."""

# How a cut is judged: the usual test model, trained half as long from the same seeds on every one. The weights are the
# last ones: with those of the best epoch on validation nodes even 8 bits put 0.8 % of Cora's nodes into other classes.
MODEL = GCN(layers=2, hidden=256)
RECIPE = Recipe(epochs=300, select="last")
RUNS = 5

STEPS = tuple(2 ** (-place / 2) for place in range(1, 7))
"""Steps of the cuts that are tried, in units of the root mean square of X', from strong to weak."""

CHANGED = 0.005
"""Share of the source's nodes that a cut may put into another class. Validation nodes are too few to see what little a
cut costs, but the classes of all nodes show how much it changes, and no label is needed for that. No more than this can
be lost; how much of it is was not measured well (docs/compact.md)."""
ASKED = 10_000
"""Nodes whose classes are compared, at most."""
ENOUGH = 0.04
"""Share of the source's bytes that is few enough for anyone: only cuts below it must prove that they change little."""
FEW = 0.05
"""Share of the source's bytes above which a cut that keeps to the tolerance is still many bytes; then the weakest one
below it is taken instead, if it costs at most :data:`DEARER` times the tolerance."""
DEARER = 1.5
"""So many times the tolerance may be lost by a cut that changes few classes: of 500
validation nodes these are two or three."""


@with_usual_torch
def compact(
    condensed: CondensedGraph | str | Path,
    *,
    on: SourceGraph | Data | str | Path | None = None,
    entries: int | None = None,
    bits: Bits | None = None,
    step: float | None = None,
    tolerance: float = TOLERANCE,
    seed: int = 0,
    keep_structure: bool = False,
    keep_digests: bool = False,
    device: str = "auto",
    on_progress: Tick = ignore,
) -> CondensedGraph:
    """The graph ``condensed`` (or its file) in few bytes: the entries of X' become whole multiples of a step.

    How large a step is chosen by a ladder of cuts from strong to weak. A GCN is trained on each, from the same seeds,
    and scored on the validation nodes of the source graph ``on``. The first is taken that puts at most 0.5 % of the
    source's nodes into another class than the uncut graph does and costs at most one and a half times ``tolerance`` of
    mean accuracy, or that takes 4 % of the source's bytes and costs at most ``tolerance``. Where it takes more than
    5 %, the weakest one below 5 % is taken if it costs at most one and a half times the tolerance.
    ``step`` (in units of the root mean square of X'), or the largest ``entries`` per row that are kept and the ``bits``
    (4, 8, 16 or 32, by default 8) of each, say it instead, and need no source.

    Soft labels and weights of edges are rounded too, indices lie in the smallest integers. The weights of a learned
    structure, from which a graph can be grown, are dropped unless ``keep_structure``, and the digests of the source's
    nodes, by which :func:`gcond.update` finds these again and says what changed, unless ``keep_digests``. Scores of
    ``condensed`` are of another graph and are dropped; the provenance says what was cut, and what each cut of the
    ladder scored.
    """
    small = condensed if isinstance(condensed, CondensedGraph) else CondensedGraph.load(condensed)
    seed = settings.whole_number(seed, "seed")
    if not 0 <= tolerance < 1:
        raise GcondError(f"tolerance={tolerance:g} is no share of accuracy: give 0 or more, and less than 1")
    if step is not None and not 0 < step < math.inf:
        raise GcondError(f"step={step:g} is no share of the features' root mean square: give more than 0, such as 0.25")
    if entries is not None or bits is not None or step is not None:
        absolute = None if step is None else _absolute(small, step)
        given = Compaction(entries, bits or 8, absolute)
        return compact_as(small, given, keep_structure=keep_structure, keep_digests=keep_digests)
    if on is None:
        raise GcondError(
            "how much can be cut is judged on the source graph: give on=SOURCE, or say it yourself, as entries=100 does"
        )
    graph = load_origin(small.provenance, on)
    if said := source_difference(small.provenance, graph):
        warn(said)
    choice = choose(small, graph, seed, choose_device(device), tolerance=tolerance, on_progress=on_progress)
    return _finish(small, choice, keep_structure=keep_structure, keep_digests=keep_digests)


def _absolute(small: CondensedGraph, step: float) -> float:
    found = relative_step(small.x, step)
    if SMALLEST_STEP <= found <= LARGEST_STEP:
        return found
    raise GcondError(
        f"step={step:g} of features whose root mean square is {found / step:.2g} is {found:.2g}, and a step has to be "
        f"between {SMALLEST_STEP:.0e} and {LARGEST_STEP:.0e}: give bits=8, which is for any scale"
    )


def compact_as(
    small: CondensedGraph, compaction: Compaction, *, keep_structure: bool = False, keep_digests: bool = False
) -> CondensedGraph:
    """``small`` cut as ``compaction`` says."""
    return _finish(small, Choice(compaction), keep_structure=keep_structure, keep_digests=keep_digests)


def condense_compact(
    method: Method,
    graph: SourceGraph,
    budget: Budget,
    seed: int,
    *,
    device: torch.device | str = "cpu",
    callbacks: Sequence[Callback] = (),
    threads: int | None = None,
    keep_digests: bool = False,
) -> CondensedGraph:
    """``method.condense``, compacted. Where features are learned the cut is in place while they learn.

    It is then chosen on what learning starts from, unless the method says itself how many entries it keeps; in how many
    bits they are held is decided at the end. Where that is the start again, or ``callbacks`` have no time left, the
    first choice stays.
    """

    def has_time(seconds: float) -> bool:
        return all(each.has_time(seconds) for each in callbacks)

    if not isinstance(method, GradientMatching):
        small = method.condense(graph, budget, seed, device, callbacks, threads=threads)
        choice = choose(small, graph, seed, device, metric=method.chooses_by, has_time=has_time)
        return _finish(small, choice, keep_digests=keep_digests)
    first: Choice | None = None
    if not method.entries:
        unlearned = dataclasses.replace(method, epochs=0, probe_every=0)
        start = unlearned.condense(graph, budget, seed, device, threads=threads)
        first = choose(start, graph, seed, device, metric=method.metric, has_time=has_time)
        for each in callbacks:
            each.comes_after(first.seconds[0])
        before = start.compacted(first.compaction).sha256
        # As many entries as the fullest row of the cut start has, so that learning hides no more than that cut did.
        fullest = int(torch.count_nonzero(start.compacted(first.compaction).x, dim=1).max())
        method = dataclasses.replace(method, entries=fullest if fullest < start.x.shape[1] else 0)
    small = method.condense(graph, budget, seed, device, callbacks, threads=threads)
    if first is not None and small.compacted(first.compaction).sha256 == before:
        return _finish(small, first, keep_digests=keep_digests)  # the graph that was judged then
    if first is not None and not has_time(first.seconds[0]):
        choice = Choice(first.compaction, ended=OUT_OF_TIME)
    else:
        entries, otherwise = method.entries or small.x.shape[1], None if first is None else first.compaction
        choice = choose(
            small, graph, seed, device, entries=entries, metric=method.metric, has_time=has_time, otherwise=otherwise
        )
    return _finish(small, dataclasses.replace(choice, start=first), keep_digests=keep_digests)


@dataclass(frozen=True)
class Rung:
    """A cut that was tried."""

    compaction: Compaction
    bytes: int
    accuracy: float
    """Mean validation accuracy, a fraction."""
    changed: float
    """Share of nodes whose class is another than by the uncut graph."""


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
    ended: str = ""
    """Why no more cuts were tried, where more were due."""

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
    has_time: Callable[[float], bool] = lambda seconds: True,
    otherwise: Compaction | None = None,
) -> Choice:
    """The strongest cut of ``small`` that keeps its validation accuracy (or ``metric``).

    ``entries`` leaves the bits to choose. Between two cuts it asks whether it ``has_time`` for as many seconds as the
    longest took. If that is for one more alone, it tries the weakest of few bytes. If there is none, the last one is
    taken if it costs or changes little, else ``otherwise``, or the form that cuts nothing.
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
    watch, due = Stopwatch(), ladder(small, entries)
    unchanged = next(cut for cut in due if cut.bits == 32)
    if not has_time(0.0):
        return Choice(otherwise or unchanged, ended=OUT_OF_TIME)
    uncut = _reached(small, val, seed, metric)
    rungs: list[Rung] = []
    longest, few, count, holds, late = watch.spent()[0], FEW * graph.nbytes, len(due), False, False
    while due and not holds and not late:
        if late := not has_time(longest):
            break
        if late := not has_time(2 * longest):  # it is for one more alone: the likeliest to hold of those of few bytes
            due = [*due[:1], *(cut for cut in due if small.compacted(cut).nbytes <= few)][-1:]
        compaction, began = due.pop(0), watch.spent()[0]
        on_progress("trying cuts", len(rungs), count, str(compaction))
        smaller = small.compacted(compaction)
        same = smaller.sha256 == small.sha256  # only the form is another, so there is nothing to measure
        reached = uncut if same else _reached(smaller, val, seed, metric)
        rungs.append(Rung(compaction, smaller.nbytes, reached.accuracy, reached.differs(uncut)))
        proven, enough = rungs[-1].changed <= CHANGED, smaller.nbytes >= ENOUGH * graph.nbytes
        allowed = DEARER * tolerance if proven else tolerance
        holds = (proven or enough) and reached.accuracy >= uncut.accuracy - allowed
        longest = max(longest, watch.spent()[0] - began)
    least = uncut.accuracy - DEARER * tolerance
    if late and not (rungs and (rungs[-1].accuracy >= least or rungs[-1].changed <= CHANGED)):
        if otherwise is not None:
            return Choice(otherwise, seconds=watch.spent(), ended=OUT_OF_TIME)
        rungs.append(Rung(unchanged, small.compacted(unchanged).nbytes, uncut.accuracy, 0.0))
    taken, cheap = rungs[-1], [rung for rung in rungs if rung.bytes <= few]
    if taken not in cheap and cheap and cheap[-1].accuracy >= least:
        taken = cheap[-1]
    ended = OUT_OF_TIME if late else ""
    found = Choice(taken.compaction, uncut.accuracy, tolerance, tuple(rungs), watch.spent(), metric=metric)
    return dataclasses.replace(found, ended=ended)


def ladder(small: CondensedGraph, entries: int | None = None) -> list[Compaction]:
    """Cuts of ``small`` from strong to weak, by bytes; one changes nothing but the form, so one of them will do.

    The form that it has already is among them, so a compact graph never becomes larger.
    """
    widest = None if entries is None or entries >= small.x.shape[1] else entries
    steps = [relative_step(small.x, share) for share in STEPS]
    cuts = [Compaction(widest, step=step) for step in steps if SMALLEST_STEP <= step <= LARGEST_STEP]
    last = [Compaction(widest, 8), Compaction(widest, 16), Compaction(widest, 32)]
    present = [] if small.compaction is None else [small.compaction]
    others = [cut for cut in (*cuts, *last) if cut not in present]
    return sorted([*present, *others], key=lambda cut: small.compacted(cut).nbytes)  # of equal ones the present first


@dataclass(frozen=True, eq=False)
class Reached:
    """What models that were trained on a graph do on its source."""

    accuracy: float
    """Mean validation accuracy, or the metric in its place; 0 where they diverge."""
    classes: torch.Tensor | None = None
    """int64 [R, m]: the classes that each of them gives some of the source's nodes; ``None`` where they diverge."""

    def differs(self, other: Reached) -> float:
        """The share of the nodes that have another class, the mean over the runs."""
        if self.classes is None or other.classes is None:
            return 1.0
        return float((self.classes != other.classes).double().mean())


def _reached(small: CondensedGraph, val: LabelledView, seed: int, metric: Metric) -> Reached:
    """What :data:`RUNS` models reach; their classes are those of nodes that validation may see."""
    seeds, recipe = list(range(seed, seed + RUNS)), dataclasses.replace(RECIPE, metric=metric)
    view = small.view().to(val.y.device)
    asked = _asked(val)
    work = max(largest_product(MODEL, each, small.num_classes) for each in (view, val))
    try:
        with threads_for(work):
            found = fit(MODEL, view, val, classes=small.num_classes, seeds=seeds, recipe=recipe)
            classes = predict(MODEL, found.parameters, asked.focus(MODEL.reach, MODEL.precomputed))
    except DivergedError:
        return Reached(0.0)
    return Reached(float(found.val_accuracy.mean()), classes)


def _asked(val: LabelledView) -> LabelledView:
    """Up to :data:`ASKED` nodes of the graph that validation sees, evenly spaced; their labels are not there."""
    count = val.inputs.num_nodes
    nodes = torch.arange(min(count, ASKED), device=val.nodes.device) * count // min(count, ASKED)
    return LabelledView(val.inputs, nodes, torch.zeros_like(nodes), val.source_index)


def _finish(
    small: CondensedGraph, choice: Choice, *, keep_structure: bool = False, keep_digests: bool = False
) -> CondensedGraph:
    """``small`` as ``choice`` has it, and that in its provenance; without what is larger than all the rest."""
    made = small.compacted(choice.compaction)
    made = made if keep_structure else dataclasses.replace(made, structure={})
    made = made if keep_digests else dataclasses.replace(made, digests=None)
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
    record = CompactionRecord(entries=choice.compaction.entries)
    if choice.ended:
        record["ended"] = choice.ended
    if choice.compaction.step is None:
        record["bits"] = choice.compaction.bits
    else:
        record["step"] = choice.compaction.step
    if choice.uncut is None or choice.tolerance is None:
        return record
    rungs = [_tried(rung) for rung in choice.rungs]
    tried = CompactionRecord(val_accuracy=choice.uncut, tolerance=choice.tolerance, runs=RUNS, ladder=rungs)
    if choice.metric != "accuracy":
        tried["metric"] = choice.metric
    return record | tried


def _tried(rung: Rung) -> TriedCut:
    cut = rung.compaction
    tried = TriedCut(entries=cut.entries, bytes=rung.bytes, val_accuracy=rung.accuracy, changed=rung.changed)
    if cut.step is None:
        tried["bits"] = cut.bits
    else:
        tried["step"] = cut.step
    return tried
