"""``gcond nas``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcond.cli.assignments import parse_assignments, parse_grid
from gcond.cli.column_engine import MemoryOption
from gcond.cli.common_options import (
    DEFAULTS,
    Common,
    DirectedOption,
    FeaturesOption,
    SetOption,
    SettingOption,
    can_draw,
    check_run_folder,
    command_line,
    whole_number,
)
from gcond.cli.engine_options import THIS_MACHINE, EngineOptions
from gcond.errors import GcondError

GridOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--grid",
        consume_multiple=(1, None),
        negative=(),
        show_default=False,
        metavar="SETTING=VALUE,VALUE",
        help="Values of a setting of the model to try; the paper's space for appnp if not given.",
    ),
]


def command(
    condensed: Annotated[Path, Parameter(help="A file that `gcond condense` wrote.")],
    /,
    *,
    on: Annotated[str, Parameter(help="The source graph that it was made from.")],
    model: Annotated[str, Parameter(help="Whose architectures are searched; a name from `gcond models`.")] = "appnp",
    grid: GridOption = (),
    runs: Annotated[int, whole_number("How often each winner is trained and tested.", least=1)] = 20,
    seed: Annotated[int, whole_number("Seed of every architecture; the winners' runs count on from it.")] = 0,
    set_: Annotated[SetOption, Parameter(help="Settings of the training, such as epochs=200.")] = (),
    condensed_epochs: Annotated[
        int | None, whole_number("Epochs on the condensed graph; half of those on the whole one if not given.")
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(alias="-o", help="Folder for nas.json, trials.jsonl and nas.png; CONDENSED-nas if not given."),
    ] = None,
    setting: SettingOption = None,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    memory: MemoryOption = None,
    work: EngineOptions = THIS_MACHINE,
    common: Common = DEFAULTS,
) -> None:
    """Search architectures on a condensed graph, and see how far the whole graph agrees.

    For example: gcond nas cora-gcond-70.safetensors --on cora

    Another space: gcond nas cora-gcond-70.safetensors --on cora --model gcn --grid hidden=16,64,256 layers=2,3

    A search that was stopped goes on when the same command is started again.
    """
    voice = common.start()
    from gcond.condensed import CondensedGraph
    from gcond.evaluation.nas.architecture_search import recipes, search
    from gcond.evaluation.nas.search_space import space
    from gcond.reports.comparison_table import failure_lines
    from gcond.reports.search_table import search_tables
    from gcond.results import RunFolder
    from gcond.results.search import SEARCH
    from gcond.runtime.files import make_folder

    recipe, wanted = parse_assignments(set_), parse_grid(grid)
    # What cannot be is refused before anything is read or made.
    recipes(space(model, wanted).models[0], recipe, condensed_epochs)
    out = out or Path(f"{condensed.stem}-nas")
    check_run_folder(out, SEARCH)
    small = CondensedGraph.load(condensed)
    source, same = common.load_origin(
        small, on, voice, setting=setting, directed=directed, features=features, memory=memory
    )
    RunFolder(out).check_source(source)
    with work.open(common.threads) as worker:
        if not work.so_far:
            make_folder(out)
        try:
            with voice.progress("searching") as tick:
                found = search(
                    small,
                    on=source,
                    model=model,
                    grid=wanted,
                    recipe=recipe,
                    condensed_epochs=condensed_epochs,
                    seed=seed,
                    runs=runs,
                    engine=worker,
                    folder=out,
                    device=common.device,
                    command=command_line(),
                    on_progress=tick,
                )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted: the same command goes on from what '{out}' has") from None
    for line in failure_lines(found.failures):
        voice.warn(line)
    if not found.architectures:
        reason = found.failures[0].error if found.failures else "nothing is done yet, so leave --so-far out"
        raise GcondError(f"no architecture is trained on both graphs: {reason}")
    if not work.so_far:
        found.save(out)
        if can_draw(voice):
            from gcond.reports.figures import save_figure
            from gcond.reports.figures.architecture_agreement import architectures_figure

            save_figure(architectures_figure(found), out / "nas.png")
    voice.result(
        {"out": str(out), "same_source": same, **found.to_json()},
        *(table.rich() for table in search_tables(found, str(out), new=not work.so_far)),
    )
