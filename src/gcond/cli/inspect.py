"""``gcond inspect``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common, DirectedOption, FeaturesOption, SettingOption
from gcond.cli.learning_options import learned_facts, structure_facts
from gcond.cli.model_facts import show_model
from gcond.cli.storage_facts import compaction_facts, storage, storage_sentence
from gcond.errors import GcondError
from gcond.reports.score_changes import changed

if TYPE_CHECKING:
    from gcond.cli.output import Voice
    from gcond.condensed import CondensedGraph, Provenance, Score
    from gcond.graph import SourceGraph
    from gcond.graph.statistics import Statistics
    from gcond.results import SourceSummary


def command(
    file: Annotated[Path, Parameter(help="A file or a packed store that gcond wrote.")],
    /,
    *,
    on: Annotated[str | None, Parameter(help="The source graph, to compare with.")] = None,
    setting: SettingOption = None,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    common: Common = DEFAULTS,
) -> None:
    """Say what a file holds, where it comes from and how well it did."""
    voice = common.start()
    from gcond.condensed import CondensedGraph
    from gcond.data.store_reading import is_store
    from gcond.graph import SourceGraph
    from gcond.runtime.tensor_file import read_metadata_kind

    given = {"--setting": setting is not None, "--directed": directed, "--features": features is not None}
    if on is None and any(given.values()):
        option = next(option for option, is_given in given.items() if is_given)
        raise GcondError(f"{option} says how to read the graph to compare with: add --on SOURCE")
    kind = read_metadata_kind(file)
    if kind == "model":
        if on is not None:
            raise GcondError(f"'{file}' is a trained model: --on goes with a condensed file")
        show_model(file, voice)
        return
    if kind == "source":
        if on is not None:
            raise GcondError(f"'{file}' is a source graph itself: --on goes with a condensed file")
        _show_source(file, SourceGraph.load(file), voice)
        return
    if is_store(file):
        if on is not None:
            raise GcondError(f"'{file}' is a source graph itself: --on goes with a condensed file")
        _show_store(file, voice)
        return
    condensed = CondensedGraph.load(file)
    source, same = None, None
    if on is not None:
        source, same = common.load_origin(condensed, on, voice, setting=setting, directed=directed, features=features)
    _show_condensed(file, condensed, source, same, voice)


def _show_source(file: Path, graph: SourceGraph, voice: Voice) -> None:
    from gcond.reports.tables import facts, statistics_table

    found = graph.statistics
    parts = {part: int(graph.mask(part).sum()) for part in ("train", "val", "test")}
    payload = {
        "file": str(file),
        "kind": "source",
        "name": graph.name,
        "sha256": graph.sha256,
        "setting": graph.setting,
        "directed": graph.directed,
        "split": parts,
        "class_names": list(graph.class_names),
        "transform": graph.transform.kind,
        "notes": list(graph.notes),
        "statistics": found.to_json(),
    }
    about = {
        "file": str(file),
        "holds": f"the source graph {graph.name}",
        "setting": graph.setting,
        "edges are": "directed" if graph.directed else "undirected",
        "split": ", ".join(f"{count:,} {part}" for part, count in parts.items()),
        "features": graph.transform.kind if graph.transform.kind != "none" else "",
        "notes": "\n".join(graph.notes),
        "sha256": graph.sha256,
    }
    voice.result(payload, facts(about).rich(), statistics_table({graph.name: found}).rich())


def _show_store(folder: Path, voice: Voice) -> None:
    """What a packed store holds, after every byte of it was compared with its checksum."""
    import numpy as np

    from gcond.data.store_reading import open_store
    from gcond.graph.stored_arrays import TEST, TRAIN, VAL, StoredSparseRows
    from gcond.reports.tables import Table, facts, size

    with voice.progress("checking") as tick:
        stored = open_store(folder, anew=True, tick=tick)
    codes = np.bincount(stored.split, minlength=4)
    parts = {"train": int(codes[TRAIN]), "val": int(codes[VAL]), "test": int(codes[TEST])}
    sparse = isinstance(stored.x, StoredSparseRows)
    transform = stored.transform.kind if stored.transform is not None else "none"
    payload = {
        "file": str(folder),
        "kind": "packed",
        "name": stored.name,
        "sha256": stored.sha256,
        "setting": stored.setting,
        "directed": stored.directed,
        "nodes": stored.num_nodes,
        "edges": stored.num_edges,
        "listed_edges": stored.listed_edges,
        "features": stored.num_features,
        "sparse": sparse,
        "weighted": stored.weights is not None,
        "classes": stored.num_classes,
        "class_names": list(stored.class_names),
        "split": parts,
        "ids": stored.ids is not None,
        "usual_transform": stored.usual,
        "transform": transform,
        "notes": list(stored.notes),
        "bytes": stored.nbytes,
        "arrays": {
            name: {"dtype": str(array.dtype), "shape": list(array.shape), "bytes": array.nbytes}
            for name, array in stored.arrays.items()
        },
        "checked": True,
    }
    about = {
        "file": str(folder),
        "holds": f"the source graph {stored.name}, packed",
        "nodes": f"{stored.num_nodes:,}",
        "edges": f"{stored.num_edges:,}, {'directed' if stored.directed else 'undirected'}"
        + (", weighted" if stored.weights is not None else ""),
        "features": f"{stored.num_features:,}, {'sparse' if sparse else 'dense'}"
        + (f", {transform}" if transform != "none" else f"; {stored.usual} when loaded"),
        "classes": f"{stored.num_classes:,}",
        "setting": stored.setting,
        "split": ", ".join(f"{count:,} {part}" for part, count in parts.items()),
        "nodes' names": "kept" if stored.ids is not None else "row numbers",
        "notes": "\n".join(stored.notes),
        "size": size(stored.nbytes),
        "checked": "every array is what was packed",
        "sha256": stored.sha256,
    }
    arrays = [
        {
            "array": name,
            "type": str(array.dtype),
            "shape": " × ".join(f"{side:,}" for side in array.shape),
            "size": size(array.nbytes),
        }
        for name, array in stored.arrays.items()
    ]
    voice.result(payload, facts(about).rich(), Table.of(arrays, words=(0, 1)).rich())


def _show_condensed(
    file: Path, graph: CondensedGraph, source: SourceGraph | None, same: bool | None, voice: Voice
) -> None:
    from gcond.reports.tables import score_table, statistics_table
    from gcond.results import SourceSummary

    provenance, found = graph.provenance, graph.statistics
    remembered = SourceSummary.remembered(provenance) if provenance is not None else None
    original = source.statistics if source is not None else remembered
    reduction = {
        what: 1 - getattr(found, what) / before
        for what in ("nodes", "bytes")
        if original is not None and (before := getattr(original, what))
    }
    payload: dict[str, Any] = {"file": str(file), "kind": "condensed", "sha256": graph.sha256}
    if provenance is None:
        payload |= {"method": None, "scores": [], "notes": list(graph.notes)}
    else:  # the statistics of a transform are as long as the feature list
        payload |= provenance.to_json() | {"transform": provenance.transform.get("kind")}
    payload |= {"statistics": found.to_json(), "source_statistics": _counts(original), "reduction": reduction}
    payload |= {"same_source": same} if source is not None else {}
    payload["bytes"] = storage(file, graph, original.bytes if original is not None else None)

    name = (source.name if source is not None else remembered.name if remembered is not None else "") or "source"
    columns: dict[str, Statistics | SourceSummary] = {"condensed": found}
    columns |= {name: original} if original is not None else {}
    shown = [
        _about(file, graph, reduction, storage_sentence(payload["bytes"])).rich(),
        statistics_table(columns).rich(),
    ]
    if provenance is not None and provenance.scores:
        shown.append(score_table(provenance.scores, "scores", distinctions(provenance.scores)).rich())
    voice.result(payload, *shown)


def _counts(original: Statistics | SourceSummary | None) -> dict[str, Any] | None:
    """The source's statistics; as many as the file remembers where the source itself is not at hand."""
    from gcond.results import SourceSummary

    if not isinstance(original, SourceSummary):
        return original.to_json() if original is not None else None
    counts = {key: getattr(original, key) for key in ("nodes", "edges", "features", "bytes", "classes")}
    return {key: value for key, value in counts.items() if value is not None}


