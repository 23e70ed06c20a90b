"""The condensed graph: tensors and where they come from, in one safetensors file."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gcond.condensed import graph_picture, packing
from gcond.condensed.compaction import MOST_PLACES, Compaction, compacted, rounded_labels, rounded_weights
from gcond.condensed.foreign_file import read_foreign
from gcond.condensed.provenance import Provenance
from gcond.condensed.recommendation import Recommendation
from gcond.condensed.score import Score
from gcond.errors import GcondError, GcondWarning
from gcond.graph import Inputs, LabelledView
from gcond.graph.features import compact
from gcond.graph.node_digests import NodeDigests
from gcond.graph.statistics import LIGHTEST_EDGE, Statistics, density, edge_homophily, is_symmetric
from gcond.linalg.sparse import Adjacency, Identity, SparseMatrix
from gcond.runtime import notebook
from gcond.runtime.plain_text import classes_there, counted
from gcond.runtime.tensor_file import FORMAT_VERSION, fingerprint, plain_names, read_tensors, write_tensors
from gcond.runtime.threads import SPARSE
from gcond.runtime.torch_settings import with_usual_torch

if TYPE_CHECKING:
    from torch_geometric.data import Data

MOST_DENSE = 1_000
"""Nodes up to which A' is a dense matrix, whatever its edges: 4 MB, and gone through in a millisecond."""
MOST_CLASSES = 10**6
"""A file that claims more is damaged: counting them would take memory out of all proportion."""
SOURCE_PREFIX = "source."
"""Of the names that the source's digests have in the file."""


