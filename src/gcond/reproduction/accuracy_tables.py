"""Experiments whose cells are test accuracies: what is condensed how, and what is trained on it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import fmean
from typing import Any

from gcond.condensed import CondensedGraph
from gcond.evaluation.threshold_sweep import DELTAS
from gcond.graph import budget_for
from gcond.jobs import Condensation, TrainingJob, training_seeds
from gcond.matching.sparsification import thresholded
from gcond.methods import Method
from gcond.models import GCN, SGC, Model
from gcond.models import find as find_model
from gcond.reproduction.experiment_setup import ExperimentSetup
from gcond.reproduction.paper import figure, spelling
from gcond.results import Figure, ReproducedRow
from gcond.training import PAPER_PROTOCOL, recipe_for

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
    recipe = recipe_for(cell.model, {**PAPER_PROTOCOL, **cell.recipe, **setup.scale.train})
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


Measurement = Callable[[ExperimentSetup], list[ReproducedRow]]


def measured(cells: Callable[[ExperimentSetup], Iterable[Cell]]) -> Measurement:
    """The experiment whose cells are ``cells``."""

    @functools.wraps(cells)
    def experiment(setup: ExperimentSetup) -> list[ReproducedRow]:
        return measure(setup, list(cells(setup)))

    return experiment


@measured
def main(setup: ExperimentSetup) -> Iterator[Cell]:
    """Table 2: a GCN on what every method makes at every budget."""
    yield Cell(("", "whole"), figure("main", setup.dataset, "whole"))
    for place, nodes in enumerate(setup.budgets):
        for name in METHODS:
            printed = figure("main", setup.dataset, "rows", place, spelling(name))
            yield Cell((str(nodes), name), printed, method=setup.method(name), nodes=nodes)


def architectures(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Table 3: one condensed graph, many test models; the average is over five of them, as in the paper."""
    printed = ("architectures", setup.dataset)
    cells = list(_learned(setup, ("mlp", "gat", *BACKBONES), *printed))
    # Without edges there is nothing to attend to, and the paper prints nothing.
    cells = [cell for cell in cells if cell.model.name != "gat" or cell.paper is not None]
    threshold = setup.recipe.gat_threshold
    cells = [replace(cell, threshold=threshold) if cell.model.name == "gat" else cell for cell in cells]
    return _with_averages(measure(setup, cells), lambda name: figure(*printed, spelling(name), "avg"))


def _learned(setup: ExperimentSetup, models: Sequence[str], *printed: str) -> Iterator[Cell]:
    """Every test model on what every method that learns makes of the middle budget."""
    for name in LEARNED:
        for model in models:
            paper = figure(*printed, spelling(name), model)
            yield Cell((name, model), paper, find_model(model)(), setup.method(name), setup.middle)


@measured
def versatility(setup: ExperimentSetup) -> Iterator[Cell]:
    """Table 4: rows are the backbone that condenses, columns the model that is tested."""
    nodes = setup.budgets[0] if setup.dataset == "ogbn-arxiv" else setup.middle
    for backbone, model in product(BACKBONES, BACKBONES):
        printed = figure("versatility", setup.dataset, "cells", backbone, model)
        method = setup.method("gcond", backbone=backbone)
        yield Cell((backbone, model), printed, find_model(model)(), method, nodes)


@measured
def parametrization(setup: ExperimentSetup) -> Iterator[Cell]:
    """Ablation: A' as numbers of its own against A' = g_Φ(X')."""
    for structure in ("free", "mlp"):
        method, printed = (
            setup.method("gcond", structure=structure),
            figure("parametrization", setup.dataset, structure),
        )
        yield Cell((structure,), printed, method=method, nodes=setup.middle)


@measured
def optimization(setup: ExperimentSetup) -> Iterator[Cell]:
    """Ablation: X' and Φ learning together against in turns."""
    in_turns = setup.method("gcond")
    for name, method in (("joint", setup.method("gcond", schedule="joint")), ("alternate", in_turns)):
        yield Cell((name,), figure("optimization", setup.dataset, name), method=method, nodes=setup.middle)


def sparsification(setup: ExperimentSetup) -> list[ReproducedRow]:
    """The figure of accuracy against the threshold δ; the paper prints no numbers for it."""
    gcond = setup.method("gcond")
    small = setup.condense(gcond, setup.middle)
    cells = []
    for delta in DELTAS:
        density = "" if small is None else f"{100 * _cut(small, delta).statistics.density:.2f} %"
        cells.append(Cell((f"δ = {delta:g}", density), None, method=gcond, nodes=setup.middle, threshold=delta))
    return measure(setup, cells)


@measured
def depth(setup: ExperimentSetup) -> Iterator[Cell]:
    """Hidden units and layers of the GCN that is tested."""
    for hidden, layers in [(16, 1), *product((16, 32, 64, 128, 256), (2, 3, 4))]:
        printed = figure("depth_hidden", setup.dataset, "cells", hidden, layers)
        model = GCN(hidden=hidden, layers=layers)
        yield Cell((str(hidden), str(layers)), printed, model, setup.method("gcond"), setup.middle)


@measured
def cross_depth(setup: ExperimentSetup) -> Iterator[Cell]:
    """SGC of one depth condenses, of another is tested; without weight decay, with dropout 0.5."""
    recipe = {"weight_decay": 0.0, "dropout": 0.5}
    for made, tested in product(DEPTHS, DEPTHS):
        method = setup.method("gcond", backbone="sgc", layers=1, hops=made)
        printed, model = figure("cross_depth", "cells", made, tested), SGC(layers=1, hops=tested)
        yield Cell((str(made), str(tested)), printed, model, method, setup.middle, recipe)


@measured
def propagation(setup: ExperimentSetup) -> Iterator[Cell]:
    """Transformation layers and propagations of the SGC that is tested."""
    for layers, hops in product(range(1, 6), range(1, 6)):
        printed, model = figure("propagation_transformation", "cells", layers, hops), SGC(layers=layers, hops=hops)
        yield Cell((str(layers), str(hops)), printed, model, setup.method("gcond"), setup.middle)


@measured
def original(setup: ExperimentSetup) -> Iterator[Cell]:
    """The test models trained on the whole graph."""
    for model in ("gat", "cheby", "sage", "sgc", "appnp", "gcn"):
        yield Cell((model,), figure("original", setup.dataset, model), find_model(model)())


@measured
def pubmed(setup: ExperimentSetup) -> Iterator[Cell]:
    """PubMed, which has a table of its own: the learned methods and five test models."""
    yield Cell(("whole", "gcn"), figure("pubmed", "whole_gcn"))
    yield from _learned(setup, BACKBONES, "pubmed")


def _with_averages(rows: Sequence[ReproducedRow], printed: Callable[[str], Figure | None]) -> list[ReproducedRow]:
    """The rows, and after each method's own the mean over :data:`BACKBONES`."""
    found: list[ReproducedRow] = []
    for name in dict.fromkeys(row.labels[0] for row in rows):
        own = [row for row in rows if row.labels[0] == name]
        means = [row.ours.mean for row in own if row.labels[1] in BACKBONES and row.ours is not None]
        ours = Figure(fmean(means)) if len(means) == len(BACKBONES) else None
        found += [*own, ReproducedRow((name, "average"), ours, len(means), printed(name))]
    return found
