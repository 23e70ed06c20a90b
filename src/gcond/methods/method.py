"""What every method is, and the one place where a condensed graph gets its provenance."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from gcond import __version__
from gcond.callbacks.callback import Callback
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.provenance import Cost, Provenance
from gcond.condensed.task import Task
from gcond.config.settings import as_dict
from gcond.graph.budget import Budget, nodes_per_class
from gcond.graph.source_graph import SourceGraph
from gcond.linalg.sparse import SparseMatrix, dense, take_rows
from gcond.runtime.memory import peak_rss_mb


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

    def condense(
        self,
        graph: SourceGraph,
        budget: Budget,
        seed: int,
        device: torch.device | str = "cpu",
        callbacks: Sequence[Callback] = (),
    ) -> CondensedGraph:
        """Condense ``graph`` to ``budget`` nodes on ``device``; the same seed gives the same tensors there."""
        quota = nodes_per_class(budget.nodes, graph.class_counts())
        train, val = graph.view("train").to(device), graph.view("val").to(device)
        identity = self.identify(graph, budget, seed)
        task = Task(train, val, graph.num_classes, quota, seed, graph.num_nodes, identity)
        result = self.reduce(task, callbacks)
        wall, cpu = task.notes.stopwatch.spent()
        cost = Cost(wall_seconds=wall, cpu_seconds=cpu, peak_rss_mb=peak_rss_mb())
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
            cost=cost,
            history=task.notes.history,
            start=task.notes.start,
            gcond_version=__version__,
        )
        return dataclasses.replace(result, provenance=provenance)

    def identify(self, graph: SourceGraph, budget: Budget, seed: int) -> str:
        """A fingerprint of all that the result depends on."""
        parts = [self.name, as_dict(self), graph.sha256, graph.setting, budget.nodes, seed, __version__]
        if graph.directed:  # the same tensors either way where every edge has its reverse, but A' differs
            parts.append("directed")
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def induced_subgraph(task: Task, chosen: Tensor) -> CondensedGraph:
    """The condensed graph of selected nodes: their features and labels, and the edges among them.

    ``chosen`` are rows of ``task.train.inputs``, all of them labelled. They are put in order of class and
    then of source node: a selection is a set, and the same set gives the same file.
    """
    inputs = task.train.inputs
    assert isinstance(inputs.adjacency, SparseMatrix)
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