@dataclass(frozen=True, eq=False)
class CondensedGraph:
    """A small graph on which GNNs train as on the large one.

    Without edges the method made no structure, and training uses A' = I.
    """

    x: Tensor
    """float32 [n, d]."""
    y: Tensor
    """int64 [n] class ids, or float32 [n, C] soft labels."""
    edge_index: Tensor
    """int64 [2, E], sources above targets; both directions of a symmetric graph, no self-loops."""
    edge_weight: Tensor
    """float32 [E]."""
    source_index: Tensor | None = None
    """int64 [n], selected methods: which source node each one is."""
    cluster: Tensor | None = None
    """int64 [N], merged methods: which condensed node each source node went into, -1 for none."""
    structure: dict[str, Tensor] = field(default_factory=dict)
    """Weights of a learned structure, so that the graph can be grown later."""
    digests: NodeDigests | None = None
    """What the source's nodes were, so that a later version of the source can be compared; no part of the graph."""
    provenance: Provenance | None = None
    compaction: Compaction | None = None
    """The form in which the file holds it, where that is not the plain one: the numbers here are just those."""
    notes: tuple[str, ...] = ()
    """What a file of another tool did not say, or had to be left out; one sentence for each."""

    def __post_init__(self) -> None:
        _check(self)

    def __repr__(self) -> str:
        made = f", {self.provenance.method} of {self.provenance.source['name']}" if self.provenance else ""
        return (
            f"CondensedGraph({self.num_nodes} nodes, {self.num_edges} entries in A', {self.x.shape[1]} features{made})"
        )

    def _repr_html_(self) -> str:
        """For notebooks: what it is, and a picture of it."""
        made = self.provenance
        known: dict[str, object] = (
            {}
            if made is None
            else {
                "made by": f"{made.method}, seed {made.seed}",
                "made from": f"{made.source.get('name')}, {made.source.get('nodes', 0):,} nodes, {made.setting}",
            }
        )
        counts = torch.bincount(self.hard_labels, minlength=self.num_classes).tolist()
        few = f"{min(counts):,}" if min(counts) == max(counts) else f"{min(counts):,} to {max(counts):,}"
        about = known | {
            "nodes": f"{self.num_nodes:,}, {few} of each of {counted(self.num_classes, 'class')}",
            "edges": f"{self.statistics.edges:,}" if self.num_edges else "none: models train on A' = I",
            "features": f"{self.x.shape[1]:,}",
            "labels": "soft" if self.y.dim() == 2 else "hard",
            "storage": f"{self.nbytes:,} bytes",
            "notes": "\n".join(self.notes),
        }
        for score in made.scores if made is not None else ():
            about[f"test accuracy, {score.model}"] = score.shown
        return notebook.facts("Condensed graph", about, graph_picture.svg(self))

    @property
    def num_nodes(self) -> int:
        return len(self.x)

    @property
    def num_edges(self) -> int:
        """Stored entries; a symmetric pair counts twice."""
        return self.edge_index.shape[1]

    @property
    def num_classes(self) -> int:
        if self.provenance is not None:
            return self.provenance.num_classes
        return self.y.shape[1] if self.y.dim() == 2 else int(self.y.max()) + 1

    @property
    def hard_labels(self) -> Tensor:
        """int64 [n]: the class of each node, the likeliest one for soft labels."""
        return self.y.argmax(1) if self.y.dim() == 2 else self.y

    def adjacency(self) -> Adjacency:
        """A' [n, n] (row = target), or the identity where there is no structure.

        It is dense but for graphs of more than :data:`MOST_DENSE` nodes of which few pairs are joined.
        """
        if self.num_edges == 0:
            return Identity()
        if self.num_nodes > MOST_DENSE and SPARSE * self.num_edges < self.num_nodes**2:
            return SparseMatrix.from_edges(self.edge_index, self.edge_weight, self.num_nodes)
        dense = torch.zeros(self.num_nodes, self.num_nodes, dtype=torch.float32)
        dense[self.edge_index[1], self.edge_index[0]] = self.edge_weight
        return dense

    def view(self) -> LabelledView:
        """The whole condensed graph as something to train on."""
        everyone = torch.arange(self.num_nodes)
        return LabelledView(Inputs(compact(self.x), self.adjacency(), loops=True), everyone, self.y, everyone)

    @with_usual_torch
    def to_pyg(self) -> Data:
        """A PyG ``Data`` for stock models, in which every node is a training node.

        It carries one self-loop of weight 1 per node, as training here does (:class:`~gcond.graph.inputs.Inputs`);
        layers that normalise with self-loops of their own find them there already. (``ChebConv`` drops them.)
        ``class_names`` are there where they are known.
        """
        from torch_geometric.data import Data

        loops = torch.arange(self.num_nodes).repeat(2, 1)
        names = self.provenance.class_names if self.provenance is not None else ()
        named: dict[str, Any] = {"class_names": list(names)} if names else {}
        return Data(
            x=self.x.clone(),
            edge_index=torch.cat([self.edge_index, loops], dim=1),
            edge_weight=torch.cat([self.edge_weight, torch.ones(self.num_nodes)]),
            y=self.y.clone(),
            train_mask=torch.ones(self.num_nodes, dtype=torch.bool),
            **named,
        )

    @classmethod
    @with_usual_torch
    def from_pyg(cls, data: Data, provenance: Provenance | None = None) -> CondensedGraph:
        """The reverse of :meth:`to_pyg`; self-loops are dropped."""
        if data.get("x") is None or data.get("y") is None:
            raise GcondError("the PyG Data has no x or no y: a condensed graph needs both")
        edge_index = data.edge_index if data.get("edge_index") is not None else torch.empty(2, 0, dtype=torch.long)
        weight = data.edge_weight if data.get("edge_weight") is not None else torch.ones(edge_index.shape[1])
        keep = edge_index[0] != edge_index[1]
        return cls(data.x.float(), data.y, edge_index[:, keep], weight[keep].float(), provenance=provenance)

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor under its name in the file."""
        named = {"x": self.x, "y": self.y, "edge_index": self.edge_index, "edge_weight": self.edge_weight}
        optional = {"source_index": self.source_index, "cluster": self.cluster}
        named |= {name: tensor for name, tensor in optional.items() if tensor is not None}
        return named | {f"structure.{name}": tensor for name, tensor in self.structure.items()}

    @cached_property
    def packed(self) -> dict[str, Tensor]:
        """Every tensor in the form, and under the name, that it has in the file."""
        return self.tensors() if self.compaction is None else packing.pack(self.tensors(), self.compaction)

    @property
    def nbytes(self) -> int:
        """Bytes of what training needs, in the form of the file: features, labels and edges."""
        return packing.training_bytes(self.packed)

    def compacted(self, compaction: Compaction) -> CondensedGraph:
        """The same graph with its numbers cut and rounded to ``compaction``; its scores, of another graph, are gone."""
        rounding = compaction.bits < 32
        return dataclasses.replace(
            self,
            x=compacted(self.x, compaction),
            y=rounded_labels(self.y) if rounding and self.y.dim() == 2 else self.y,
            edge_weight=rounded_weights(self.edge_weight) if rounding else self.edge_weight,
            provenance=dataclasses.replace(self.provenance, scores=()) if self.provenance is not None else None,
            compaction=compaction,
        )

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of the tensors alone: the same method, settings and seed give the same."""
        return fingerprint(self.tensors())

    @cached_property
    def statistics(self) -> Statistics:
        """The graph in numbers."""
        made_directed = self.provenance is not None and self.provenance.directed
        directed = made_directed or not is_symmetric(self.edge_index, self.num_nodes)
        edges = self.num_edges if directed else self.num_edges // 2
        return Statistics(
            nodes=self.num_nodes,
            edges=edges,
            listed_edges=edges,
            features=self.x.shape[1],
            classes=self.num_classes,
            density=density(self.num_nodes, edges, directed=directed),
            homophily=edge_homophily(self.edge_index[:, self.edge_weight >= LIGHTEST_EDGE], self.hard_labels),
            class_nodes=tuple(torch.bincount(self.hard_labels, minlength=self.num_classes).tolist()),
            bytes=self.nbytes,
        )

    def with_scores(self, scores: Sequence[Score]) -> CondensedGraph:
        """The same graph with ``scores`` recorded; one of the same architecture, recipe and source is replaced."""
        if self.provenance is None:
            raise GcondError("this condensed graph has no provenance to record scores in: make it with gcond.condense")
        fresh = {score.subject for score in scores}
        kept = [old for old in self.provenance.scores if old.subject not in fresh]
        provenance = dataclasses.replace(self.provenance, scores=(*kept, *scores))
        return dataclasses.replace(self, provenance=provenance)

    def with_recommendation(self, found: Recommendation) -> CondensedGraph:
        """The same graph with ``found`` recorded; an earlier one for the same model is replaced."""
        if self.provenance is None:
            raise GcondError(
                "this condensed graph has no provenance to record a recommendation in: make it with gcond.condense"
            )
        kept = [old for old in self.provenance.recommendations if old.model != found.model]
        provenance = dataclasses.replace(self.provenance, recommendations=(*kept, found))
        return dataclasses.replace(self, provenance=provenance)

    def save(self, path: str | Path) -> None:
        """Write one safetensors file, atomically."""
        provenance = self.provenance.to_json() if self.provenance else None
        metadata: dict[str, Any] = {"format": FORMAT_VERSION, "kind": "condensed", "provenance": provenance}
        if self.compaction is not None:
            metadata["compaction"] = packing.form(self.x, self.compaction)
        digests = self.digests.tensors() if self.digests is not None else {}
        write_tensors(path, self.packed | {f"{SOURCE_PREFIX}{name}": each for name, each in digests.items()}, metadata)

    @classmethod
    @with_usual_torch
    def load(cls, path: str | Path) -> CondensedGraph:
        """Read what :meth:`save` wrote; a damaged file is refused with its reason.

        A plain safetensors file of another tool, with ``x``, ``y`` and perhaps ``edge_index`` and ``edge_weight``, is a
        condensed graph of unknown origin; what it lacks is in :attr:`notes`.
        """
        if plain_names(path) is not None:
            return cls._load_foreign(path)
        tensors, metadata = read_tensors(path)
        if metadata.get("kind") != "condensed":
            raise GcondError(f"'{path}' holds a {_held(metadata)}, and a condensed graph is needed here")
        noted = {
            name[len(SOURCE_PREFIX) :]: tensors.pop(name) for name in list(tensors) if name.startswith(SOURCE_PREFIX)
        }
        try:
            digests = NodeDigests.from_tensors(noted)
            compaction, tensors = packing.unpack(tensors, metadata.get("compaction"))
        except GcondError as error:
            raise GcondError(f"'{path}' is not a usable condensed graph: {error}") from None
        prefix = "structure."
        structure = {name[len(prefix) :]: tensors.pop(name) for name in list(tensors) if name.startswith(prefix)}
        missing = [name for name in ("x", "y", "edge_index", "edge_weight") if name not in tensors]
        if missing:
            raise GcondError(f"'{path}' lacks the tensor '{missing[0]}': it was not written whole by gcond")
        unknown = sorted(set(tensors) - {"x", "y", "edge_index", "edge_weight", "source_index", "cluster"})
        if unknown:
            raise GcondError(f"'{path}' has a tensor '{unknown[0]}' that this gcond does not know: upgrade gcond")
        try:
            recorded = metadata["provenance"]
            provenance = None if recorded is None else Provenance.from_json(recorded)
            parts: dict[str, Any] = {**tensors, "structure": structure, "digests": digests, "compaction": compaction}
            return cls(**parts, provenance=provenance)
        except GcondError as error:
            raise GcondError(f"'{path}' is not a usable condensed graph: {error}") from None
        except KeyError:
            raise GcondError(f"'{path}' has damaged metadata: write it again with gcond") from None

    @classmethod
    def _load_foreign(cls, path: str | Path) -> CondensedGraph:
        try:
            tensors, notes = read_foreign(path)
            x, y, edges, weight = (tensors[name] for name in ("x", "y", "edge_index", "edge_weight"))
            graph = cls(x, y, edges, weight, notes=notes)
        except GcondError as error:
            named = str(error).startswith(f"'{path}'")
            raise GcondError(str(error) if named else f"'{path}' is not a usable condensed graph: {error}") from None
        warnings.warn(f"'{path}': {notes[0]}", GcondWarning, stacklevel=3)
        return graph


