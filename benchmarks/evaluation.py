"""Ten evaluation runs of a GCN on a 70-node graph of Cora: as gcond trains them, and as plain loops.

The plain loops are what one writes without thinking about speed: a fresh model per seed, every epoch a
training step on the small graph and a prediction on the whole graph. All of them train the same model
with the same recipe; the ratio is taken within one run, on one thread.

    python benchmarks/evaluation.py [--quick] [--json]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

import gcond
from gcond.graph.labelled_view import LabelledView
from gcond.models.gcn import GCN
from gcond.training.fit import accuracy, fit
from gcond.training.recipe import PAPER_PROTOCOL, Recipe

NODES, RUNS = 70, 10


class PlainGCN(torch.nn.Module):
    """Two GCNConv layers, as in every tutorial."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first = GCNConv(features, 256, cached=False)
        self.second = GCNConv(256, classes, cached=False)

    def forward(self, x, edge_index, edge_weight):
        return self.second(F.relu(self.first(x, edge_index, edge_weight)), edge_index, edge_weight)


class DenseGCN(torch.nn.Module):
    """The same with a normalised CSR adjacency made once, the usual hand-written form."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first = torch.nn.Linear(features, 256)
        self.second = torch.nn.Linear(256, classes)

    def forward(self, x, adjacency):
        return adjacency @ self.second(F.relu(adjacency @ self.first(x)))


def train_plainly(model: torch.nn.Module, small: tuple, y, whole: tuple, *, val: LabelledView, recipe: Recipe) -> float:
    best = 0.0
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay)
    for epoch in range(recipe.epochs):
        if epoch == recipe.epochs // 2:
            optimiser = torch.optim.Adam(model.parameters(), lr=recipe.lr / 10, weight_decay=recipe.weight_decay)
        optimiser.zero_grad()
        F.cross_entropy(model(*small), y).backward()
        optimiser.step()
        with torch.no_grad():
            best = max(best, float((model(*whole)[val.nodes].argmax(1) == val.y).float().mean()))
    return best


def measure(work: Callable[[], list[float]]) -> tuple[float, list[float]]:
    start = time.process_time()
    scores = work()
    return time.process_time() - start, scores


def main() -> None:
    torch.set_num_threads(1)
    recipe = Recipe(epochs=20 if "--quick" in sys.argv else 600, **PAPER_PROTOCOL)
    graph = gcond.load("cora")
    small = gcond.condense(graph, method="random", nodes=NODES)
    val, test = graph.view("val"), graph.view("test")
    whole, little = graph.to_pyg(), small.to_pyg()
    classes = graph.num_classes

    def ours(batches: list[range]) -> list[float]:
        scores = []
        for seeds in batches:
            fitted = fit(GCN(), small.view(), val, classes=classes, seeds=seeds, recipe=recipe)
            scores += accuracy(GCN(), fitted.parameters, test).tolist()
        return scores

    def pyg() -> list[float]:
        parts = [(data.x, data.edge_index, data.edge_weight) for data in (little, whole)]
        return [
            train_plainly(PlainGCN(whole.num_features, classes), parts[0], little.y, parts[1], val=val, recipe=recipe)
            for _ in range(RUNS)
        ]

    def by_hand() -> list[float]:
        parts = [(little.x, small.view().inputs.gcn), (whole.x, val.inputs.gcn.csr)]
        return [
            train_plainly(DenseGCN(whole.num_features, classes), parts[0], little.y, parts[1], val=val, recipe=recipe)
            for _ in range(RUNS)
        ]

    ours([range(1)])  # warm up
    seconds, scores = {}, {}
    for name, work in {
        "gcond evaluate": lambda: ours([range(RUNS)]),
        "the same, a seed at a time": lambda: ours([range(run, run + 1) for run in range(RUNS)]),
        "plain loop, torch CSR": by_hand,
        "plain loop, PyG GCNConv": pyg,
    }.items():
        seconds[name], scores[name] = measure(work)
    together, single = list(scores.values())[:2]
    assert together == single, "a seed's result must not depend on how many run together"

    base = seconds["gcond evaluate"]
    rows = {name: {"cpu_seconds": round(value, 2), "ratio": round(value / base, 2)} for name, value in seconds.items()}
    if "--json" in sys.argv:
        print(json.dumps({"epochs": recipe.epochs, "runs": RUNS, "nodes": NODES, "rows": rows}))
        return
    print(f"{RUNS} runs x {recipe.epochs} epochs, {NODES} nodes, validation on all of Cora every epoch, one thread")
    for name, row in rows.items():
        print(f"{name:<26} {row['cpu_seconds']:>8.2f} CPU s   {row['ratio']:>6.2f} x")


if __name__ == "__main__":
    main()
