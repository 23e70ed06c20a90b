"""A method of your own: a frozen dataclass whose fields are its settings, and one function.

    python examples/own_method.py

It gets the same budget, seed, provenance and file as those that come with gcond. In a file in
``src/gcond/methods/`` it would be found by name too, on the command line as well as here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

import gcond
from gcond.callbacks import Callback
from gcond.condensed import Task
from gcond.methods import Method, induced_subgraph


@dataclass(frozen=True)
class Hubs(Method):
    """The labelled nodes of each class that have most neighbours, and the edges among them."""

    name: ClassVar[str] = "hubs"
    kind: ClassVar[Literal["selected"]] = "selected"
    summary: ClassVar[str] = "the best connected labelled nodes of each class"
    citation: ClassVar[str] = "an example"

    fewest: bool = False
    """Whether to take those with fewest neighbours instead."""

    def reduce(self, task: Task, callbacks: Sequence[Callback] = ()) -> gcond.CondensedGraph:
        # The task shows the training side of the graph only: test labels cannot leak, since they are not in it.
        adjacency = task.train.inputs.adjacency
        neighbours = torch.bincount(adjacency.edge_index[1], minlength=task.train.inputs.num_nodes)
        chosen = []
        for label, count in enumerate(task.quota.tolist()):  # how many nodes each class gets, by the budget
            candidates = task.candidates(label)
            order = neighbours[candidates].argsort(descending=not self.fewest, stable=True)
            chosen.append(candidates[order[:count]])
        return induced_subgraph(task, torch.cat(chosen))


def main() -> None:
    graph = gcond.load("synthetic:small,nodes=900")
    for method in (Hubs(), Hubs(fewest=True)):
        small = gcond.condense(graph, method=method, nodes=30)
        (score,) = gcond.evaluate(small, on=graph, models=["gcn"], runs=2, epochs=100)
        print(f"{method}: {score.mean:.1%} of the test nodes")
    small.save("hubs-30.safetensors")
    print(gcond.CondensedGraph.load("hubs-30.safetensors").provenance.settings)


if __name__ == "__main__":
    main()
