"""Experiments whose cells are not accuracies alone: what the graphs look like, how long it takes, and the search."""

from __future__ import annotations

from gcond.evaluation.nas import search
from gcond.evaluation.nas_result import SearchResult, Side
from gcond.evaluation.sweep import Failure
from gcond.reproduction.accuracy import Cell, measure
from gcond.reproduction.lab import Lab, Row
from gcond.reproduction.paper import Figure, figure, tables
from gcond.statistics import Statistics, describe

EPOCHS = 50
"""How many the paper's running times are of."""


def statistics(lab: Lab) -> list[Row]:
    """Condensed and original graphs in numbers. Ours count storage as it is held, the source's features sparse."""
    method = lab.method("gcond")
    whole, small = measure(lab, [Cell(("whole",), None), Cell(("gcond",), None, method=method, nodes=lab.middle)])
    rows = _properties(lab, "whole", whole, describe(lab.source))
    condensed = lab.condense(method, lab.middle)
    return rows if condensed is None else rows + _properties(lab, "gcond", small, describe(condensed))


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
        )
        for key, ours in measured.items()
    ]


def time(lab: Lab) -> list[Row]:
    """Seconds for 50 epochs without the probe, by one worker; the paper's on one A100."""
    rows = []
    for ratio in (key for key in tables()["time"].get(lab.dataset, ())):
        share = float(ratio)
        asked = round(share * lab.source.budget_population)
        nodes = max(lab.source.num_classes, min(asked, int(lab.source.train_mask.sum())))
        # The labelled nodes as a start: it asks for no trial runs, whose time would be counted.
        method = lab.method("gcond", epochs=EPOCHS, probe_every=0, patience=0, init="sample")
        small = lab.condense(method, nodes)
        made = None if small is None else small.provenance
        ours = None if made is None else Figure(made.cost["wall_seconds"])
        # Where fewer nodes are labelled than the paper made, there is nothing of its own to stand beside.
        printed = figure("time", lab.dataset, ratio) if nodes == asked else None
        rows.append(
            Row((f"{100 * nodes / lab.source.budget_population:.1f} %", str(nodes)), ours, made is not None, printed)
        )
    return rows


def nas(lab: Lab) -> list[Row]:
    """Architecture search: how well validation accuracies of both sides agree, and what the winner reaches."""
    rows: list[Row] = []
    whole: list[Row] = []
    for name in ("random", "herding", "gcond"):
        small = lab.condense(lab.method(name), lab.middle)
        if small is None:
            continue
        found = search(
            small,
            on=lab.source,
            grid=lab.scale.architectures,
            recipe=lab.scale.train or None,
            runs=2 * lab.scale.runs,
            engine=lab.engine,
            folder=lab.folder,  # one for all: the whole graph is searched once
            device=lab.device,
            on_progress=lab.on_progress,
        )
        lab.failures.extend(Failure(failure["what"], failure["error"]) for failure in found.failures)
        tried = len(found.architectures)
        if not tried:
            continue
        rows += [
            Row((name, "Pearson"), _known(found.pearson), tried, figure("nas", lab.dataset, "pearson", name)),
            Row((name, "Spearman"), _known(found.spearman), tried, None),
            *_winner(lab, name, found, "condensed"),
        ]
        whole = _winner(lab, "whole", found, "whole")
    return rows + whole


def _winner(lab: Lab, name: str, found: SearchResult, side: Side) -> list[Row]:
    """What the architecture that a side likes best reaches, and how long the side took to find it."""
    winner = found.winners.get(side)
    tested = None if winner is None else Figure(100 * winner.mean, 100 * winner.std)
    count = 0 if winner is None else len(winner.runs)
    return [
        Row((name, "test accuracy, %"), tested, count, figure("nas", lab.dataset, "test", name)),
        Row((name, "seconds"), Figure(round(found.seconds[side])), 1, None),
    ]


def _known(value: float | None) -> Figure | None:
    return None if value is None else Figure(value)
