"""Experiments whose cells are not accuracies alone: what the graphs look like, how long it takes, and the search."""

from __future__ import annotations

from gcond.condensed import CondensedGraph
from gcond.evaluation.nas.architecture_search import search
from gcond.graph.statistics import Statistics
from gcond.reproduction.accuracy_tables import Cell, measure
from gcond.reproduction.experiment_setup import ExperimentSetup
from gcond.reproduction.paper import figure, tables
from gcond.results import Figure, ReproducedRow, Search, Side

EPOCHS = 50
"""The number of epochs that the paper's running times are of."""


def statistics(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Condensed and original graphs in numbers. Ours count storage as it is held, the source's features sparse."""
    method = setup.method("gcond")
    whole, small = measure(setup, [Cell(("whole",), None), Cell(("gcond",), None, method=method, nodes=setup.middle)])
    rows = _properties(setup, "whole", whole, setup.source.training_graph().statistics)
    condensed = setup.condense(method, setup.middle)
    return rows if condensed is None else rows + _properties(setup, "gcond", small, condensed.statistics)


def _properties(setup: ExperimentSetup, graph: str, score: ReproducedRow, found: Statistics) -> list[ReproducedRow]:
    measured = {
        "accuracy": score.ours,
        "nodes": Figure(found.nodes),
        "edges": Figure(found.listed_edges),
        "sparsity_percent": Figure(100 * found.density),
        "homophily": None if found.homophily is None else Figure(found.homophily),
        "storage_mb": Figure(found.bytes / 10**6),
    }
    names = {"sparsity_percent": "sparsity, %", "storage_mb": "storage, MB", "accuracy": "accuracy, %"}
    return [
        ReproducedRow(
            (graph, names.get(key, key)),
            ours,
            score.n if key == "accuracy" else 1,
            figure("statistics", setup.dataset, graph, key),
            digits=0 if key in ("nodes", "edges") else None,
        )
        for key, ours in measured.items()
    ]


def time(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Seconds for 50 epochs without the probe, by one worker; the paper's on one A100.

    A quick version measures fewer, and multiplies.
    """
    rows = []
    epochs = min(EPOCHS, setup.scale.epochs or EPOCHS)
    for ratio in tables()["time"].get(setup.dataset, ()):
        asked = round(float(ratio) * setup.source.budget_population)
        nodes = max(setup.source.num_classes, min(asked, int(setup.source.train_mask.sum())))
        # The labelled nodes as a start: it asks for no trial runs, whose time would be counted.
        method = setup.method("gcond", epochs=epochs, probe_every=0, patience=0, init="sample")
        graphs = [setup.condense(method, nodes, seed) for seed in range(setup.scale.seeds)]
        costs = [small.provenance.cost for small in graphs if small is not None and small.provenance is not None]
        spent = [cost["wall_seconds"] * EPOCHS / epochs for cost in costs]
        # Where fewer nodes are labelled than the paper made, there is nothing of its own to stand beside.
        printed = figure("time", setup.dataset, ratio) if nodes == asked else None
        labels = (f"{100 * nodes / setup.source.budget_population:.1f} %", str(nodes))
        rows.append(ReproducedRow(labels, Figure.over(spent), len(spent), printed))
    return rows


def nas(setup: ExperimentSetup) -> list[ReproducedRow]:
    """Architecture search: how well validation accuracies of both sides agree, and what the winner reaches.

    On one condensed graph per method, as in the paper; the seconds of a search do not count those of condensing.
    """
    rows: list[ReproducedRow] = []
    dataset = setup.dataset
    whole: Search | None = None
    for name in ("random", "herding", "gcond"):
        small = setup.condense(setup.method(name), setup.middle)
        found = None if small is None else _search(setup, small)
        whole = found or whole
        if found is not None and name == "gcond" and not setup.plan.engine.idle:
            found.save(setup.folder)  # for plots and reports
        tried = 0 if found is None else len(found.architectures)
        agreement = (None, None) if found is None else (found.pearson, found.spearman)
        made = None if small is None or small.provenance is None else small.provenance.cost["cpu_seconds"]
        rows += [
            ReproducedRow((name, "Pearson"), _known(agreement[0]), tried, figure("nas", dataset, "pearson", name)),
            ReproducedRow((name, "Spearman"), _known(agreement[1]), tried, None),
            ReproducedRow((name, "CPU seconds to condense"), _known(made), 1, None, digits=0),
            *_winner(setup, name, found, "condensed"),
        ]
    return rows + _winner(setup, "whole", whole, "whole")


def _search(setup: ExperimentSetup, small: CondensedGraph) -> Search | None:
    """None where no architecture could be trained on both sides."""
    found = search(
        small,
        on=setup.source,
        grid=setup.scale.architectures,
        recipe=setup.scale.train or None,
        runs=2 * setup.scale.runs,
        engine=setup.plan.engine,
        folder=setup.folder,  # one for all: the whole graph is searched once
        device=setup.plan.device,
        command=setup.plan.command,
        on_progress=setup.plan.on_progress,
    )
    setup.failures.extend(found.failures)
    return found if found.architectures else None


def _winner(setup: ExperimentSetup, name: str, found: Search | None, side: Side) -> list[ReproducedRow]:
    """The accuracy of the architecture that a side likes best, and how long the side took to find it."""
    winner = None if found is None else found.winners.get(side)
    tested = None if winner is None else Figure(100 * winner.mean, 100 * winner.std)
    count = 0 if winner is None else len(winner.runs)
    spent = None if found is None else found.cpu_seconds[side]
    return [
        ReproducedRow((name, "test accuracy, %"), tested, count, figure("nas", setup.dataset, "test", name)),
        ReproducedRow((name, "CPU seconds to search"), _known(spent), 1, None, digits=0),
    ]


def _known(value: float | None) -> Figure | None:
    return None if value is None else Figure(value)
