"""``gcond condense``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcond.cli.assignments import parse_assignments
from gcond.cli.column_engine import THIS_PROCESS, ColumnEngine, MemoryOption
from gcond.cli.common_options import (
    DEFAULTS,
    Common,
    DirectedOption,
    FeaturesOption,
    KeepDigestsOption,
    MetricOption,
    SetOption,
    SettingOption,
    Source,
    check_memory,
    check_new_file,
    check_tensor_file,
    file_stem,
    flag,
    whole_number,
)
from gcond.cli.learning_options import NOT_WATCHING, Watching, tell_written
from gcond.cli.storage_facts import DROPPED_IDS, compaction_facts
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.cli.output import Voice
    from gcond.condensed import CondensedGraph
    from gcond.config.metric import Metric
    from gcond.graph import SourceGraph

DEFAULT_METHOD = "gcond"


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
    recipe: Annotated[
        str | None,
        Parameter(help="Settings of the method from a TOML file, or the paper's for a data set, such as cora."),
    ] = None,
    metric: MetricOption = None,
    set_: Annotated[SetOption, Parameter(help="Settings of the method; they go before the recipe's.")] = (),
    setting: SettingOption = None,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    compact: Annotated[
        bool, flag("Few bytes: as few entries and bits as validation accuracy allows, in place while features learn.")
    ] = False,
    keep_digests: KeepDigestsOption = False,
    recommend: Annotated[
        bool,
        flag("At the end, find the recipe that fits a GCN here, as `gcond recommend` does, and write it down too."),
    ] = False,
    memory: MemoryOption = None,
    work: ColumnEngine = THIS_PROCESS,
    force: Annotated[bool, flag("Replace the file, and a checkpoint, if there is one.")] = False,
    watching: Watching = NOT_WATCHING,
    common: Common = DEFAULTS,
) -> None:
    """Condense a graph and write the result to a file.

    For example: gcond condense cora --ratio 2.6%

    With the paper's settings: gcond condense cora --nodes 70 --recipe cora
    """
    voice = common.start()
    from gcond.graph import budget_for
    from gcond.graph.budget import check_budget, parse_ratio
    from gcond.methods import method_for
    from gcond.methods.compact import condense_compact
    from gcond.reports.tables import seconds, size
    from gcond.runtime.device import choose_device

    # What can be refused without the graph is refused before it is read.
    check_budget(ratio, nodes)
    if keep_digests and not compact:
        raise GcondError("--keep-digests is for --compact: a plain file has its digests anyway, so leave it out")
    watching.check()
    if recommend and watching.within is not None:
        raise GcondError("--within is for condensing alone: leave --recommend out, and use gcond recommend afterwards")
    chosen = method_for(method, parse_assignments(set_), recipe)
    if metric is not None:
        if chosen.with_metric(metric).chooses_by != metric:
            raise GcondError(f"method '{method}' chooses nothing on validation nodes: leave --metric out")
        chosen = chosen.with_metric(metric)
    learned = chosen.kind == "learned"

    def check(place: Path) -> None:
        check_tensor_file(place)
        check_new_file(place, source, force)
        if learned:
            watching.check_place(place, force)

    if out is not None:
        check(out)
    work.check()
    if method != "coarsening" and setting != "inductive":  # what is never streamed has a sentence of its own
        check_memory(source, memory)
    graph = common.load(source, voice, setting=setting, directed=directed, features=features, memory=memory)
    budget = budget_for(graph, ratio=ratio, nodes=nodes)
    if ratio is not None and (asked := round(parse_ratio(ratio) * graph.budget_population)) > budget.nodes:
        voice.note(
            f"{graph.name}: ratio {ratio} of {graph.budget_population:,} nodes is {asked:,} nodes, "
            f"cut to the {budget.nodes:,} labelled ones"
        )
    if out is None:
        out = Path(f"{file_stem(graph)}-{method}-{budget.nodes}.safetensors")
        check(out)
    device = choose_device(common.device)
    session = watching.session(out, voice, method, learned=learned, compact=compact)
    with work.on(graph, voice, common) as graph, session as callbacks:
        make = partial(condense_compact, chosen, keep_digests=keep_digests) if compact else chosen.condense
        condensed = make(graph, budget, seed, device=device, callbacks=callbacks, threads=common.threads)
        condensed.save(out)
    if recommend:
        condensed = _recommended(condensed, graph, voice, common, chosen.chooses_by)
        condensed.save(out)

    provenance, found = condensed.provenance, condensed.statistics
    assert provenance is not None
    ids_dropped = compact and not keep_digests and graph.ids is not None
    counts = {
        "nodes": f"{found.nodes:,} of {graph.num_nodes:,} ({100 * found.nodes / graph.num_nodes:.2f} %)",
        "edges": f"{found.edges:,} of {graph.num_edges:,}",
        "storage": f"{size(found.bytes)} of {size(graph.nbytes)}; the whole file {size(out.stat().st_size)}",
        **compaction_facts(condensed),
        **(DROPPED_IDS if ids_dropped else {}),
    }
    tell_written(voice, out, condensed, source, counts=counts, time=seconds(provenance.cost["wall_seconds"]))


def _recommended(
    condensed: CondensedGraph, graph: SourceGraph, voice: Voice, common: Common, metric: Metric
) -> CondensedGraph:
    """The same graph with the recipe that fits it."""
    from gcond.evaluation.recommend import recommend

    with voice.progress("recommending") as tick:
        found = recommend(
            condensed, on=graph, metric=metric, device=common.device, threads=common.threads, on_progress=tick
        )
    return found.graphs[0]
