"""``gcond compact``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from gcond.cli.column_engine import MemoryOption
from gcond.cli.common_options import (
    DEFAULTS,
    Common,
    KeepDigestsOption,
    check_new_file,
    check_tensor_file,
    flag,
    spelled,
    whole_number,
)
from gcond.cli.storage_facts import DROPPED_IDS, compaction_facts, storage, storage_sentence
from gcond.errors import GcondError


def command(
    condensed: Annotated[Path, Parameter(help="A file that `gcond condense` wrote.")],
    /,
    *,
    on: Annotated[str | None, Parameter(help="The source graph, on whose validation nodes cuts are judged.")] = None,
    entries: Annotated[
        int | None, whole_number("Entries that each row of the features keeps; chosen by validation if not given.")
    ] = None,
    bits: Annotated[
        Literal["4", "8", "16", "32"] | None,
        Parameter(help="Bits of an entry, 32 for no rounding; chosen by validation, or 8 with --entries."),
    ] = None,
    step: Annotated[
        float | None,
        Parameter(help="Entries become multiples of this share of their root mean square; chosen if not given."),
    ] = None,
    tolerance: Annotated[
        float | None, Parameter(help="Validation accuracy that a cut may cost; 0.002 if not given.")
    ] = None,
    seed: Annotated[int, whole_number("The seed of the first training that judges.")] = 0,
    keep_structure: Annotated[
        bool, flag("Keep the weights of a learned structure, so that the graph can be grown.")
    ] = False,
    keep_digests: KeepDigestsOption = False,
    out: Annotated[
        Path | None, Parameter(alias="-o", help="The file to write; CONDENSED-compact if not given.")
    ] = None,
    force: Annotated[bool, flag("Replace the file if there is one.")] = False,
    memory: MemoryOption = None,
    common: Common = DEFAULTS,
) -> None:
    """Hold a condensed graph in few bytes: coarse steps, or few entries a row in few bits.

    For example: gcond compact cora-gcond-70.safetensors --on cora
    """
    voice = common.start()
    from gcond.condensed import CondensedGraph
    from gcond.methods.compact import TOLERANCE, compact
    from gcond.reports.tables import facts

    said = any(given is not None for given in (entries, bits, step))
    if said and tolerance is not None:
        raise GcondError(
            "--tolerance is for cuts that are chosen, and --entries, --bits or --step say the cut: leave one out"
        )
    small = CondensedGraph.load(condensed)
    out = out or Path(f"{condensed.stem}-compact.safetensors")
    check_tensor_file(out)
    check_new_file(out, str(condensed), force)
    graph, same = None, None
    if on is not None:
        graph, same = common.load_origin(small, on, voice, memory=memory)
    with voice.progress("compact") as tick:
        made = compact(
            small,
            on=None if said else graph,
            entries=entries,
            bits=int(bits) if bits is not None else None,  # type: ignore[arg-type]
            step=step,
            tolerance=TOLERANCE if tolerance is None else tolerance,
            seed=seed,
            keep_structure=keep_structure,
            keep_digests=keep_digests,
            device=common.device,
            on_progress=tick,
        )
    made.save(out)

    known = made.provenance.source.get("bytes") if made.provenance is not None else None
    bytes_ = storage(out, made, graph.nbytes if graph is not None else known)
    bytes_["before"] = small.nbytes  # a graph of unknown origin has no provenance to keep it in
    record = made.provenance.compaction if made.provenance is not None else {}
    payload = {"out": str(out), "nodes": made.num_nodes, "sha256": made.sha256, "bytes": bytes_, "compaction": record}
    payload["same_source"] = same
    about = {"wrote": str(out), "storage": storage_sentence(bytes_), **compaction_facts(made)}
    if small.structure and not made.structure:
        about["structure"] = "its weights are dropped, so it cannot be grown: --keep-structure keeps them"
    if small.digests is not None and small.digests.ids is not None and made.digests is None:
        about |= DROPPED_IDS
    voice.result(payload, facts(about | ({"next": spelled("evaluate", out, "--on", on)} if on else {})).rich())
