"""``gcond pack``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common, DirectedOption, SettingOption, Source, flag
from gcond.runtime.plain_text import counted


def command(
    source: Source,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o", help="The store to write, NAME.gcond.")],
    memory: Annotated[str | None, Parameter(help="Memory that may be used at most, such as 2GB.")] = None,
    setting: SettingOption = None,
    directed: DirectedOption = False,
    force: Annotated[bool, flag("Replace the store if it exists.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Write a graph to a packed store, which every command takes as its source, without holding it all in memory.

    For example: gcond pack my-graph/ -o my-graph.gcond --memory 2GB
    """
    voice = common.start()
    from gcond.data.packing import pack
    from gcond.reports.tables import facts, seconds, size
    from gcond.runtime.memory import peak_rss_mb

    start = time.perf_counter()
    with voice.progress("packing") as tick:
        stored = pack(
            source,
            out,
            memory=memory,
            setting=setting,
            data_dir=common.data,
            directed=directed,
            force=force,
            threads=common.threads,
            tick=tick,
        )
    spent = time.perf_counter() - start
    for note in stored.notes:
        voice.note(f"{stored.name}: {note}")
    voice.result(
        {
            "out": str(out),
            "source": stored.name,
            "nodes": stored.num_nodes,
            "edges": stored.num_edges,
            "features": stored.num_features,
            "classes": stored.num_classes,
            "bytes": stored.nbytes,
            "sha256": stored.sha256,
            "seconds": spent,
            "peak_rss_mb": peak_rss_mb(),
        },
        facts(
            {
                "wrote": str(out),
                "holds": f"{stored.name}: {stored.num_nodes:,} nodes, {stored.num_edges:,} edges, "
                f"{stored.num_features:,} features, {counted(stored.num_classes, 'class')}, {size(stored.nbytes)}",
                "time": f"{seconds(spent)}, {peak_rss_mb():,.0f} MB at most",
            }
        ).rich(),
    )
