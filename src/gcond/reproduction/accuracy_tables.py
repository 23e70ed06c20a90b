"""Experiments whose cells are test accuracies: what is condensed how, and what is trained on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.evaluation.evaluate import recipe_for
from gcond.evaluation.thresholds import DELTAS, thresholded
from gcond.graph.budget import budget_for
from gcond.jobs.runner import Condensation, Order, training_seeds
from gcond.methods.method import Method
from gcond.models import find as find_model
from gcond.models.gcn import GCN
from gcond.models.model import Model
from gcond.models.sgc import SGC
from gcond.reproduction.experiment_setup import Lab, Row
from gcond.reproduction.paper import Figure, figure, spelling

METHODS = ("random", "herding", "k-center", "coarsening", "dc-graph", "gcond-x", "gcond")
LEARNED = ("dc-graph", "gcond-x", "gcond")
BACKBONES = ("appnp", "cheby", "gcn", "sage", "sgc")
DEPTHS = (2, 3, 4, 5, 6)


@dataclass(frozen=True)
class Cell:
    """An accuracy to be measured."""

    labels: tuple[str, ...]
    paper: Figure | None
    model: Model = field(default_factory=GCN)
    method: Method | None = None
    """None is the whole graph."""
    nodes: int = 0
    recipe: Mapping[str, Any] = field(default_factory=dict)
    threshold: float | None = None
    """A' is cut here instead of where the method did."""


def measure(lab: Lab, cells: Sequence[Cell]) -> list[Row]:
    """Do what the cells need and is not done yet; a row for each of them."""
    jobs = {cell.labels: _condensations(lab, cell) for cell in cells}
    made = lab.sweep.condense(job for own in jobs.values() for job in own)
    orders = {cell.labels: _orders(lab, cell, jobs[cell.labels], made) for cell in cells}
    trials = iter(lab.sweep.train([order for own in orders.values() for order in own]))
    rows = []
    for cell in cells:
        scores = [100 * trial.test for _ in orders[cell.labels] for trial in next(trials)]
        rows.append(Row(cell.labels, Figure.over(scores), len(scores), cell.paper))
    return rows


def _condensations(lab: Lab, cell: Cell) -> list[Condensation]:
    if cell.method is None:
        return []
    budget = budget_for(lab.source, nodes=cell.nodes)
    return [Condensation(cell.method, budget, seed) for seed in range(lab.scale.seeds)]


def _orders(
    lab: Lab, cell: Cell, jobs: Sequence[Condensation], made: Mapping[Condensation, CondensedGraph]
) -> list[Order]:
    recipe = recipe_for(cell.model, {**cell.recipe, **lab.scale.train})
    if cell.method is None:
        return [Order(None, cell.model, recipe, tuple(range(lab.scale.runs)))]
    return [
        Order(
            made[job] if cell.threshold is None else _cut(made[job], cell.threshold),
            cell.model,
            recipe,
            training_seeds(job.seed, lab.scale.runs),
            str(job),
        )
        for job in jobs
        if job in made
    ]


def _cut(small: CondensedGraph, threshold: float) -> CondensedGraph:
    return thresholded(small, threshold) if small.num_edges or small.structure else small


def main(lab: Lab) -> list[Row]:
    """Table 2: a GCN on what every method makes at every budget."""
    cells = [Cell(("", "whole"), figure("main", lab.dataset, "whole"))]
    for place, nodes in enumerate(lab.budgets):
        for name in METHODS:
            printed = figure("main", lab.dataset, "rows", place, spelling(name))
            cells.append(Cell((str(nodes), name), printed, method=lab.method(name), nodes=nodes))
    return measure(lab, cells)


def architectures(lab: Lab) -> list[Row]:
    """Table 3: one condensed graph, many test models; the average is over five of them, as in the paper."""
    cells = []
    for name in LEARNED:
        for model in ("mlp", "gat", *BACKBONES):
            printed = figure("architectures", lab.dataset, spelling(name), model)
            if model == "gat" and printed is None:
                continue  # without edges there is nothing to attend to
            threshold = lab.recipe.gat_threshold if model == "gat" else None
            test_model = find_model(model)()
            cells.append(Cell((name, model), printed, test_model, lab.method(name), lab.middle, threshold=threshold))
    return _with_averages(measure(lab, cells), lambda name: figure("architectures", lab.dataset, spelling(name), "avg"))


def versatility(lab: Lab) -> list[Row]:
    """Table 4: rows are the backbone that condenses, columns the model that is tested."""
    return measure(
        lab,
        [
            Cell(
                (backbone, model),
                figure("versatility", lab.dataset, "cells", backbone, model),
                find_model(model)(),
                lab.method("gcond", backbone=backbone),
                lab.budgets[0] if lab.dataset == "ogbn-arxiv" else lab.middle,
            )
            for backbone in BACKBONES
            for model in BACKBONES
        ],
    )


