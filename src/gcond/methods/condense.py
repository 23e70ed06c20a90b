"""``gcond.condense``: from a graph, a method and a budget to a condensed graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.callbacks import Checkpoint, Deadline
from gcond.condensed import CondensedGraph
from gcond.config import settings
from gcond.data import load
from gcond.errors import GcondError, note_once, warn
from gcond.graph import Setting, SourceGraph, budget_for
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.stored_graph import on_engine
from gcond.matching.callback import Callback
from gcond.methods import method_for
from gcond.methods.compact import condense_compact
from gcond.methods.method import Method
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Engine
from gcond.runtime.threads import check_threads
from gcond.runtime.torch_settings import with_usual_torch

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcond.graph.features import FeatureTransform

DEFAULT_METHOD = "gcond"


@with_usual_torch
def condense(
    graph: SourceGraph | Data | str | Path,
    *,
    method: str | Method = DEFAULT_METHOD,
    ratio: str | float | None = None,
    nodes: int | None = None,
    seed: int = 0,
    setting: Setting | None = None,
    directed: bool = False,
    features: FeatureChoice | FeatureTransform | None = None,
    device: str = "auto",
    threads: int | None = None,
    within: str | float | None = None,
    recipe: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | Path | None = None,
    resume: bool = False,
    compact: bool = False,
    keep_digests: bool = False,
    memory_limit: str | int | None = None,
    engine: Engine | None = None,
    send_store: bool = False,
    **options: Any,
) -> CondensedGraph:
    """Condense ``graph`` (or what :func:`gcond.load` makes of it) to a budget given as ``ratio`` or ``nodes``.

    ``method`` is a name from ``gcond methods``, or a :class:`gcond.methods.Method` (your own, too) with its settings.
    With a name, ``options`` are the settings (``gcond methods NAME`` explains them); unknown ones are refused. They go
    before those of ``recipe``, a TOML file or the name of a recipe that comes with gcond, such as ``"cora"``. With a
    ``Method`` there must be neither. The same seed gives the same tensors.

    ``setting``, ``directed`` and ``features`` say how ``graph`` is read, as for :func:`gcond.load`. What was decided or
    repaired there (a split that was drawn, one-way edges that got their reverse) is said as a ``GcondWarning``, by the
    first call alone; a ``SourceGraph`` has said it in its ``notes`` before.

    Methods that learn tell ``callbacks`` (:mod:`gcond.callbacks`) what happens. With ``checkpoint`` they write
    their state to that file at the start, every half a minute and at the end; with ``resume`` they go on from it if
    it is there. The file stays: remove it once the result is saved. Other methods take one step and do none of this.

    ``within`` (``"60s"``, ``"2min"``, or a number of seconds) is a time for all of it, loading included: learning ends
    early enough, and the best so far is kept; with ``compact``, a cut that there is no time to choose is the one that
    was chosen for the start. What cannot be ended early and took longer is said as a ``UserWarning``.

    ``threads`` is the number of CPU threads; by default it is as many as the work deserves, one for all but large
    graphs. Afterwards torch has as many as before. With another number large sums may round differently, so the
    provenance has it.
    With ``compact`` the result takes as few bytes as validation accuracy allows, as by :func:`gcond.compact`; methods
    that learn features do so with the cut in place. ``keep_digests`` is that of :func:`gcond.compact`.

    ``memory_limit`` is for a packed store, as for :func:`gcond.load`; products with a graph that stays on disk are then
    worked off by ``engine`` (:func:`gcond.open_engine`), if one is given, in groups of columns. Its machines read the
    store at the same path; with ``send_store`` they need no folder in common, and get what they work on through Ray.
    """
    deadline = Deadline(within) if within is not None else None
    check_threads(threads)
    if resume and checkpoint is None:
        raise GcondError("resume needs to know what from: give the file, for example checkpoint='run.checkpoint'")
    if send_store and engine is None:
        raise GcondError("send_store=True is for an engine: give one, as by open_engine('ray'), or leave it out")
    if keep_digests and not compact:
        raise GcondError("keep_digests=True is for compact=True: a plain file has its digests anyway, so leave it out")
    chosen = method_for(method, options, recipe)
    seed = settings.whole_number(seed, "seed")
    source = load(graph, setting=setting, directed=directed, features=features, memory_limit=memory_limit)
    if engine is not None:
        source = on_engine(source, engine, send_store=send_store)
    for note in () if isinstance(graph, SourceGraph) else source.notes:  # who did the loading has them already
        note_once(f"{source.name}: {note}")
    budget = budget_for(source, ratio=ratio, nodes=nodes)
    if checkpoint is not None:
        callbacks = [Checkpoint(checkpoint, resume=resume), *callbacks]
    if deadline is not None:
        callbacks = [*callbacks, deadline]
    make = partial(condense_compact, chosen, keep_digests=keep_digests) if compact else chosen.condense
    condensed = make(source, budget, seed, device=choose_device(device), callbacks=callbacks, threads=threads)
    learned = chosen.kind == "learned"
    if deadline is not None and (late := deadline.overrun(chosen.name, learned=learned, compact=compact)):
        warn(late)
    return condensed
