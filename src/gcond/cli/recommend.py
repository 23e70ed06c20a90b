"""``gcond recommend``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcond.cli.assignments import parse_assignments, parse_grid
from gcond.cli.column_engine import MemoryOption
from gcond.cli.common_options import DEFAULTS, Common, SetOption, spelled, whole_number
from gcond.cli.engine_options import THIS_MACHINE, EngineOptions
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.cli.output import Voice
    from gcond.condensed import CondensedGraph, Recommendation

GridOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--grid",
        consume_multiple=(1, None),
        negative=(),
        show_default=False,
        metavar="SETTING=VALUE,VALUE",
        help="Values of a setting to try; dropout, width, weight decay, rate and epochs around the fixed recipe's "
        "if not given.",
    ),
]


def command(
    *condensed: Annotated[Path, Parameter(help="Files that `gcond condense` wrote, all of one source.", negative=())],
    on: Annotated[str, Parameter(help="The source graph that they were made from.")],
    model: Annotated[str, Parameter(help="The model to train; a name from `gcond models`.")] = "gcn",
    runs: Annotated[int, whole_number("How often each recipe is trained on each graph.", least=1)] = 3,
    seed: Annotated[int, whole_number("Seed of the first run; the next ones count on.")] = 0,
    grid: GridOption = (),
    set_: Annotated[
        SetOption,
        Parameter(help="Settings of the training or of the model that every recipe keeps, such as epochs=300."),
    ] = (),
    out: Annotated[
        Path | None, Parameter(alias="-o", help="Run folder to keep finished runs in, and to find them in.")
    ] = None,
    work: EngineOptions = THIS_MACHINE,
    memory: MemoryOption = None,
    common: Common = DEFAULTS,
) -> None:
    """Find the one recipe that fits condensed graphs of a source, and write it into their files.

    It is found by validation accuracy alone, and `gcond evaluate --recipe recommended` trains by it.

    For example: gcond recommend cora-gcond-35.safetensors cora-gcond-70.safetensors --on cora
    """
    voice = common.start()
    from gcond.condensed import CondensedGraph
    from gcond.evaluation.recommend import check_graphs, plan, recommend
    from gcond.reports.comparison_table import failure_lines
    from gcond.reports.recipe_table import LEGEND, recipe_table, recommendation_sentence
    from gcond.reports.tables import facts, seconds
    from gcond.runtime.files import check_writable, make_folder

    # What can be refused without the graphs is refused before they are read.
    held, wanted = parse_assignments(set_), parse_grid(grid)
    plan(model, wanted, held)
    if not condensed:
        raise GcondError("gcond recommend needs a file: give one or more that gcond condense wrote")
    smalls = [CondensedGraph.load(file) for file in condensed]
    check_graphs(smalls, runs)
    for file in condensed:
        check_writable(file)
    source, _ = common.load_origin(smalls[0], on, voice, memory=memory)
    if out is not None:
        make_folder(out)
    own = nullcontext() if work == THIS_MACHINE else work.open(common.threads)
    with own as engine, voice.progress("recommending") as tick:
        found = recommend(
            smalls,
            on=source,
            model=model,
            runs=runs,
            seed=seed,
            grid=wanted,
            folder=out,
            engine=engine,
            device=common.device,
            threads=common.threads if engine is None else None,
            on_progress=tick,
            **held,
        )
    for line in failure_lines(found.failures):
        voice.warn(line)
    written = write_recommendation(condensed, smalls, found.recommendation, voice)
    about = {
        "recommended": recommendation_sentence(found.recommendation),
        "CPU time": seconds(found.recommendation.cpu_seconds),
        "wrote": "\n".join(map(str, written)),
        "next": spelled("evaluate", condensed[0], "--on", on, "--models", model, "--recipe", "recommended"),
    }
    voice.result(
        {"source": source.name, "model": model, "files": [str(file) for file in written], **found.to_json()},
        recipe_table(found, f"{model} on {source.name}, {runs} runs on each graph").rich(),
        LEGEND,
        facts(about).rich(),
    )


def write_recommendation(
    files: Sequence[Path], smalls: Sequence[CondensedGraph], found: Recommendation, voice: Voice
) -> list[Path]:
    """Write ``found`` into the files that still hold ``smalls``; which these are."""
    from gcond.condensed import CondensedGraph

    written = []
    for file, small in zip(files, smalls, strict=True):
        now = CondensedGraph.load(file)  # another process may have recorded scores in the meantime
        if now.provenance is None or now.sha256 != small.sha256:
            voice.warn(f"'{file}' changed meanwhile, so the recommendation is not written into it")
            continue
        now.with_recommendation(found).save(file)
        written.append(file)
    return written