def parametrization(lab: Lab) -> list[Row]:
    """Ablation: A' as numbers of its own against A' = g_Φ(X')."""
    return _variants(lab, "parametrization", {"free": {"structure": "free"}, "mlp": {"structure": "mlp"}})


def optimization(lab: Lab) -> list[Row]:
    """Ablation: X' and Φ learning together against in turns."""
    alternate = lab.method("gcond").schedule  # type: ignore[attr-defined]
    return _variants(lab, "optimization", {"joint": {"schedule": "joint"}, "alternate": {"schedule": alternate}})


def _variants(lab: Lab, table: str, variants: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    return measure(
        lab,
        [
            Cell((name,), figure(table, lab.dataset, name), method=lab.method("gcond", **options), nodes=lab.middle)
            for name, options in variants.items()
        ],
    )


def sparsification(lab: Lab) -> list[Row]:
    """The figure of accuracy against the threshold δ; the paper prints no numbers for it."""
    gcond = lab.method("gcond")
    cells = [Cell((f"δ = {d:g}",), None, method=gcond, nodes=lab.middle, threshold=d) for d in DELTAS]
    small = lab.condense(gcond, lab.middle)
    density = {} if small is None else {f"δ = {d:g}": _density(_cut(small, d)) for d in DELTAS}
    return [
        Row((*row.labels, density.get(row.labels[0], "")), row.ours, row.n, row.paper) for row in measure(lab, cells)
    ]


def _density(small: CondensedGraph) -> str:

    return f"{100 * small.statistics.density:.2f} %"


def depth(lab: Lab) -> list[Row]:
    """Hidden units and layers of the GCN that is tested."""
    shapes = [(16, 1), *((hidden, layers) for hidden in (16, 32, 64, 128, 256) for layers in (2, 3, 4))]
    return measure(
        lab,
        [
            Cell(
                (str(hidden), str(layers)),
                figure("depth_hidden", lab.dataset, "cells", hidden, layers),
                GCN(hidden=hidden, layers=layers),
                lab.method("gcond"),
                lab.middle,
            )
            for hidden, layers in shapes
        ],
    )


def cross_depth(lab: Lab) -> list[Row]:
    """SGC of one depth condenses, of another is tested; without weight decay, with dropout 0.5."""
    return measure(
        lab,
        [
            Cell(
                (str(made), str(tested)),
                figure("cross_depth", "cells", made, tested),
                SGC(layers=1, hops=tested),
                lab.method("gcond", backbone="sgc", layers=1, hops=made),
                lab.middle,
                {"weight_decay": 0.0, "dropout": 0.5},
            )
            for made in DEPTHS
            for tested in DEPTHS
        ],
    )


def propagation(lab: Lab) -> list[Row]:
    """Transformation layers and propagations of the SGC that is tested."""
    return measure(
        lab,
        [
            Cell(
                (str(layers), str(hops)),
                figure("propagation_transformation", "cells", layers, hops),
                SGC(layers=layers, hops=hops),
                lab.method("gcond"),
                lab.middle,
            )
            for layers in range(1, 6)
            for hops in range(1, 6)
        ],
    )


def original(lab: Lab) -> list[Row]:
    """The test models trained on the whole graph."""
    models = ("gat", "cheby", "sage", "sgc", "appnp", "gcn")
    return measure(
        lab, [Cell((model,), figure("original", lab.dataset, model), find_model(model)()) for model in models]
    )


def pubmed(lab: Lab) -> list[Row]:
    """PubMed, which has a table of its own: the learned methods and five test models."""
    cells = [Cell(("whole", "gcn"), figure("pubmed", "whole_gcn"))]
    for name in LEARNED:
        for model in BACKBONES:
            printed = figure("pubmed", spelling(name), model)
            cells.append(Cell((name, model), printed, find_model(model)(), lab.method(name), lab.middle))
    return measure(lab, cells)


def _with_averages(rows: Sequence[Row], printed: Callable[[str], Figure | None]) -> list[Row]:
    """The rows, and after each method's own the mean over :data:`BACKBONES`."""
    found: list[Row] = []
    for name in dict.fromkeys(row.labels[0] for row in rows):
        own = [row for row in rows if row.labels[0] == name]
        means = [row.ours.mean for row in own if row.labels[1] in BACKBONES and row.ours is not None]
        ours = Figure(fmean(means)) if len(means) == len(BACKBONES) else None
        found += [*own, Row((name, "average"), ours, len(means), printed(name))]
    return found
