"""``gcond.update``: a condensed graph brought along when its source has changed."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from gcond import methods
from gcond.condensed import CondensedGraph, Provenance, Task
from gcond.condensed.origin import load_origin
from gcond.condensed.provenance import Changes, Cost, Update
from gcond.condensed.source_changes import SourceChanges, unknown_ids
from gcond.config import settings
from gcond.errors import GcondError, warn
from gcond.graph import SourceGraph, budget_for
from gcond.graph.budget import nodes_per_class
from gcond.graph.group_heirs import continued
from gcond.graph.stored_graph import StoredGraph
from gcond.matching.callback import Callback
from gcond.methods.cluster_updates import groups_before, updated_clusters
from gcond.methods.clusters import Clusters
from gcond.methods.compact import compact_as
from gcond.methods.gradient_matching import GradientMatching
from gcond.methods.learned_updates import check_structure, learned_again
from gcond.methods.method import Method
from gcond.methods.selection_updates import selected_again
from gcond.runtime.device import choose_device
from gcond.runtime.stopwatch import Stopwatch
from gcond.runtime.threads import check_threads, threads_for
from gcond.runtime.torch_settings import with_usual_torch

if TYPE_CHECKING:
    from torch_geometric.data import Data


@with_usual_torch
def update(
    condensed: CondensedGraph | str | Path,
    *,
    on: SourceGraph | Data | str | Path,
    nodes: int | None = None,
    ratio: str | float | None = None,
    seed: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> CondensedGraph:
    """Bring ``condensed`` (a graph, or its file) along to what its source has become, the graph ``on``.

    Nodes, edges, labels and classes may have come or gone and features may have changed; the number of features and the
    way in which the graph is read stay. Nodes are the same if they have the same ids. Without ids they are the same if
    they have the same row: old nodes come first. So they are where the file was made compact without its digests.
    Settings stay, and what was made is gone on from:

    - ``clusters``: the teacher is refreshed (:func:`gcond.teaching.refresher.teach_again`), nodes stay in their groups
      as far as their class and the size of the groups let them, and new ones join them or make new ones;
    - methods that learn: the same, and then X' learns for a tenth of the epochs, from the old X' or from the means of
      the groups, whichever probes better; Φ stays as it was trained. The start is kept unless something beats it;
    - selections: chosen nodes stay chosen if they are still there, and the rest is picked anew.

    The number of synthetic nodes stays, too, unless ``nodes`` or ``ratio`` says another. ``seed`` is that of the graph
    itself by default. Test labels are not looked at. The last of ``provenance.updates`` has what changed in the source
    and what became of the synthetic nodes. Where nothing changed, ``condensed`` itself comes back.
    """
    check_threads(threads)
    small = condensed if isinstance(condensed, CondensedGraph) else CondensedGraph.load(condensed)
    method, made = updatable(small)
    if nodes is not None and ratio is not None:
        raise GcondError(
            "give a budget as either ratio or nodes, for example nodes=70, or neither to keep the number of nodes"
        )
    graph = load_origin(made, on)
    if isinstance(graph, StoredGraph):
        raise GcondError(f"'{graph.name}' is streamed from its store, and an update needs it in memory: give it more")
    seed = made.seed if seed is None else settings.whole_number(seed, "seed")
    keep = nodes is None and ratio is None
    budget = budget_for(graph, ratio=ratio, nodes=small.num_nodes if keep else nodes)
    same = graph.sha256 == made.source.get("sha256") and tuple(graph.class_names) == tuple(made.class_names)
    watch = Stopwatch()
    if said := unknown_ids(small, graph):
        warn(said)
    changes = SourceChanges.between(small, made, graph)
    if same and budget.nodes == small.num_nodes:
        return small
    identity = hashlib.sha256(f"{small.sha256} {method.identify(graph, budget, seed)}".encode()).hexdigest()
    quota = nodes_per_class(budget.nodes, graph.class_counts())
    task = method.task(graph, quota, seed, identity=identity, device=choose_device(device), callbacks=callbacks)
    task.notes.stopwatch = watch
    with threads_for(method.largest_product(task), threads) as task.notes.threads:
        result = _brought_along(method, task, small, changes, callbacks)
    counts = changes.counts | _synthetic_changes(small, result, changes)
    updated = _recorded(method.recorded(result, graph, budget, seed, notes=task.notes), small, made, counts)
    if small.compaction is None:
        return updated
    held = small.digests is not None
    return compact_as(updated, small.compaction, keep_structure=bool(small.structure), keep_digests=held)


def updatable(small: CondensedGraph) -> tuple[Method, Provenance]:
    """The method that made ``small``, as it was set, if it can go on from what it made."""
    made = small.provenance
    if made is None:
        raise GcondError("this graph does not say how it was made: only what gcond condense made can be updated")
    cls = methods.find(made.method)
    method = settings.build(cls, made.settings, f"method '{made.method}'")
    if isinstance(method, GradientMatching):
        check_structure(method, small)
        return method, made
    known = small.cluster if isinstance(method, Clusters) else small.source_index
    if known is None or (method.kind == "merged" and not isinstance(method, Clusters)):
        raise GcondError(
            f"method '{made.method}' does all of its work at once, so there is nothing to go on from: condense the "
            "source anew"
        )
    return method, made


def _brought_along(
    method: Method, task: Task, small: CondensedGraph, changes: SourceChanges, callbacks: Sequence[Callback]
) -> CondensedGraph:
    if isinstance(method, Clusters):
        return updated_clusters(method, task, small, changes).graph
    if isinstance(method, GradientMatching):
        return learned_again(method, task, small, changes, callbacks)
    return selected_again(method, task, small, changes)


def _synthetic_changes(small: CondensedGraph, result: CondensedGraph, changes: SourceChanges) -> Changes:
    """Synthetic nodes that stand for the same source nodes as before, for others, or are new."""
    if small.source_index is not None and result.source_index is not None:
        chosen = set(changes.before[result.source_index].tolist()) & set(small.source_index.tolist())
        same, touched = len(chosen), 0
    elif small.cluster is not None and result.cluster is not None:
        was = groups_before(small.cluster, changes)
        follows, share = continued(was, result.cluster, small.num_nodes, result.num_nodes)
        there = follows >= 0
        old_size = torch.bincount(small.cluster[small.cluster >= 0], minlength=small.num_nodes)[follows.clamp(min=0)]
        new_size = torch.bincount(result.cluster[result.cluster >= 0], minlength=result.num_nodes)
        whole = there & (share == old_size) & (share == new_size)
        same, touched = int(whole.sum()), int((there & ~whole).sum())
    else:  # learned without groups: all rows learn
        same, touched = 0, min(small.num_nodes, result.num_nodes)
    return Changes(
        synthetic_kept=same,
        synthetic_changed=touched,
        synthetic_added=result.num_nodes - same - touched,
        synthetic_removed=small.num_nodes - same - touched,
    )


def _recorded(result: CondensedGraph, small: CondensedGraph, made: Provenance, counts: Changes) -> CondensedGraph:
    """``result`` with the costs of all that led to it, and with the update in its provenance."""
    own = result.provenance
    assert own is not None
    cost = Cost(
        wall_seconds=made.cost.get("wall_seconds", 0.0) + own.cost["wall_seconds"],
        cpu_seconds=made.cost.get("cpu_seconds", 0.0) + own.cost["cpu_seconds"],
        peak_rss_mb=max(made.cost.get("peak_rss_mb", 0.0), own.cost["peak_rss_mb"]),
    )
    record = Update(
        updated_from=small.sha256,
        source=made.source,
        budget=made.budget,
        seed=made.seed,
        cost=own.cost,
        gcond_version=made.gcond_version,
        changes=counts,
    )
    provenance = dataclasses.replace(own, cost=cost, updates=(*made.updates, record))
    return dataclasses.replace(result, provenance=provenance)
