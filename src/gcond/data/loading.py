"""``gcond.load``: from whatever a person has to a :class:`SourceGraph`."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.config.registry import suggest
from gcond.config.settings import whole_number
from gcond.data.catalogue import DATASETS, Dataset
from gcond.data.load_request import Request
from gcond.data.mirrors import fetch
from gcond.errors import GcondError
from gcond.graph import Setting
from gcond.graph.feature_kinds import CHOICES, FeatureChoice
from gcond.graph.learning_setting import SETTINGS
from gcond.runtime.memory import held_bytes, parse_bytes
from gcond.runtime.torch_settings import with_usual_torch

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcond.graph import SourceGraph
    from gcond.graph.features import FeatureTransform

SYNTHETIC = "synthetic:"
FORMS = (
    "nodes.parquet or nodes.csv with edges.parquet or edges.csv; the GraphSAINT files adj_full.npz, feats.npy, "
    "class_map.json and role.json; or OGB's raw and split"
)


@with_usual_torch
def load(
    source: str | Path | SourceGraph | Data,
    *,
    setting: Setting | None = None,
    data_dir: str | Path | None = None,
    seed: int = 0,
    directed: bool = False,
    features: FeatureChoice | FeatureTransform | None = None,
    labelled: bool = True,
    memory_limit: str | int | None = None,
) -> SourceGraph:
    """Load a graph and validate it.

    ``source`` is a name from ``gcond datasets``; ``synthetic:NAME`` with changes if wanted
    (``synthetic:small,nodes=5000``); a path to a folder of tables, a GraphSAINT or OGB folder, an ``.npz`` (of the
    gnn-benchmark layout, or with ``x``, ``y`` and ``edge_index``) or a ``.safetensors`` that gcond wrote; or a PyG
    ``Data``, with all three masks or none. ``setting`` overrides the source's own. ``data_dir`` is where raw files of
    named sets lie (else ``$GCOND_DATA``).
    ``features`` is a kind of transform by name (``unit-rows``, ``tf-idf``, …), applied to the features as the source
    has them; ``"auto"``, the kind on which a small network validates best; or a :class:`FeatureTransform` with its
    statistics. By default a named set keeps its own, so that figures compare; a folder of tables and an ``.npz`` get
    ``"auto"``; and what gcond wrote, a ``SourceGraph`` and a ``Data`` stay as they are. A graph without features gets
    structural ones. ``seed`` draws the split where the source has none and the whole graph where it is made up.
    ``directed`` keeps one-way edges one-way. Without ``labelled``, tables, a ``Data`` and an ``.npz`` with ``x`` need
    no labels, which is enough to predict for and for nothing else. What was decided or repaired on the way is said in
    the ``notes`` of the graph.

    ``memory_limit`` (bytes, or text such as ``"2GB"``) is what the process may hold in all, the work on the graph
    included. A packed store (:func:`gcond.pack`) that would take more stays on disk; any other graph is refused then.
    Without a limit, it is three quarters of what is free.
    """
    limit = None if memory_limit is None else parse_bytes(memory_limit)
    check_reading(setting, directed)
    check_features(features)
    seed = whole_number(seed, "seed")
    graph = load_as(source, Request("data", setting, directed, seed, features, labelled, limit), data_dir)
    if limit is not None and not _is_stored(graph) and (need := held_bytes() + 2 * graph.nbytes) > limit:
        raise GcondError(
            f"'{graph.name}' and the work on it take about {need / 10**6:.0f} MB, and the limit is {limit / 10**6:.0f} "
            "MB: pack it with `gcond pack`, and give the store, which is read from disk"
        )
    return _doubted(source, features, graph)


def _doubted(source: Any, features: Any, graph: SourceGraph) -> SourceGraph:
    """``graph`` with a note where its features are as a person had them and their scale is useless.

    What gcond wrote, and a ``Data``, stay as they are, and so does what is asked for as it is. Tables and other files
    get a transform that is chosen, which speaks for itself.
    """
    from gcond.graph import SourceGraph
    from gcond.graph.feature_scale import scale_warning

    kept = features is None and (not isinstance(source, str | os.PathLike) or Path(source).suffix == ".safetensors")
    kept = kept or features == "none"
    if not kept or isinstance(source, SourceGraph) or graph.transform.kind != "none" or _is_stored(graph):
        return graph
    warned = scale_warning(graph.x)
    return replace(graph, notes=(*graph.notes, warned)) if warned and warned not in graph.notes else graph


def _is_stored(graph: SourceGraph) -> bool:
    from gcond.graph.stored_graph import StoredGraph

    return isinstance(graph, StoredGraph)


def load_as(source: Any, request: Request, data_dir: str | Path | None) -> SourceGraph:
    """The work of :func:`load`; the name in ``request`` is that of a graph which has none."""
    if not isinstance(source, str | os.PathLike):
        return _from_object(source, request)
    text = os.fspath(source)
    if not text.strip():
        raise GcondError("the source is empty: give a name from `gcond datasets` or a path")
    if text.startswith(SYNTHETIC):
        from gcond.data import synthetic_graphs

        return synthetic_graphs.load(text.removeprefix(SYNTHETIC), replace(request, name=text))
    if (named := dataset(source)) is not None:
        reader = import_module(f"gcond.data.{named.reader}")
        what = fetch(named.raw, name=named.name, data_dir=data_dir) if named.raw else named.folder(data_dir)
        own = replace(request, name=named.name, setting=request.setting or named.setting)
        graph: SourceGraph = reader.load(what, own)
        return graph
    path = Path(text).expanduser()
    if path.exists():
        stem = path.resolve().name if path.is_dir() else path.stem
        return _from_path(path, replace(request, name=stem))
    raise _no_such(text)


def dataset(source: Any) -> Dataset | None:
    """The named data set that ``source`` means, in any spelling."""
    return DATASETS.get(source.lower().replace("_", "-")) if isinstance(source, str) else None


def check_reading(setting: Any, directed: Any) -> None:
    """Refuse a setting that there is not, and a direction that is neither yes nor no."""
    if setting is not None and setting not in SETTINGS:
        raise GcondError(f"unknown setting '{setting}'{suggest(setting, SETTINGS)}: choose {' or '.join(SETTINGS)}")
    if not isinstance(directed, bool):
        raise GcondError(f"directed={directed!r} is not usable: it must be True or False")


def check_features(features: Any) -> None:
    """Refuse what is neither a kind of transform, ``auto``, None, nor a transform."""
    if features is None or (isinstance(features, str) and features in CHOICES):
        return
    if not isinstance(features, str):
        from gcond.graph.features import FeatureTransform

        if isinstance(features, FeatureTransform):
            return
    near = suggest(features, CHOICES) if isinstance(features, str) else ""
    raise GcondError(f"unknown features '{features!s:.40}'{near}: choose one of {', '.join(CHOICES)}")


def _from_object(source: Any, request: Request) -> SourceGraph:
    from gcond.graph import SourceGraph
    from gcond.graph.feature_treatment import treated

    if isinstance(source, SourceGraph):
        return _as_asked(source, request)
    if not hasattr(source, "edge_index") or not hasattr(source, "get"):
        kind = type(source)
        if kind.__module__.partition(".")[0] == "networkx":
            raise GcondError(
                f"a {kind.__name__} of networkx is not taken as it is: give torch_geometric.utils.from_networkx(graph) "
                "with features as x and labels as y"
            )
        raise GcondError(f"a {kind.__name__} is not a graph: give a name, a path, a PyG Data or a SourceGraph")
    data, notes = _with_split(source, request)
    setting = request.setting or "transductive"
    graph = SourceGraph.from_pyg(
        data,
        name=request.name,
        setting=setting,
        directed=request.directed,
        notes=notes,
        labelled=request.labelled,
    )
    return graph if request.features is None else treated(graph, request.features)


def _with_split(data: Data, request: Request) -> tuple[Data, tuple[str, ...]]:
    """``data`` with a split drawn as for tables if it has no mask at all, and what to note; a copy then."""
    import torch

    from gcond.graph import validation as checks
    from gcond.graph.source_graph import PARTS

    if data.get("y") is None and not request.labelled:
        data = copy(data)  # shallow: the caller's own gets no labels
        data.y = torch.full((int(data.num_nodes or 0),), -1)
    data = _own_names(data)
    incomplete = any(data.get(key) is None for key in ("edge_index", "y"))
    if incomplete or any(data.get(f"{part}_mask") is not None for part in PARTS):
        return data, ()  # to be used, or refused, as it is
    y = checks.class_ids(data.y)
    y, _ = checks.labels(y, len(y), None, (), needed=request.labelled)
    split = request.drawn_split(y)
    data = copy(data)  # shallow: the caller's own gets no masks
    data.train_mask, data.val_mask, data.test_mask = split.train, split.val, split.test
    return data, (split.note,)


def _own_names(data: Data) -> Data:
    """``data`` with ``val_mask`` where it has ``valid_mask`` or the like; a copy then."""
    from gcond.data.splits import OTHER_NAMES

    for part, others in OTHER_NAMES.items():
        for word in others:
            if data.get(f"{part}_mask") is None and data.get(f"{word}_mask") is not None:
                data = copy(data)
                data[f"{part}_mask"] = data[f"{word}_mask"]
    return data


def _from_path(path: Path, request: Request) -> SourceGraph:
    if path.is_dir():
        return _from_folder(path, request)
    if path.suffix == ".npz":
        return _from_npz(path, request)
    if path.suffix == ".safetensors":
        return _from_safetensors(path, request)
    if path.suffix in (".csv", ".parquet"):
        raise GcondError(
            f"'{path}' is one table: give its folder, which holds nodes{path.suffix} and edges{path.suffix}"
        )
    raise GcondError(f"'{path}' is no graph that gcond reads: give an .npz, a .safetensors, or a folder with {FORMS}")


def _from_npz(path: Path, request: Request) -> SourceGraph:
    from gcond.data import edge_list_npz, gnn_benchmark, heterophilous
    from gcond.data.npz_archive import Archive

    archive = Archive(path, str(path))
    if "node_features" in archive:
        return heterophilous.assemble(archive, request)
    named = "edge_index" in archive or ("adj_data" not in archive and ("x" in archive or "y" in archive))
    reader = edge_list_npz if named else gnn_benchmark
    return reader.assemble(archive, request)


def _from_folder(folder: Path, request: Request) -> SourceGraph:
    from gcond.data import packed_store, store_reading, table_folder

    if store_reading.is_store(folder):
        return packed_store.load(folder, request)
    if table_folder.holds_tables(folder):
        return table_folder.load(folder, request)
    from gcond.data import graphsaint, ogb

    if graphsaint.holds_graphsaint(folder):
        return graphsaint.load(folder, request)
    if ogb.holds_ogb(folder):
        return ogb.load(folder, request)
    raise GcondError(f"the folder '{folder}' holds no graph that gcond reads: it needs {FORMS}")


def _from_safetensors(path: Path, request: Request) -> SourceGraph:
    from gcond.data.size_check import require_memory
    from gcond.graph import SourceGraph
    from gcond.runtime.tensor_file import read_metadata_kind

    kind = read_metadata_kind(path)
    if kind in ("condensed", "model"):
        raise GcondError(
            f"'{path}' holds a {'condensed graph' if kind == 'condensed' else 'trained model'}, "
            "and a source graph is needed here: give the name or path of the graph it was made from"
        )
    require_memory(2 * path.stat().st_size, f"'{path}'")
    return _as_asked(SourceGraph.load(path, labelled=request.labelled), request)


def _as_asked(graph: SourceGraph, request: Request) -> SourceGraph:
    from gcond.graph.feature_treatment import treated

    if request.directed and not graph.directed:
        raise GcondError(f"the graph '{graph.name}' was already made undirected: load its raw data with directed=True")
    if request.setting not in (None, graph.setting):
        graph = graph.with_setting(request.setting)
    return graph if request.features is None else treated(graph, request.features)


def _no_such(text: str) -> GcondError:
    from gcond.data.synthetic_graphs import PRESETS

    if os.sep in text or text.startswith(("~", ".")) or Path(text).suffix:
        return GcondError(f"there is no file or folder '{text}'")
    names = [*DATASETS, *(f"{SYNTHETIC}{preset}" for preset in PRESETS)]
    return GcondError(
        f"unknown data set '{text}'{suggest(text.lower(), names)}: choose one of {', '.join(names)}, or give a path"
    )
