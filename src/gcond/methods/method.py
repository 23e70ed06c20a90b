"""The base of every method, and the one place where a condensed graph gets its provenance."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from gcond import __version__
from gcond.condensed import CondensedGraph, Provenance, Task
from gcond.condensed.provenance import Cost
from gcond.condensed.task import Notes
from gcond.config.metric import METRICS, Metric
from gcond.config.settings import as_dict, identity
from gcond.graph import Budget, SourceGraph
from gcond.graph.budget import nodes_per_class
from gcond.graph.node_digests import NodeDigests
from gcond.graph.streamed_operator import RowBlocks
from gcond.linalg.sparse import SparseMatrix, dense, take_rows
from gcond.matching.callback import Callback
from gcond.runtime.memory import peak_rss_mb
from gcond.runtime.threads import threads_for
from gcond.runtime.torch_settings import with_usual_torch


@dataclass(frozen=True)
class Method(ABC):
    """A way to a condensed graph. Subclasses are frozen dataclasses; their fields are the settings."""

    name: ClassVar[str]
    kind: ClassVar[Literal["selected", "merged", "learned"]]
    summary: ClassVar[str]
    """One line for ``gcond methods``."""
    citation: ClassVar[str]

    @abstractmethod
    def reduce(self, task: Task, callbacks: Sequence[Callback] = ()) -> CondensedGraph:
        """Make the condensed graph of ``task``; provenance is added by :meth:`condense`.

        Only methods that take many steps have something to tell the callbacks.
        """

    @property
    def chooses_by(self) -> Metric:
        """The metric by which it chooses on validation nodes; of no effect in methods without a setting for it."""
        return getattr(self, "metric", METRICS[0])

    def with_metric(self, metric: Metric) -> Self:
        """The same, choosing by ``metric``; itself where it chooses nothing on validation nodes."""
        if not any(field.name == "metric" for field in dataclasses.fields(self)):
            return self
        return dataclasses.replace(self, metric=metric)  # type: ignore[call-arg]

    def largest_product(self, task: Task) -> float:
        """Multiply-adds of the largest product that it does again and again, by which it is given threads.

        Without any it computes on one.
        """
        return 0

    @with_usual_torch
    def condense(
        self,
        graph: SourceGraph,
        budget: Budget,
        seed: int,
        device: torch.device | str = "cpu",
        callbacks: Sequence[Callback] = (),
        *,
        threads: int | None = None,
    ) -> CondensedGraph:
        """Condense ``graph`` to ``budget`` nodes on ``device``; the same seed gives the same tensors there.

        It computes with ``threads`` CPU threads, or with as many as the work deserves; the provenance has the number,
        by which sums may round differently.
        """
        quota = nodes_per_class(budget.nodes, graph.class_counts())
        task = self.task(
            graph, quota, seed, identity=self.identify(graph, budget, seed), device=device, callbacks=callbacks
        )
        with threads_for(self.largest_product(task), threads) as task.notes.threads:
            made = self.reduce(task, callbacks)
        return self.recorded(made, graph, budget, seed, notes=task.notes)

    def task(
        self,
        graph: SourceGraph,
        quota: Tensor,
        seed: int,
        *,
        identity: str,
        device: torch.device | str,
        callbacks: Sequence[Callback],
    ) -> Task:
        """The task of making ``quota`` nodes per class of ``graph``, taken up where a callback has it interrupted."""
        before = (callback.interrupted(identity) for callback in callbacks if self.kind == "learned")
        interrupted = next((kept for kept in before if kept is not None), None)
        train, val = graph.view("train").to(device), graph.view("val").to(device)
        return Task(train, val, graph.num_classes, quota, seed, graph.num_nodes, identity, interrupted)

    def recorded(
        self,
        made: CondensedGraph,
        graph: SourceGraph,
        budget: Budget,
        seed: int,
        *,
        notes: Notes,
        grown_from: CondensedGraph | None = None,
    ) -> CondensedGraph:
        """``made`` with its provenance: by this method of ``graph``, or by growing another condensed graph of it."""
        parent = grown_from.provenance if grown_from is not None else None
        earlier = parent.cost if parent is not None else Cost()
        wall, cpu = notes.stopwatch.spent()
        provenance = Provenance(
            method=self.name,
            settings=as_dict(self),
            seed=seed,
            budget={"nodes": budget.nodes, "ratio": budget.ratio},
            setting=graph.setting,
            source={
                "name": graph.name,
                "sha256": graph.sha256,
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "features": graph.num_features,
                "bytes": graph.nbytes,
            },
            transform=graph.transform.to_json(),
            num_classes=graph.num_classes,
            class_names=graph.class_names,
            directed=graph.directed,
            cost={
                "wall_seconds": earlier.get("wall_seconds", 0) + wall,
                "cpu_seconds": earlier.get("cpu_seconds", 0) + cpu,
                "peak_rss_mb": max(earlier.get("peak_rss_mb", 0), peak_rss_mb()),
            },
            threads=notes.threads,
            history=notes.history,
            choices=notes.choices,
            start=notes.start,
            ended=notes.ended,
            gcond_version=__version__,
            grown_from=grown_from.sha256 if grown_from is not None else "",
            parent=parent.as_parent() if parent is not None else {},
        )
        return dataclasses.replace(made, digests=NodeDigests.of(graph), provenance=provenance)

    def identify(self, graph: SourceGraph, budget: Budget, seed: int) -> str:
        """A fingerprint of all that the result depends on."""
        parts = [self.name, identity(self), graph.sha256, graph.setting, budget.nodes, seed, __version__]
        if graph.directed:  # the same tensors either way where every edge has its reverse, but A' differs
            parts.append("directed")
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def induced_subgraph(task: Task, chosen: Tensor) -> CondensedGraph:
    """The condensed graph of selected nodes: their features and labels, and the edges among them.

    ``chosen`` are rows of ``task.train.inputs``, all of them labelled. They are put in order of class and
    then of source node: a selection is a set, and the same set gives the same file.
    """
    inputs = task.train.inputs
    assert isinstance(inputs.adjacency, SparseMatrix | RowBlocks)
    label = torch.full((inputs.num_nodes,), -1, dtype=torch.long)
    label[task.train.nodes.cpu()] = task.train.y.cpu()
    chosen = chosen.cpu().sort().values
    chosen = chosen[label[chosen].argsort(stable=True)]
    edges = inputs.adjacency.submatrix(chosen)
    return CondensedGraph(
        x=dense(take_rows(inputs.x, chosen)).cpu(),
        y=label[chosen],
        edge_index=edges.edge_index.cpu(),
        edge_weight=edges.values.cpu(),
        source_index=task.train.source_index[chosen],
    )
