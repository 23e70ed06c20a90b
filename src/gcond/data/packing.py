"""``gcond.pack``: from whatever a person has to a packed store, without holding it all.

Tables, OGB and GraphSAINT folders go through in blocks: nodes once, in their order; edges through DuckDB, which joins
their ids and sorts them by target and source on disk. Everything else that ``gcond.load`` takes is loaded and packed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.config.settings import whole_number
from gcond.data.load_request import Request
from gcond.data.store_packing import Packing, Plan
from gcond.data.store_reading import is_store, open_store
from gcond.data.store_writing import new_store, put_graph
from gcond.errors import GcondError
from gcond.graph import Setting
from gcond.graph.stored_arrays import StoredArrays
from gcond.runtime.memory import parse_bytes
from gcond.runtime.progress_tick import Tick, ignore
from gcond.runtime.torch_settings import with_usual_torch

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcond.graph import SourceGraph
    from gcond.graph.feature_kinds import FeatureChoice
    from gcond.linalg.sparse import Matrix

PackFolder = Callable[[Path, Request, Packing], None]


@with_usual_torch
def pack(
    source: str | Path | SourceGraph | Data,
    out: str | Path,
    *,
    memory: str | int | None = None,
    setting: Setting | None = None,
    data_dir: str | Path | None = None,
    seed: int = 0,
    directed: bool = False,
    force: bool = False,
    threads: int | None = None,
    tick: Tick = ignore,
) -> StoredArrays:
    """Write ``source``, anything that :func:`gcond.load` takes, to the packed store ``out`` (``NAME.gcond``).

    A folder of tables, of OGB or of GraphSAINT is packed within ``memory`` (bytes, or text such as ``"2GB"``; three
    quarters of what is free by default), which limits all that the process holds; it needs the extra ``pack``. Other
    sources are loaded whole. The checks, and what they say, are those of :func:`gcond.load`, and loading the store
    gives the same graph as loading ``source``. The store holds raw features: a transform is chosen when it is loaded.
    ``out`` appears whole or not at all; ``force`` replaces a store that is there. ``tick`` hears of the progress.
    """
    from gcond.data.loading import check_reading, load_as
    from gcond.runtime.threads import check_threads

    check_threads(threads)
    check_reading(setting, directed)
    limit = parse_bytes(memory) if memory is not None else None
    request = Request("data", setting, directed, whole_number(seed, "seed"))
    with new_store(out, force=force) as store:
        packing = Packing(store, Plan(limit, threads or min(2, os.cpu_count() or 1), tick), Path(out))
        if (streamed := _streamed(source, request, data_dir)) is not None:
            pack_folder, folder, request = streamed
            pack_folder(folder, request, packing)
        else:
            if isinstance(source, str | os.PathLike):
                packing.plan.require_whole(Path(source))
            kept = _Untreated()
            graph = load_as(source, replace(request, treat=kept), data_dir)
            packing.require_disk(graph.nbytes + 8 * graph.num_nodes)
            put_graph(store, graph, raw=kept.raw, usual=kept.usual)
    return open_store(out)


class _Untreated:
    """The features of a graph as they came, caught where they would be transformed."""

    def __init__(self) -> None:
        self.raw: Matrix | None = None
        self.usual: FeatureChoice = "none"

    def __call__(self, graph: SourceGraph, usual: FeatureChoice, raw: Matrix | None) -> SourceGraph:
        self.raw, self.usual = raw, usual
        return graph


def _streamed(source: Any, request: Request, data_dir: str | Path | None) -> tuple[PackFolder, Path, Request] | None:
    """What packs a source that need not be held, its folder, and how it is to be read; ``None`` for all others."""
    from gcond.data import graphsaint, ogb, table_folder, table_packing
    from gcond.data.loading import dataset

    def pack_ogb(folder: Path, request: Request, packing: Packing) -> None:
        packing.pack_stream(ogb.stream(folder), request)

    def pack_graphsaint(folder: Path, request: Request, packing: Packing) -> None:
        packing.pack_stream(graphsaint.stream(folder), request)

    if not isinstance(source, str | os.PathLike):
        return None
    if (named := dataset(source)) is not None:
        by_reader = {"ogb": pack_ogb, "graphsaint": pack_graphsaint}
        if named.reader not in by_reader:
            return None
        own = replace(request, name=named.name, setting=request.setting or named.setting)
        return by_reader[named.reader], named.folder(data_dir), own
    folder = Path(source).expanduser()
    if not os.fspath(source).strip() or not folder.is_dir():
        return None
    if is_store(folder):
        raise GcondError(f"'{folder}' is a packed store already: give the source that it was packed from, or copy it")
    request = replace(request, name=folder.resolve().name)
    if table_folder.holds_tables(folder):
        return table_packing.pack_tables, folder, request
    if graphsaint.holds_graphsaint(folder):
        return pack_graphsaint, folder, request
    return (pack_ogb, folder, request) if ogb.holds_ogb(folder) else None
