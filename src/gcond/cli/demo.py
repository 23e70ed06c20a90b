"""``gcond demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common

if TYPE_CHECKING:
    from gcond.condensed.condensed_graph import CondensedGraph
    from gcond.evaluation.evaluate import Score
    from gcond.graph.source_graph import SourceGraph
    from gcond.graph.statistics import Statistics
    from gcond.runtime.tick import Tick

# The graph that comes with a package install, at the middle one of the paper's three budgets for it.
DATASET = "citeseer"
NODES = 60
MODEL = "gcn"
# Enough to see the differences in about a minute; scores to quote take `gcond evaluate --runs 10`. A third of the
# usual epochs: on this graph the rest change the mean by less than 0.1 points.
RUNS = 3
RECIPE = {"epochs": 200}
# A taste of the methods that learn: they go on improving after these, and `gcond condense` lets them.
LEARNED = {"epochs": 15}


def command(
    *,
    out: Annotated[Path, Parameter(alias="-o", help="Folder for the condensed graphs.")] = Path("gcond-demo"),
    common: Common = DEFAULTS,
) -> None:
    """Condense a citation graph with every method and compare them with the whole graph."""
    voice = common.start()
    from gcond.reports.tables import Table, accuracy, percent, size
    from gcond.runtime.files import make_folder

    make_folder(out)
    graph = common.load(DATASET, voice)
    with voice.progress(f"loading {DATASET}") as tick:
        rows = _rows(graph, out, common.device, tick)
    cells = tuple(
        (
            row["method"] or "whole graph",
            f"{row['nodes']:,}",
            f"{row['edges']:,}",
            size(row["bytes"]),
            accuracy(row["mean"], row["std"]),
            f"{percent(row['share'])} %",
            f"{row['seconds']:.1f}",
        )
        for row in rows
    )
    headings = ("", "nodes", "edges", "storage", f"{MODEL} accuracy %", "of whole", "seconds")
    short = ", ".join(f"{key}={value}" for key, value in LEARNED.items())
    title = f"{graph.name} condensed to {NODES} nodes, {RUNS} runs each; methods that learn with {short}"
    payload = {"source": graph.name, "folder": str(out), "model": MODEL, "runs": RUNS, "rows": rows}
    best = max((row for row in rows if row["method"]), key=lambda row: row["mean"])
    voice.result(payload, Table(headings, cells, title).rich(), _what_next(best["out"], common))


def _rows(graph: SourceGraph, folder: Path, device: str, tick: Tick) -> list[dict[str, Any]]:
    """The whole graph first, then what every method made, each with its score."""
    from gcond.callbacks import Progress
    from gcond.cli.condense import default_name
    from gcond.evaluation.evaluate import evaluate
    from gcond.methods import available
    from gcond.methods.condense import condense

    def score(name: str, trained_on: SourceGraph | CondensedGraph) -> Score:
        def progress(model: str, done: int, total: int) -> None:
            tick(f"{model} on {name}", done, total)

        (found,) = evaluate(
            trained_on, on=graph, models=[MODEL], runs=RUNS, recipe=RECIPE, device=device, on_progress=progress
        )
        return found

    whole = score("the whole graph", graph)
    rows = [_row(graph.statistics, whole, whole, out=None, seconds=whole.seconds)]
    kinds = ("selected", "merged", "learned")
    for name, cls in sorted(available().items(), key=lambda item: (kinds.index(item[1].kind), item[0])):
        what = f"condensing with {name}"
        tick(what, 0, 1)
        options: dict[str, Any] = LEARNED if cls.kind == "learned" else {}
        small = condense(
            graph, method=name, nodes=NODES, device=device, callbacks=[Progress(tick, name=what)], **options
        )
        assert small.provenance is not None
        reached = score(name, small)
        path = folder / default_name(graph, cls.name, NODES)
        small.with_scores([reached.to_json()]).save(path)
        spent = small.provenance.cost["wall_seconds"] + reached.seconds
        rows.append(_row(small.statistics, reached, whole, name, out=str(path), seconds=spent))
    return rows


def _row(found: Statistics, score: Score, whole: Score, method: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "method": method,
        "nodes": found.nodes,
        "edges": found.edges,
        "bytes": found.bytes,
        "mean": score.mean,
        "std": score.std,
        "share": score.mean / whole.mean,
        **more,
    }


def _what_next(path: str, common: Common) -> str:
    data = f" --data {common.data}" if common.data else ""
    return "\n".join(
        [
            "What to try next:",
            f"  gcond inspect {path} --on {DATASET}{data}",
            f"  gcond evaluate {path} --on {DATASET} --models all{data}",
            f"  gcond condense {DATASET} --nodes {2 * NODES}{data}",
            "  gcond methods",
        ]
    )