def _held(metadata: Mapping[str, Any]) -> str:
    """What a file of gcond's holds, in words."""
    kind = str(metadata.get("kind"))
    return "trained model" if kind == "model" else f"{kind} graph"


def _check(graph: CondensedGraph) -> None:
    """Refuse tensors that are not a graph; the file on disk may have been made by anyone."""
    x, y, edges, weight = graph.x, graph.y, graph.edge_index, graph.edge_weight
    if x.dim() != 2 or x.dtype != torch.float32 or 0 in x.shape:
        raise GcondError(f"x is {x.dtype} {list(x.shape)}, and must be float32 [nodes, features]")
    n = len(x)
    soft = y.dim() == 2 and y.dtype == torch.float32
    if y.shape[:1] != (n,) or not (soft or (y.dim() == 1 and y.dtype == torch.int64)):
        raise GcondError(f"y is {y.dtype} {list(y.shape)}, and must be int64 [{n}] or float32 [{n}, classes]")
    if edges.dim() != 2 or edges.shape[0] != 2 or edges.dtype != torch.int64:
        raise GcondError(f"edge_index is {edges.dtype} {list(edges.shape)}, and must be int64 [2, edges]")
    if weight.shape != edges.shape[1:] or weight.dtype != torch.float32:
        raise GcondError(f"edge_weight is {weight.dtype} {list(weight.shape)}, and must be float32 [{edges.shape[1]}]")
    if (wrong := _outside(edges, 0, n)) is not None:
        raise GcondError(f"an edge names node {wrong}, but there are {n} nodes, 0 to {n - 1}")
    if bool((edges[0] == edges[1]).any()):
        raise GcondError("edge_index has self-loops, and a condensed graph has none")
    if len(torch.unique(edges[0] * n + edges[1])) < edges.shape[1]:
        raise GcondError("edge_index lists an edge more than once, and each must be there once")
    for name, tensor in (("x", x), ("edge_weight", weight), ("y", y)):
        if not bool(torch.isfinite(tensor).all()):
            raise GcondError(f"{name} has numbers that are not finite")
    if bool((weight < 0).any()):
        raise GcondError("edge_weight has negative numbers")
    classes = graph.num_classes
    if not 1 <= classes <= MOST_CLASSES:
        raise GcondError(f"there are {classes} classes, and must be 1 to {MOST_CLASSES:,}")
    if soft and (y.shape[1] != classes or bool((y < 0).any())):
        raise GcondError(f"soft labels are [{n}, {y.shape[1]}], and must be non-negative rows of {classes} classes")
    if soft and not torch.allclose(y.sum(1), torch.ones(n), atol=1e-3):
        raise GcondError("soft labels are not shares: every row must add up to 1")
    if not soft and (wrong := _outside(y, 0, classes)) is not None:
        raise GcondError(f"label {wrong} is out of range: {classes_there(classes)}")
    index, cluster = graph.source_index, graph.cluster
    if index is not None and (index.shape != (n,) or index.dtype != torch.int64):
        raise GcondError(f"source_index is {index.dtype} {list(index.shape)}, and must be int64 [{n}]")
    if index is not None and graph.provenance is not None:
        nodes = graph.provenance.source["nodes"]
        if (wrong := _outside(index, 0, nodes)) is not None:
            raise GcondError(f"source_index names node {wrong}, but the source has {nodes} nodes, 0 to {nodes - 1}")
    if cluster is not None and (cluster.dim() != 1 or cluster.dtype != torch.int64):
        raise GcondError(f"cluster is {cluster.dtype} {list(cluster.shape)}, and must be int64 [source nodes]")
    if cluster is not None and (wrong := _outside(cluster, -1, n)) is not None:
        raise GcondError(f"cluster names node {wrong}, but there are {n} nodes, 0 to {n - 1}, and -1 for none")
    if graph.digests is not None and graph.provenance is not None:
        nodes = graph.provenance.source["nodes"]
        if len(graph.digests) != nodes:
            raise GcondError(f"there are digests of {len(graph.digests)} nodes, but the source has {nodes}")
    if graph.compaction is not None:
        _check_compact(graph, graph.compaction)


def _check_compact(graph: CondensedGraph, compaction: Compaction) -> None:
    """Refuse numbers that the file would not give back."""
    if graph.x.numel() > MOST_PLACES:
        raise GcondError(f"x has {graph.x.numel():,} numbers, and at most {MOST_PLACES:,} can be compacted")
    pairs = [(graph.x, compacted(graph.x, compaction))]
    if compaction.bits < 32:
        pairs += [(graph.edge_weight, rounded_weights(graph.edge_weight))]
        pairs += [(graph.y, rounded_labels(graph.y))] if graph.y.dim() == 2 else []
    # Bit by bit: a zero that is negative would come back as another.
    if not all(torch.equal(own.view(torch.int32), back.view(torch.int32)) for own, back in pairs):
        raise GcondError(f"its numbers are not compact ({compaction}): CondensedGraph.compacted makes them so")


def _outside(values: Tensor, low: int, high: int) -> int | None:
    """One of the whole numbers ``values`` that is not in [low, high), if there is any."""
    wrong = values[(values < low) | (values >= high)]
    return int(wrong[0]) if len(wrong) else None
