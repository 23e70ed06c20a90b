"""``gcond.grow``: more nodes for a finished condensed graph, whose own stay as they are."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond import methods
from gcond.callbacks import Deadline
from gcond.condensed import CondensedGraph, Provenance, Task
from gcond.condensed.origin import load_origin, source_difference
from gcond.config import settings
from gcond.errors import GcondError, warn
from gcond.graph import SourceGraph, budget_for
from gcond.graph.budget import nodes_per_class
from gcond.linalg.sparse import Adjacency, Identity, SparseMatrix, dense, edge_list
from gcond.matching.callback import Callback
from gcond.matching.sparsification import shipped_delta
from gcond.matching.start import Init, initial_features
from gcond.matching.synthetic import Synthetic
from gcond.methods.gcond import GCond
from gcond.methods.gradient_matching import GradientMatching
from gcond.runtime.device import choose_device
from gcond.runtime.threads import check_threads, threads_for
from gcond.runtime.torch_settings import with_usual_torch

if TYPE_CHECKING:
    from torch_geometric.data import Data

# Φ stays as it was trained, so what says how it is built and how it learns cannot be changed any more.
OF_THE_STRUCTURE = {"structure", "structure_hidden", "edge_bias", "lr_structure"}
OF_THE_STRUCTURE |= {"schedule", "features_epochs", "structure_epochs"}

START: Init = "sample"
"""Start of new nodes if the method would have tried several starts: beside good nodes, any will do."""


@with_usual_torch
def grow(
    condensed: CondensedGraph | str | Path,
    *,
    on: SourceGraph | Data | str | Path,
    nodes: int,
    seed: int = 0,
    device: str = "auto",
    threads: int | None = None,
    within: str | float | None = None,
    callbacks: Sequence[Callback] = (),
    **options: Any,
) -> CondensedGraph:
    """Add nodes to ``condensed`` (a graph, or its file) until it has ``nodes`` of them.

    The features of the new nodes are learned by matching gradients with the source graph ``on``, which must be the
    one that ``condensed`` was made from; their connections come from the trained Φ, with the batch statistics
    that it was finished with. Features, labels and edges of the old nodes stay bit for bit, and come first. The
    settings are those that ``condensed`` was made with, but for ``options``; the provenance keeps the old ones, with
    seed and history, as its ``parent``. ``threads`` and ``within`` are those of :func:`gcond.condense`.
    """
    deadline = Deadline(within) if within is not None else None
    check_threads(threads)
    small = condensed if isinstance(condensed, CondensedGraph) else CondensedGraph.load(condensed)
    seed = settings.whole_number(seed, "seed")
    nodes = settings.whole_number(nodes, "nodes")
    method, made = growable(small, options)
    if nodes <= small.num_nodes:
        raise GcondError(
            f"the graph has {small.num_nodes} nodes already, and nodes={nodes} is the size after growing: "
            f"use {small.num_nodes + 1} or more"
        )
    graph = _origin(made, on)
    if deadline is not None:
        callbacks = [*callbacks, deadline]
    budget = budget_for(graph, nodes=nodes)
    quota = added_per_class(nodes, graph.class_counts(), label_mass(small, graph.num_classes))
    identity = hashlib.sha256(f"{small.sha256} {method.identify(graph, budget, seed)}".encode()).hexdigest()
    # A seed for this growth alone: with the first one's, the same would be drawn again.
    own = int.from_bytes(hashlib.sha256(f"{small.sha256} {seed}".encode()).digest()[:4], "little")
    task = method.task(graph, quota, own, identity=identity, device=choose_device(device), callbacks=callbacks)
    present = torch.bincount(small.hard_labels, minlength=graph.num_classes)
    everything = dataclasses.replace(task, quota=task.quota + present)
    with threads_for(method.largest_product(everything), threads) as task.notes.threads:
        grown = _learn(method, _taught(method, task, made), small, callbacks)
    if deadline is not None and (late := deadline.overrun(f"growing by {method.name}")):
        warn(late)
    return method.recorded(grown, graph, budget, seed, notes=task.notes, grown_from=small)


def growable(small: CondensedGraph, options: Mapping[str, Any]) -> tuple[GradientMatching, Provenance]:
    """The method that made ``small``, as it was set but for ``options``, if it can grow what it made."""
    made = small.provenance
    if made is None:
        raise GcondError("this graph does not say how it was made: only what gcond condense made can be grown")
    cls = methods.find(made.method)
    if not issubclass(cls, GradientMatching):
        raise GcondError(
            f"method '{made.method}' does not learn its nodes, so there is nothing to go on with: "
            "condense the source anew to the larger size"
        )
    for key in options:
        if key in OF_THE_STRUCTURE and key in made.settings:
            raise GcondError(f"setting '{key}' is of the structure, which stays as it was trained: leave it out")
    method = settings.build(cls, made.settings | dict(options), f"method '{made.method}'")
    if isinstance(method, GCond) and method.structure == "free":
        raise GcondError(
            "structure=free has one number per pair of nodes, which says nothing of new ones: "
            "only graphs made with structure=mlp can be grown"
        )
    if made.compaction and not small.structure and isinstance(method, GCond):
        raise GcondError(
            "the weights of its structure were dropped when it was compacted: grow the graph that it was compacted "
            "from, or compact that again and keep the structure"
        )
    return method, made


def label_mass(small: CondensedGraph, classes: int) -> Tensor:
    """Nodes of each class [C]: whole ones, or what soft labels add up to, which is what training sees of a class."""
    return torch.bincount(small.y, minlength=classes) if small.y.dim() == 1 else small.y.double().sum(0)


def added_per_class(nodes: int, labelled: Tensor, present: Tensor) -> Tensor:
    """Nodes of each class to add, int64 [C], for ``nodes`` in all.

    As close as adding gets to what a graph of that size would have had (:func:`nodes_per_class` of the ``labelled``):
    where a class among the ``present`` has more than that already, those that are to get most get less.
    """
    spare = nodes - round(float(present.sum()))
    missing = (nodes_per_class(nodes, labelled) - present).clamp(min=0)
    added = missing.long()
    while int(added.sum()) < spare:  # parts of nodes, where labels are soft
        added[int((missing - added).argmax())] += 1
    while int(added.sum()) > spare:
        fewer = torch.where(present + added >= 2, added, 0)  # every class stays present, as far as nodes go
        added[int((fewer if bool(fewer.any()) else added).argmax())] -= 1
    return added


def _taught(method: GradientMatching, task: Task, made: Provenance) -> Task:
    """The task with the labels that the first nodes were matched by: those of a teacher with the seed of that time."""
    seed, parent = made.seed, made.parent
    while parent:
        seed, parent = parent.get("seed", seed), parent.get("parent", {})
    return dataclasses.replace(method.labelled(dataclasses.replace(task, seed=seed)), seed=task.seed)


def _learn(
    method: GradientMatching, task: Task, small: CondensedGraph, callbacks: Sequence[Callback]
) -> CondensedGraph:
    y = torch.cat([small.hard_labels, task.labels])
    shown = None
    if small.y.dim() == 2:  # the old nodes keep their soft labels, and new ones are of one class
        shown = torch.cat([small.y, F.one_hot(task.labels, task.num_classes).float()])
    if isinstance(method, GCond) and method.delta == "auto" and (delta := shipped_delta(small)) is not None:
        method = dataclasses.replace(method, delta=delta)  # of new edges as of the old ones, which stay
        task.notes.choices["delta"] = delta
    present = torch.bincount(small.hard_labels, minlength=task.num_classes)
    structure = method.structure_for(dataclasses.replace(task, quota=task.quota + present))
    init = START if method.init == "auto" or method.init == "clusters" else method.init  # noqa: PLR1714 (for mypy)
    method.check_memory(task, structure, len(y), init)
    x = _start_beside(small, task, init)
    phi = structure.kept(small.structure, x.shape[1])
    kept = method.entries or None
    synthetic = Synthetic(x, y, structure, phi, method.rates(x), shown=shown, fixed=small.x.clone(), entries=kept)
    synthetic = synthetic.to(task.train.y.device)
    alone = method
    if isinstance(method, GCond):  # one turn of X' as long as the whole run, so that Φ never has one
        alone = dataclasses.replace(method, schedule="features-first", features_epochs=max(1, method.epochs))
    run = alone.learn(task, synthetic, callbacks, start=init, ship=_joined(method, small))
    task.notes.start, task.notes.history, task.notes.ended = init, run.history, run.reason
    if isinstance(method, GCond) and (neighbours := method.neighbours_of(len(y))) is not None:
        task.notes.choices["neighbours"] = neighbours
    return _join(small, synthetic.finish(method.ship))


def _start_beside(small: CondensedGraph, task: Task, init: Init) -> Tensor:
    """The start of the new nodes, float32 [n, d]: as in a graph of the whole size, less what the old nodes stand for.

    Each old node takes the start of its class that is nearest, the sum of all distances being least. So no new node
    starts where an old one is, while there are starts enough that differ.
    """
    from scipy.optimize import linear_sum_assignment  # takes a while to import

    old_labels = small.hard_labels
    present = torch.bincount(old_labels, minlength=task.num_classes)
    # By their soft labels old nodes may stand for more of a class than it has labelled nodes to start from.
    labelled = torch.bincount(task.train.y.cpu(), minlength=task.num_classes)
    quota = torch.minimum(task.quota + present, labelled)
    whole = dataclasses.replace(task, quota=torch.where(task.quota > 0, quota, 0))
    x = initial_features(whole, init)
    parts = []
    for label in task.quota.nonzero().squeeze(1).tolist():
        starts, old = x[whole.labels == label], small.x[old_labels == label]
        # Not by a matrix product, so that equal rows are at 0; doubles hold the square of any feature.
        near = torch.cdist(old.double(), starts.double(), compute_mode="donot_use_mm_for_euclid_dist")
        who, taken = (torch.from_numpy(index) for index in linear_sum_assignment(near.numpy()))
        nearest = near[who, taken].argsort(stable=True)[: len(starts) - int(task.quota[label])]
        free = torch.ones(len(starts), dtype=torch.bool)
        free[taken[nearest]] = False
        parts.append(starts[free])
    return torch.cat(parts)


def _joined(method: GradientMatching, small: CondensedGraph) -> Callable[[Adjacency], Adjacency]:
    """A' as :func:`_join` leaves it, to be probed: what ``method`` keeps of new edges, and the old ones as they are."""
    old = small.adjacency()
    count = small.num_nodes

    def ship(adjacency: Adjacency) -> Adjacency:
        kept = method.ship(adjacency)
        if isinstance(kept, Tensor):
            kept = kept.clone()
            kept[:count, :count] = 0.0 if isinstance(old, Identity) else dense(old).to(kept.device)
        elif isinstance(kept, SparseMatrix):
            edges, weight = edge_list(kept)
            new = (edges >= count).any(0)
            edges = torch.cat([small.edge_index.to(edges.device), edges[:, new]], dim=1)
            weight = torch.cat([small.edge_weight.to(weight.device), weight[new]])
            kept = SparseMatrix.from_edges(edges, weight, kept.shape[0])
        return kept

    return ship


def _join(small: CondensedGraph, grown: CondensedGraph) -> CondensedGraph:
    """``grown`` with everything among the first nodes as it is in ``small``."""
    new = (grown.edge_index >= small.num_nodes).any(0)
    return CondensedGraph(
        x=torch.cat([small.x, grown.x[small.num_nodes :]]),
        y=grown.y,
        edge_index=torch.cat([small.edge_index, grown.edge_index[:, new]], dim=1),
        edge_weight=torch.cat([small.edge_weight, grown.edge_weight[new]]),
        structure=dict(small.structure),
    )


def _origin(made: Provenance, on: SourceGraph | Data | str | Path) -> SourceGraph:
    graph = load_origin(made, on)
    if said := source_difference(made, graph):
        raise GcondError(f"{said}, and growing needs the same")
    if graph.directed != made.directed:
        now, then = ("directed" if each else "undirected" for each in (graph.directed, made.directed))
        raise GcondError(f"'{graph.name}' is {now} and was {then} when this was made from it: load it as {then}")
    return graph
