"""Experiments whose cells are not accuracies alone: what the graphs look like, how long it takes, and the search."""

from __future__ import annotations

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.evaluation.nas.search import search
from gcond.graph.statistics import Statistics
from gcond.reproduction.accuracy_tables import Cell, measure
from gcond.reproduction.experiment_setup import Lab, Row
from gcond.reproduction.paper import Figure, figure, tables
from gcond.results.search import Search, Side

EPOCHS = 50
"""How many the paper's running times are of."""


def statistics(lab: Lab) -> list[Row]:
    """Condensed and original graphs in numbers. Ours count storage as it is held, the source's features sparse."""
    method = lab.method("gcond")
    whole, small = measure(lab, [Cell(("whole",), None), Cell(("gcond",), None, method=method, nodes=lab.middle)])
    rows = _properties(lab, "whole", whole, lab.source.training_graph().statistics)
    condensed = lab.condense(method, lab.middle)
    return rows if condensed is None else rows + _properties(lab, "gcond", small, condensed.statistics)


def _properties(lab: Lab, graph: str, score: Row, found: Statistics) -> list[Row]:
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
        Row(
            (graph, names.get(key, key)),
            ours,
            score.n if key == "accuracy" else 1,
            figure("statistics", lab.dataset, graph, key),
            digits=0 if key in ("nodes", "edges") else None,
        )
        for key, ours in measured.items()
    ]


def time(lab: Lab) -> list[Row]:
    """Seconds for 50 epochs without the probe, by one worker; the paper's on one A100.

    A quick version measures fewer, and multiplies.
    """
    rows = []
    epochs = min(EPOCHS, lab.scale.epochs or EPOCHS)
    for ratio in (key for key in tables()["time"].get(lab.dataset, ())):
        share = float(ratio)
        asked = round(share * lab.source.budget_population)
        nodes = max(lab.source.num_classes, min(asked, int(lab.source.train_mask.sum())))
        # The labelled nodes as a start: it asks for no trial runs, whose time would be counted.
        method = lab.method("gcond", epochs=epochs, probe_every=0, patience=0, init="sample")
        graphs = [lab.condense(method, nodes, seed) for seed in range(lab.scale.seeds)]
        costs = [small.provenance.cost for small in graphs if small is not None and small.provenance is not None]
        spent = [cost["wall_seconds"] * EPOCHS / epochs for cost in costs]
        ours = Figure.over(spent)
        # Where fewer nodes are labelled than the paper made, there is nothing of its own to stand beside.
        printed = figure("time", lab.dataset, ratio) if nodes == asked else None
        rows.append(Row((f"{100 * nodes / lab.source.budget_population:.1f} %", str(nodes)), ours, len(spent), printed))
    return rows


def nas(lab: Lab) -> list[Row]:
    """Architecture search: how well validation accuracies of both sides agree, and what the winner reaches.

    On one condensed graph a method, as in the paper; the seconds of a search do not count those of condensing.
    """
    rows: list[Row] = []
    whole: Search | None = None
    for name in ("random", "herding", "gcond"):
        small = lab.condense(lab.method(name), lab.middle)
        found = None if small is None else _search(lab, small)
        whole = found or whole
        if found is not None and name == "gcond" and not lab.engine.idle:
            found.save(lab.folder)  # for plots and reports
        tried = 0 if found is None else len(found.architectures)
        agreement = (None, None) if found is None else (found.pearson, found.spearman)
        made = None if small is None or small.provenance is None else small.provenance.cost["wall_seconds"]
        rows += [
            Row((name, "Pearson"), _known(agreement[0]), tried, figure("nas", lab.dataset, "pearson", name)),
            Row((name, "Spearman"), _known(agreement[1]), tried, None),
            Row((name, "seconds to condense"), _known(made), 1, None, digits=0),
            *_winner(lab, name, found, "condensed"),
        ]
    return rows + _winner(lab, "whole", whole, "whole")


def _search(lab: Lab, small: CondensedGraph) -> Search | None:
    """None where no architecture could be trained on both sides."""
    found = search(
        small,
        on=lab.source,
        grid=lab.scale.architectures,
        recipe=lab.scale.train or None,
        runs=2 * lab.scale.runs,
        engine=lab.engine,
        folder=lab.folder,  # one for all: the whole graph is searched once
        device=lab.device,
        command=lab.command,
        on_progress=lab.on_progress,
    )
    lab.failures.extend(found.failures)
    return found if found.architectures else None


def _winner(lab: Lab, name: str, found: Search | None, side: Side) -> list[Row]:
    """What the architecture that a side likes best reaches, and how long the side took to find it."""
    winner = None if found is None else found.winners.get(side)
    tested = None if winner is None else Figure(100 * winner.mean, 100 * winner.std)
    count = 0 if winner is None else len(winner.runs)
    return [
        Row((name, "test accuracy, %"), tested, count, figure("nas", lab.dataset, "test", name)),
        Row((name, "seconds to search"), _known(None if found is None else found.seconds[side]), 1, None, digits=0),
    ]


def _known(value: float | None) -> Figure | None:
    return None if value is None else Figure(value)
