"""What training architectures side by side buys in a search, against training them one by one with the same recipe.

Both ways train the same 48 architectures of APPNP on Cora, whole and condensed; the ratio is taken within one run, on
one thread, in CPU seconds.

    python benchmarks/nas.py [--quick] [--json]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch

import gcond
from gcond.evaluation.nas.search_space import groups, space
from gcond.graph.labelled_view import LabelledView
from gcond.runtime.memory import reuse_memory
from gcond.training.fit import fit, runs_together
from gcond.training.recipe import Recipe

GRID = {"hops": [2, 10], "alpha": [0.1], "hidden": [16, 64, 256], "activation": list(space("appnp").grid["activation"])}
NODES = 70


def main() -> None:
    torch.set_num_threads(1)
    reuse_memory()
    epochs = 5 if "--quick" in sys.argv else 40
    graph = gcond.load("cora")
    small = gcond.condense(graph, method="random", nodes=NODES)
    models = space("appnp", GRID).models
    val, classes = graph.view("val"), graph.num_classes

    def one_by_one(train: LabelledView, every: int) -> None:
        for model in models:
            fit(
                model,
                train,
                val,
                classes=classes,
                seeds=[0],
                recipe=Recipe(epochs=epochs, validate_every=every, patience=0),
            )

    def side_by_side(train: LabelledView, every: int) -> None:
        for group in groups(models, graph.num_features, classes):
            width = runs_together(group[0], train, classes)
            for start in range(0, len(group), width):
                part = group[start : start + width]
                recipe = Recipe(epochs=epochs, validate_every=every, patience=0)
                fit(part, train, val, classes=classes, seeds=[0] * len(part), recipe=recipe)

    ways: dict[str, tuple[Callable[[LabelledView, int], None], int]] = {
        "one by one, a look every epoch": (one_by_one, 1),
        "one by one, every fifth": (one_by_one, 5),
        "side by side, a look every epoch": (side_by_side, 1),
        "side by side, every fifth (nas)": (side_by_side, 5),
    }
    rows = {}
    for side, train in (("whole", graph.view("train")), ("condensed", small.view())):
        spent = {}
        for name, (way, every) in ways.items():
            start = time.process_time()
            way(train, every)
            spent[name] = time.process_time() - start
        base = spent["side by side, every fifth (nas)"]
        rows[side] = {
            name: {"cpu_ms_per_architecture_and_epoch": 1000 * value / len(models) / epochs, "ratio": value / base}
            for name, value in spent.items()
        }
    if "--json" in sys.argv:
        print(json.dumps({"epochs": epochs, "architectures": len(models), "nodes": NODES, "rows": rows}))
        return
    print(f"{len(models)} architectures of APPNP x {epochs} epochs, Cora and {NODES} nodes of it, one thread")
    for side, ways_of_side in rows.items():
        for name, row in ways_of_side.items():
            spent_ms = row["cpu_ms_per_architecture_and_epoch"]
            print(f"{side:<10} {name:<34} {spent_ms:>7.2f} CPU ms per model and epoch   {row['ratio']:>5.2f} x")


if __name__ == "__main__":
    main()
