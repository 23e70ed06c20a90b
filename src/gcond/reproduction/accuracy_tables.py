"""Experiments whose cells are test accuracies: what is condensed how, and what is trained on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from gcond.condensed import CondensedGraph
from gcond.evaluation.thresholds import DELTAS
from gcond.graph import budget_for
from gcond.jobs import Condensation, TrainingJob, training_seeds
from gcond.matching.sparsification import thresholded
from gcond.methods import Method
from gcond.models import GCN, SGC, Model
from gcond.models import find as find_model
from gcond.reproduction.experiment_setup import ExperimentSetup
from gcond.reproduction.paper import figure, spelling
from gcond.results import Figure, ReproducedRow
from gcond.training import recipe_for

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


def measure(setup: ExperimentSetup, cells: Sequence[Cell]) -> list[ReproducedRow]:
    """Do what the cells need and is not done yet; a row for each of them."""
    jobs = {cell.labels: _condensations(setup, cell) for cell in cells}
    made = setup.runner.condense(job for own in jobs.values() for job in own)
    orders = {cell.labels: _orders(setup, cell, jobs[cell.labels], made) for cell in cells}
    trials = iter(setup.runner.train([order for own in orders.values() for order in own]))
    rows = []
    for cell in cells:
        scores = [100 * (trial.test or 0.0) for _ in orders[cell.labels] for trial in next(trials)]
        rows.append(ReproducedRow(cell.labels, Figure.over(scores), len(scores), cell.paper))
    return rows


def _condensations(setup: ExperimentSetup, cell: Cell) -> list[Condensation]:
    if cell.method is None:
        return []
    budget = budget_for(setup.source, nodes=cell.nodes)
    return [Condensation(cell.method, budget, seed) for seed in range(setup.scale.seeds)]


def _orders(
    setup: ExperimentSetup, cell: Cell, jobs: Sequence[Condensation], made: Mapping[Condensation, CondensedGraph]
) -> list[TrainingJob]:
    recipe = recipe_for(cell.model, {**cell.recipe, **setup.scale.train})
    if cell.method is None:
        return [TrainingJob(None, cell.model, recipe, tuple(range(setup.scale.runs)))]
    return [
        TrainingJob(
            made[job] if cell.threshold is None else _cut(made[job], cell.threshold),
            cell.model,
            recipe,
            training_seeds(job.seed, setup.scale.runs),
            str(job),
        )
        for job in jobs
        if job in made
    ]


def _cut(small: CondensedGraph, threshold: float) -> CondensedGraph:
    return thresholded(small, threshold) if small.num_edges or small.structure else small


def main(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Table 2: a GCN on what every method makes at every budget."""
    cells = [Cell(("", "whole"), figure("main", setup.dataset, "whole"))]
    for place, nodes in enumerate(setup.budgets):
        for name in METHODS:
            printed = figure("main", setup.dataset, "rows", place, spelling(name))
            cells.append(Cell((str(nodes), name), printed, method=setup.method(name), nodes=nodes))
    return measure(setup, cells)


