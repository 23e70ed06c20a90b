"""``gcond grow``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcond.cli.assignments import parse_assignments
from gcond.cli.column_engine import MemoryOption
from gcond.cli.common_options import (
    DEFAULTS,
    Common,
    SetOption,
    check_new_file,
    check_tensor_file,
    flag,
    say_notes,
    whole_number,
)
from gcond.cli.learning_options import NOT_WATCHING, Watching, tell_written


def command(
    condensed: Annotated[Path, Parameter(help="A file that `gcond condense` wrote by a method that learns.")],
    /,
    *,
    on: Annotated[str, Parameter(help="The source graph that it was made from.")],
    nodes: Annotated[int, whole_number("Size after growing, as a number of nodes.")],
    seed: Annotated[int, whole_number("The same seed gives the same new nodes.")] = 0,
    out: Annotated[
        Path | None, Parameter(alias="-o", help="The file to write; CONDENSED-grown-NODES if not given.")
    ] = None,
    set_: Annotated[SetOption, Parameter(help="Settings of the method; the others are those of CONDENSED.")] = (),
    force: Annotated[bool, flag("Replace the file, and a checkpoint, if there is one.")] = False,
    watching: Watching = NOT_WATCHING,
    memory: MemoryOption = None,
    common: Common = DEFAULTS,
) -> None:
    """Add nodes to a condensed graph, whose own stay as they are.

    For example: gcond grow cora-gcond-35.safetensors --on cora --nodes 70
    """
    voice = common.start()
    from gcond.condensed import CondensedGraph
    from gcond.condensed.origin import load_origin
    from gcond.methods.grow import grow, growable
    from gcond.reports.tables import seconds

    watching.check()
    options = parse_assignments(set_)
    small = CondensedGraph.load(condensed)
    _, made = growable(small, options)
    out = out or Path(f"{condensed.stem}-grown-{nodes}.safetensors")
    check_tensor_file(out)
    check_new_file(out, on, force)
    watching.check_place(out, force)
    graph = load_origin(made, on, data_dir=common.data, memory_limit=memory)
    say_notes(graph, voice)
    with watching.session(out, voice, made.method) as callbacks:
        grown = grow(
            small,
            on=graph,
            nodes=nodes,
            seed=seed,
            device=common.device,
            threads=common.threads,
            callbacks=callbacks,
            **options,
        )
        grown.save(out)

    provenance, before, after = grown.provenance, small.statistics, grown.statistics
    assert provenance is not None
    whole = provenance.cost["wall_seconds"]
    counts = {
        "nodes": f"{after.nodes:,}, {after.nodes - before.nodes:,} of them new",
        "edges": f"{after.edges:,}, {after.edges - before.edges:,} of them new",
    }
    time = f"{seconds(whole - made.cost.get('wall_seconds', 0))}, {seconds(whole)} in all"
    tell_written(voice, out, grown, on, counts=counts, time=time)
