"""``gcond propagate``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcond.cli.column_engine import THIS_PROCESS, ColumnEngine, MemoryOption
from gcond.cli.common_options import (
    DEFAULTS,
    Common,
    DirectedOption,
    FeaturesOption,
    Source,
    check_memory,
    check_new_file,
    flag,
    whole_number,
)


def command(
    source: Source,
    /,
    *,
    hops: Annotated[int, whole_number("How often features are averaged over neighbours.")] = 2,
    out: Annotated[Path, Parameter(alias="-o", help="The .npy file to write.")],
    memory: MemoryOption = None,
    work: ColumnEngine = THIS_PROCESS,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    force: Annotated[bool, flag("Replace the file if it exists.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Smooth the features over the graph and write them to a NumPy file.

    For example: gcond propagate cora --hops 2 -o cora-2.npy --memory 500MB
    """
    voice = common.start()
    from gcond.config import settings
    from gcond.data.store_reading import is_store
    from gcond.graph.propagation import propagate
    from gcond.graph.stored_graph import StoredGraph
    from gcond.reports.tables import facts, seconds, size
    from gcond.runtime.device import choose_device
    from gcond.runtime.memory import parse_bytes, peak_rss_mb

    settings.whole_number(hops, "hops", least=0)
    limit = parse_bytes(memory) if memory is not None else None
    check_new_file(out, source, force)
    stored = is_store(Path(source))
    work.check()
    check_memory(source, memory)
    graph = common.load(source, voice, directed=directed, features=features, memory=memory if stored else None)
    start = time.perf_counter()
    with work.on(graph, voice, common) as graph:
        if isinstance(graph, StoredGraph):
            result = propagate(graph, hops=hops, out=out)
        else:
            with voice.progress("propagating") as tick:
                result = propagate(
                    graph.adjacency.to(choose_device(common.device)),
                    graph.x,
                    hops=hops,
                    memory_limit=limit,
                    threads=common.threads,
                    out=out,
                    on_block=lambda done, total: tick("blocks", done, total),
                )
    spent = time.perf_counter() - start
    rows, columns = result.shape
    voice.result(
        {
            "out": str(out),
            "source": graph.name,
            "hops": hops,
            "shape": [rows, columns],
            "dtype": str(result.dtype).removeprefix("torch."),
            "seconds": spent,
            "peak_rss_mb": peak_rss_mb(),
        },
        facts(
            {
                "wrote": str(out),
                "holds": f"{rows:,} nodes × {columns:,} features after {hops} hops, {size(result.nbytes)}",
                "time": seconds(spent),
            }
        ).rich(),
    )