def architectures(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Table 3: one condensed graph, many test models; the average is over five of them, as in the paper."""
    cells = []
    for name in LEARNED:
        for model in ("mlp", "gat", *BACKBONES):
            printed = figure("architectures", setup.dataset, spelling(name), model)
            if model == "gat" and printed is None:
                continue  # without edges there is nothing to attend to
            threshold = setup.recipe.gat_threshold if model == "gat" else None
            test_model = find_model(model)()
            cells.append(
                Cell((name, model), printed, test_model, setup.method(name), setup.middle, threshold=threshold)
            )
    return _with_averages(
        measure(setup, cells), lambda name: figure("architectures", setup.dataset, spelling(name), "avg")
    )


def versatility(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Table 4: rows are the backbone that condenses, columns the model that is tested."""
    return measure(
        setup,
        [
            Cell(
                (backbone, model),
                figure("versatility", setup.dataset, "cells", backbone, model),
                find_model(model)(),
                setup.method("gcond", backbone=backbone),
                setup.budgets[0] if setup.dataset == "ogbn-arxiv" else setup.middle,
            )
            for backbone in BACKBONES
            for model in BACKBONES
        ],
    )


def parametrization(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Ablation: A' as numbers of its own against A' = g_Φ(X')."""
    return _variants(setup, "parametrization", {"free": {"structure": "free"}, "mlp": {"structure": "mlp"}})


def optimization(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Ablation: X' and Φ learning together against in turns."""
    alternate = setup.method("gcond").schedule  # type: ignore[attr-defined]
    return _variants(setup, "optimization", {"joint": {"schedule": "joint"}, "alternate": {"schedule": alternate}})


def _variants(setup: ExperimentSetup, table: str, variants: Mapping[str, Mapping[str, Any]]) -> list[ReproducedRow]:
    return measure(
        setup,
        [
            Cell(
                (name,), figure(table, setup.dataset, name), method=setup.method("gcond", **options), nodes=setup.middle
            )
            for name, options in variants.items()
        ],
    )


def sparsification(setup: ExperimentSetup) -> list[ReproducedRow]:
    """The figure of accuracy against the threshold δ; the paper prints no numbers for it."""
    gcond = setup.method("gcond")
    cells = [Cell((f"δ = {d:g}",), None, method=gcond, nodes=setup.middle, threshold=d) for d in DELTAS]
    small = setup.condense(gcond, setup.middle)
    density = {} if small is None else {f"δ = {d:g}": _density(_cut(small, d)) for d in DELTAS}
    return [
        ReproducedRow((*row.labels, density.get(row.labels[0], "")), row.ours, row.n, row.paper)
        for row in measure(setup, cells)
    ]


def _density(small: CondensedGraph) -> str:

    return f"{100 * small.statistics.density:.2f} %"


def depth(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Hidden units and layers of the GCN that is tested."""
    shapes = [(16, 1), *((hidden, layers) for hidden in (16, 32, 64, 128, 256) for layers in (2, 3, 4))]
    return measure(
        setup,
        [
            Cell(
                (str(hidden), str(layers)),
                figure("depth_hidden", setup.dataset, "cells", hidden, layers),
                GCN(hidden=hidden, layers=layers),
                setup.method("gcond"),
                setup.middle,
            )
            for hidden, layers in shapes
        ],
    )


def cross_depth(setup: ExperimentSetup) -> list[ReproducedRow]:
    """SGC of one depth condenses, of another is tested; without weight decay, with dropout 0.5."""
    return measure(
        setup,
        [
            Cell(
                (str(made), str(tested)),
                figure("cross_depth", "cells", made, tested),
                SGC(layers=1, hops=tested),
                setup.method("gcond", backbone="sgc", layers=1, hops=made),
                setup.middle,
                {"weight_decay": 0.0, "dropout": 0.5},
            )
            for made in DEPTHS
            for tested in DEPTHS
        ],
    )


def propagation(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Transformation layers and propagations of the SGC that is tested."""
    return measure(
        setup,
        [
            Cell(
                (str(layers), str(hops)),
                figure("propagation_transformation", "cells", layers, hops),
                SGC(layers=layers, hops=hops),
                setup.method("gcond"),
                setup.middle,
            )
            for layers in range(1, 6)
            for hops in range(1, 6)
        ],
    )


def original(setup: ExperimentSetup) -> list[ReproducedRow]:
    """The test models trained on the whole graph."""
    models = ("gat", "cheby", "sage", "sgc", "appnp", "gcn")
    return measure(
        setup, [Cell((model,), figure("original", setup.dataset, model), find_model(model)()) for model in models]
    )


def pubmed(setup: ExperimentSetup) -> list[ReproducedRow]:
    """PubMed, which has a table of its own: the learned methods and five test models."""
    cells = [Cell(("whole", "gcn"), figure("pubmed", "whole_gcn"))]
    for name in LEARNED:
        for model in BACKBONES:
            printed = figure("pubmed", spelling(name), model)
            cells.append(Cell((name, model), printed, find_model(model)(), setup.method(name), setup.middle))
    return measure(setup, cells)


def _with_averages(rows: Sequence[ReproducedRow], printed: Callable[[str], Figure | None]) -> list[ReproducedRow]:
    """The rows, and after each method's own the mean over :data:`BACKBONES`."""
    found: list[ReproducedRow] = []
    for name in dict.fromkeys(row.labels[0] for row in rows):
        own = [row for row in rows if row.labels[0] == name]
        means = [row.ours.mean for row in own if row.labels[1] in BACKBONES and row.ours is not None]
        ours = Figure(fmean(means)) if len(means) == len(BACKBONES) else None
        found += [*own, ReproducedRow((name, "average"), ours, len(means), printed(name))]
    return found
