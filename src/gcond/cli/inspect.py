"""``gcond inspect``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common, DirectedOption, SettingOption
from gcond.cli.learning_options import learned_facts, structure_facts
from gcond.errors import GcondError
from gcond.reports.score_changes import changed

if TYPE_CHECKING:
    from gcond.cli.voice import Voice
    from gcond.condensed.condensed_graph import CondensedGraph
    from gcond.condensed.provenance import Provenance
    from gcond.graph.source_graph import SourceGraph


def command(
    file: Annotated[Path, Parameter(help="A file that gcond wrote.")],
    /,
    *,
    on: Annotated[str | None, Parameter(help="The source graph, to compare with.")] = None,
    setting: SettingOption = None,
    directed: DirectedOption = False,
    common: Common = DEFAULTS,
) -> None:
    """Say what a file holds, where it comes from and how well it did."""
    voice = common.start()
    from gcond.condensed.condensed_graph import CondensedGraph
    from gcond.graph.source_graph import SourceGraph
    from gcond.runtime.tensor_file import read_metadata_kind

    if on is None and (setting is not None or directed):
        option = "--directed" if setting is None else "--setting"
        raise GcondError(f"{option} says how to read the graph to compare with: add --on SOURCE")
    if read_metadata_kind(file) == "source":
        if on is not None:
            raise GcondError(f"'{file}' is a source graph itself: --on goes with a condensed file")
        _show_source(file, SourceGraph.load(file), voice)
        return
    condensed = CondensedGraph.load(file)
    source = None
    if on is not None:
        source, _ = common.load_origin(condensed, on, voice, setting=setting, directed=directed)
    _show_condensed(file, condensed, source, voice)


def _show_source(file: Path, graph: SourceGraph, voice: Voice) -> None:
    from gcond.reports.tables import facts, statistics_table

    found = graph.statistics
    parts = {part: int(graph.mask(part).sum()) for part in ("train", "val", "test")}  # type: ignore[arg-type]
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


def _show_condensed(file: Path, graph: CondensedGraph, source: SourceGraph | None, voice: Voice) -> None:
    from gcond.reports.tables import score_table, statistics_table

    provenance = graph.provenance
    found = graph.statistics
    original = source.statistics.to_json() if source is not None else _from_provenance(provenance)
    reduction = {
        key: 1 - found.to_json()[key] / original[key] for key in ("nodes", "bytes") if original and original.get(key)
    }
    payload: dict[str, Any] = {"file": str(file), "kind": "condensed", "sha256": graph.sha256}
    payload |= _payload(provenance)
    payload |= {"statistics": found.to_json(), "source_statistics": original, "reduction": reduction}

    name = source.name if source is not None else (provenance.source.get("name", "source") if provenance else "source")
    columns: dict[str, Any] = {"condensed": found} | ({str(name): original} if original else {})
    shown = [_about(file, graph, reduction).rich(), statistics_table(columns).rich()]
    if provenance is not None and provenance.scores:
        shown.append(score_table(provenance.scores, "scores", distinctions(provenance.scores)).rich())
    voice.result(payload, *shown)


def distinctions(scores: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of each score the settings that are not usual, or in which scores of the same model differ."""
    used = [{**score["settings"], **score["recipe"], "source": str(score.get("source", ""))[:12]} for score in scores]
    found = []
    for score, own in zip(scores, used, strict=True):
        others = [other for rival, other in zip(scores, used, strict=True) if rival["model"] == score["model"]]
        unusual = changed(score)
        telling = (
            key for key in own if key in unusual or any(key not in other or other[key] != own[key] for other in others)
        )
        found.append({key: own[key] for key in telling})
    return found


def _payload(provenance: Provenance | None) -> dict[str, Any]:
    if provenance is None:
        return {"method": None, "scores": []}
    values = provenance.to_json()
    values["transform"] = provenance.transform.get("kind")  # its statistics are as long as the feature list
    return values


def _from_provenance(provenance: Provenance | None) -> dict[str, Any] | None:
    """As much of the source's statistics as the file remembers."""
    if provenance is None:
        return None
    known = {key: provenance.source[key] for key in ("nodes", "edges", "features", "bytes") if key in provenance.source}
    return known | {"classes": provenance.num_classes}


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


def _about(file: Path, graph: CondensedGraph, reduction: dict[str, float]) -> Any:
    from gcond.reports.tables import facts, percent, seconds

    about = {"file": str(file), "holds": "a condensed graph"}
    smaller = ", ".join(
        f"{percent(abs(share))} % {'fewer' if share >= 0 else 'more'} {what}" for what, share in reduction.items()
    )
    p = graph.provenance
    if p is None:
        return facts(about | {"provenance": "none: it was not made by gcond condense", "reduction": smaller})
    # Files of other makers may leave parts of the cost or the budget out.
    time, memory, ratio = p.cost.get("wall_seconds"), p.cost.get("peak_rss_mb"), p.budget.get("ratio")
    cost = [seconds(time)] if time is not None else []
    cost += [f"{memory:,.0f} MB at most"] if memory is not None else []
    return facts(
        about
        | {
            "made by": f"{p.method}, seed {p.seed}, gcond {p.gcond_version}",
            "settings": ", ".join(f"{key}={value}" for key, value in p.settings.items()) or "none",
            "budget": f"{graph.num_nodes:,} nodes" + (f", {percent(ratio, 2)} %" if ratio is not None else ""),
            "setting": p.setting + (", directed" if p.directed else ""),
            "source": f"{p.source.get('name')}, sha256 {str(p.source.get('sha256'))[:12]}…",
            "grown from": "\n".join(_ancestors(p)),
            "started from": p.start,
            **structure_facts(graph),
            **learned_facts(p),
            "features": str(p.transform.get("kind", "")).replace("none", ""),
            "cost": ", ".join(cost),
            "reduction": smaller,
        }
    )
