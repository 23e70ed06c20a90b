"""``gcond synthesize``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common, flag, whole_number


def command(
    *,
    out: Annotated[Path, Parameter(alias="-o", help="The folder to write.")],
    nodes: Annotated[int, whole_number("How many nodes.")],
    edges: Annotated[int, whole_number("How many rows the edge table has.")],
    features: Annotated[int, whole_number("How many features a node has.")] = 128,
    classes: Annotated[int, whole_number("How many classes.")] = 40,
    homophily: Annotated[float, Parameter(help="Share of edges that join two nodes of the same class.")] = 0.65,
    signal: Annotated[float, Parameter(help="Distance of class centres from the origin, in deviations.")] = 1.6,
    train: Annotated[float, Parameter(help="Share of nodes to train on.")] = 0.1,
    val: Annotated[float, Parameter(help="Share of nodes to validate on; the rest is for testing.")] = 0.02,
    seed: Annotated[int, whole_number("The same seed gives the same rows, whatever the shards.")] = 0,
    shards: Annotated[int, whole_number("Files for each of the two tables.", least=1)] = 1,
    force: Annotated[bool, flag("Replace the folder if it exists.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Write a made-up graph of any size as Parquet tables, to pack and to measure with.

    For example: gcond synthesize -o large --nodes 10000000 --edges 100000000 --shards 16
    """
    voice = common.start()
    from gcond.data.synthetic_tables import synthesize
    from gcond.reports.tables import facts, seconds, size
    from gcond.runtime.memory import peak_rss_mb

    start = time.perf_counter()
    with voice.progress("synthesizing") as tick:
        synthesize(
            out,
            nodes=nodes,
            edges=edges,
            features=features,
            classes=classes,
            homophily=homophily,
            signal=signal,
            train=train,
            val=val,
            seed=seed,
            shards=shards,
            force=force,
            threads=common.threads,
            tick=tick,
        )
    spent = time.perf_counter() - start
    written = sum(path.stat().st_size for path in out.glob("*.parquet"))
    voice.result(
        {
            "out": str(out),
            "nodes": nodes,
            "edges": edges,
            "features": features,
            "classes": classes,
            "seed": seed,
            "shards": shards,
            "bytes": written,
            "seconds": spent,
            "peak_rss_mb": peak_rss_mb(),
        },
        facts(
            {
                "wrote": str(out),
                "holds": f"{nodes:,} nodes and {edges:,} edges in {2 * shards:,} files, {size(written)}",
                "time": f"{seconds(spent)}, {peak_rss_mb():,.0f} MB at most",
            }
        ).rich(),
    )
