"""``gcond update``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcond.cli.column_engine import MemoryOption
from gcond.cli.common_options import DEFAULTS, Common, check_new_file, flag, say_notes, spelled, whole_number

if TYPE_CHECKING:
    from gcond.condensed.provenance import Changes


def command(
    condensed: Annotated[Path, Parameter(help="A file that `gcond condense` wrote.")],
    /,
    *,
    on: Annotated[str, Parameter(help="The source graph as it is now.")],
    nodes: Annotated[int | None, whole_number("Size afterwards, as a number of nodes; as before if not given.")] = None,
    ratio: Annotated[str | None, Parameter(help="Size afterwards, as a share of the source: 2.6% or 0.026.")] = None,
    seed: Annotated[
        int | None, whole_number("The same seed gives the same graph; CONDENSED's own if not given.")
    ] = None,
    out: Annotated[Path | None, Parameter(alias="-o", help="The file to write; or CONDENSED-updated.")] = None,
    force: Annotated[bool, flag("Replace the file if there is one.")] = False,
    memory: MemoryOption = None,
    common: Common = DEFAULTS,
) -> None:
    """Bring a condensed graph along when its source has changed: new nodes, edges, labels, classes.

    For example: gcond update shop-clusters-70.safetensors --on shop/
    """
    voice = common.start()
    from gcond.callbacks import Progress
    from gcond.condensed import CondensedGraph
    from gcond.condensed.origin import load_origin
    from gcond.condensed.source_changes import unknown_ids
    from gcond.methods.update import updatable, update
    from gcond.reports.tables import facts, seconds

    small = CondensedGraph.load(condensed)
    method, made = updatable(small)
    out = out or Path(f"{condensed.stem}-updated.safetensors")
    check_new_file(out, on, force)
    graph = load_origin(made, on, data_dir=common.data, memory_limit=memory)
    say_notes(graph, voice)
    if said := unknown_ids(small, graph):
        voice.warn(said)
    with voice.progress(method.name) as tick:
        callbacks = [Progress(tick, voice.note, method.name)] if method.kind == "learned" else []
        updated = update(
            small,
            on=graph,
            nodes=nodes,
            ratio=ratio,
            seed=seed,
            device=common.device,
            threads=common.threads,
            callbacks=callbacks,
        )
        updated.save(out)

    found, provenance = updated.statistics, updated.provenance
    assert provenance is not None
    nothing = updated is small
    last = None if nothing else provenance.updates[-1]
    payload = {
        "out": str(out),
        "method": provenance.method,
        "nodes": found.nodes,
        "edges": found.edges,
        "changed": not nothing,
        "changes": {} if last is None else last["changes"],
        "updated_from": small.sha256,
        "seconds": 0.0 if last is None else last["cost"]["wall_seconds"],
        "cpu_seconds": 0.0 if last is None else last["cost"]["cpu_seconds"],
        "settings": provenance.settings,
    }
    about = {"wrote": str(out), "method": provenance.method}
    if last is None:
        about |= {"changes": "none: the source is the one that this was made from, so the graph is the same"}
        voice.result(payload, facts(about).rich())
        return
    about |= change_facts(last["changes"])
    if (lost := last["changes"].get("labels_removed", 0)) and any("split was drawn" in note for note in graph.notes):
        voice.warn(
            f"{lost:,} nodes that were trained on are not any more, because the split was drawn anew: give the graph a "
            "split of its own, and nodes stay where they are"
        )
    about |= {"time": f"{seconds(last['cost']['wall_seconds'])}, {seconds(provenance.cost['wall_seconds'])} in all"}
    voice.result(payload, facts(about | {"next": spelled("evaluate", out, "--on", on)}).rich())


def change_facts(changes: Changes) -> dict[str, str]:
    """What changed in the source, and what became of the synthetic nodes, in words."""
    found = {
        "nodes": _counted(changes, "nodes") + f", by their {changes['matched_by']}",
        "edges": f"{changes['edges']:,}, before {changes['edges_before']:,}; "
        f"{changes['edges_of_added_nodes']:,} at added nodes",
        "classes": _counted(changes, "classes"),
    }
    if "compared" in changes:
        found["edges"] += f", {changes['neighbours_changed']:,} old nodes with other neighbours"
        found["features"] = f"{changes['features_changed']:,} of {changes['compared']:,} old nodes with other features"
        found["labels"] = (
            f"{changes['labels_added']:,} added, {changes['labels_removed']:,} removed, "
            f"{changes['labels_changed']:,} changed, of training nodes"
            + (f"; {gone:,} more went with their nodes" if (gone := changes.get("labels_gone", 0)) else "")
        )
    else:
        found["features"] = "the file does not say what they were, so features and labels are not compared"
    found["synthetic"] = (
        f"{changes['synthetic_kept']:,} stand for the same nodes, {changes['synthetic_changed']:,} for others too, "
        f"{changes['synthetic_added']:,} are new, {changes['synthetic_removed']:,} are gone"
    )
    return found


def _counted(changes: Changes, what: str) -> str:
    now, before, added, removed = (changes[key] for key in (what, f"{what}_before", f"{what}_added", f"{what}_removed"))  # type: ignore[literal-required]
    return f"{now:,}, before {before:,}: {added:,} added, {removed:,} removed"