def distinctions(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Of each score the settings that are not usual, or in which scores of the same model differ."""
    used = [{**score.settings, **score.recipe, "source": score.source[:12]} for score in scores]
    found = []
    for score, own in zip(scores, used, strict=True):
        others = [other for rival, other in zip(scores, used, strict=True) if rival.model == score.model]
        unusual = changed(score)
        telling = (
            key for key in own if key in unusual or any(key not in other or other[key] != own[key] for other in others)
        )
        found.append({key: own[key] for key in telling})
    return found


def _ancestors(provenance: Provenance) -> Iterator[str]:
    """The graphs that it was grown from, the latest first, each with the settings in which it differs from this one."""
    child = provenance.as_parent()
    while sha256 := child.get("grown_from"):
        words, parent = [f"sha256 {sha256[:12]}…"], child.get("parent", {})
        if parent:  # files that were grown before it was kept have none
            words += [f"{parent.get('budget', {}).get('nodes')} nodes", f"seed {parent.get('seed')}"]
            words += [f"{len(parent.get('history', {}).get('loss', ()))} epochs from {parent.get('start')}"]
            settings = parent.get("settings", {})
            words += [f"{key}={value}" for key, value in settings.items() if value != provenance.settings.get(key)]
        yield ", ".join(words)
        child = parent


def _earlier_sources(provenance: Provenance) -> Iterator[str]:
    """The sources that it was made from before updates brought it along, the latest first."""
    for each in reversed(provenance.updates):
        source = each.get("source", {})
        sha256 = str(source.get("sha256"))[:12]
        yield f"{source.get('name')}, {source.get('nodes', 0):,} nodes, sha256 {sha256}…, seed {each.get('seed')}"


def _about(file: Path, graph: CondensedGraph, reduction: dict[str, float], stored: str) -> Any:
    from gcond.reports.recipe_table import recommendation_sentence
    from gcond.reports.tables import assignments, facts, percent, seconds

    about = {"file": str(file), "holds": "a condensed graph"}
    smaller = ", ".join(
        f"{percent(abs(share))} % {'fewer' if share >= 0 else 'more'} {what}" for what, share in reduction.items()
    )
    p = graph.provenance
    if p is None:
        about |= {"provenance": "none: it was not made by gcond condense", "notes": "\n".join(graph.notes)}
        about |= {"reduction": smaller, "storage": stored}
        return facts(about | compaction_facts(graph))
    # Files of other makers may leave parts of the cost or the budget out.
    wall, cpu, memory = p.cost.get("wall_seconds"), p.cost.get("cpu_seconds"), p.cost.get("peak_rss_mb")
    ratio = p.budget.get("ratio")
    cost = [f"{seconds(time)} {kind} time" for time, kind in ((wall, "wall"), (cpu, "CPU")) if time is not None]
    cost += [f"{memory:,.0f} MB at most"] if memory is not None else []
    return facts(
        about
        | {
            "made by": f"{p.method}, seed {p.seed}, gcond {p.gcond_version}",
            "settings": assignments(p.settings) or "none",
            "chosen": assignments(_chosen(p)),
            "budget": f"{graph.num_nodes:,} nodes" + (f", {percent(ratio, 2)} %" if ratio is not None else ""),
            "setting": p.setting + (", directed" if p.directed else ""),
            "source": f"{p.source.get('name')}, sha256 {str(p.source.get('sha256'))[:12]}…",
            "grown from": "\n".join(_ancestors(p)),
            "updated from": "\n".join(_earlier_sources(p)),
            "started from": p.start,
            **structure_facts(graph),
            **learned_facts(p),
            "features": str(p.transform.get("kind", "")).replace("none", ""),
            "cost": ", ".join(cost),
            "threads": str(p.threads or ""),
            "reduction": smaller,
            "storage": stored,
            **compaction_facts(graph),
            "recommended": "\n".join(recommendation_sentence(each) for each in p.recommendations),
        }
    )


def _chosen(made: Provenance) -> dict[str, Any]:
    """What validation or a rule chose for the settings that were left open."""
    return {key: made.choices[key] for key, value in made.settings.items() if value == "auto" and key in made.choices}
