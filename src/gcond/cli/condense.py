"""``gcond condense``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcond.cli.common import (
    DEFAULTS,
    Common,
    DirectedOption,
    SetOption,
    SettingOption,
    Source,
    check_new_file,
    flag,
    whole_number,
)
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.graph import SourceGraph

DEFAULT_METHOD = "herding"


def command(
    source: Source,
    /,
    *,
    ratio: Annotated[str | None, Parameter(help="Size as a share of the nodes: 2.6% or 0.026.")] = None,
    nodes: Annotated[int | None, whole_number("Size as a number of nodes.")] = None,
    method: Annotated[str, Parameter(help="One of `gcond methods`.")] = DEFAULT_METHOD,
    seed: Annotated[int, whole_number("The same seed gives the same graph.")] = 0,
    out: Annotated[
        Path | None, Parameter(alias="-o", help="The file to write; SOURCE-METHOD-NODES if not given.")
    ] = None,
    set_: Annotated[SetOption, Parameter(help="Settings of the method.")] = (),
    setting: SettingOption = None,
    directed: DirectedOption = False,
    force: Annotated[bool, flag("Replace the file if it exists.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Condense a graph and write the result to a file.

    For example: gcond condense cora --ratio 2.6% --method herding
    """
    voice = common.start()
    from gcond import methods, settings
    from gcond.budget import parse_ratio
    from gcond.condensing import budget_for, condense
    from gcond.reports.tables import facts, seconds, size
    from gcond.statistics import describe

    # What can be refused without the graph is refused before it is read.
    if (ratio is None) == (nodes is None):
        raise GcondError("give a budget as either --ratio or --nodes, for example --ratio 2.6% or --nodes 70")
    if ratio is not None:
        parse_ratio(ratio)
    options = settings.parse_assignments(set_)
    settings.build(methods.find(method), options, f"method '{method}'")
    if out is not None:
        check_new_file(out, source, force)

    graph = common.load(source, voice, setting=setting, directed=directed)
    budget = budget_for(graph, ratio=ratio, nodes=nodes)
    if ratio is not None and (asked := round(parse_ratio(ratio) * graph.budget_population)) > budget.nodes:
        voice.note(
            f"{graph.name}: ratio {ratio} of {graph.budget_population:,} nodes is {asked:,} nodes, "
            f"cut to the {budget.nodes:,} labelled ones"
        )
    if out is None:
        out = default_name(graph, method, budget.nodes)
        check_new_file(out, source, force)
    with voice.progress(f"{method} on {graph.name}"):
        condensed = condense(graph, method=method, nodes=budget.nodes, seed=seed, device=common.device, **options)  # type: ignore[arg-type]
    condensed.save(out)

    provenance, found = condensed.provenance, describe(condensed)
    assert provenance is not None
    cost = provenance.cost
    voice.result(
        {
            "out": str(out),
            "method": method,
            "nodes": found.nodes,
            "edges": found.edges,
            "seconds": cost["wall_seconds"],
            "cpu_seconds": cost["cpu_seconds"],
            "peak_rss_mb": cost["peak_rss_mb"],
            "settings": provenance.settings,
        },
        facts(
            {
                "wrote": str(out),
                "method": method,
                "nodes": f"{found.nodes:,} of {graph.num_nodes:,} ({100 * found.nodes / graph.num_nodes:.2f} %)",
                "edges": f"{found.edges:,} of {graph.num_edges:,}",
                "storage": f"{size(found.bytes)} of {size(graph.nbytes)}",
                "time": seconds(cost["wall_seconds"]),
                "next": f"gcond evaluate {out} --on {source}",
            }
        ).rich(),
    )


def default_name(graph: SourceGraph, method: str, nodes: int) -> Path:
    """``cora-herding-70.safetensors``; letters that trouble file systems become hyphens."""
    name = re.sub(r"[^\w.-]+", "-", graph.name).strip("-.") or "graph"
    return Path(f"{name}-{method}-{nodes}.safetensors")
