"""``gcond tune``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gcond.cli.assignments import parse_assignments, parse_grid
from gcond.cli.column_engine import MemoryOption
from gcond.cli.common_options import (
    DEFAULTS,
    Common,
    DirectedOption,
    FeaturesOption,
    MetricOption,
    SetOption,
    SettingOption,
    can_draw,
    check_run_folder,
    command_line,
    file_stem,
    flag,
    whole_number,
)
from gcond.cli.engine_options import THIS_MACHINE, EngineOptions
from gcond.cli.evaluate import named_models, with_metric
from gcond.cli.recommend import write_recommendation
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.condensed import CondensedGraph
    from gcond.results import Tuning

GridOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--grid",
        consume_multiple=(1, None),
        negative=(),
        show_default=False,
        metavar="SETTING=VALUES",
        help="Values of a setting to draw from, hidden=16,64 or lr=0.001..0.1, instead of the usual ones.",
    ),
]


def command(
    condensed: Annotated[Path | None, Parameter(help="A file that `gcond condense` wrote.")] = None,
    /,
    *,
    on: Annotated[str | None, Parameter(help="The source graph that it was made from.")] = None,
    whole: Annotated[str | None, Parameter(help="Search on this whole source graph instead.")] = None,
    model: Annotated[str, Parameter(help="Names from `gcond models` with commas between, or all.")] = "gcn",
    trials: Annotated[int, whole_number("How many configurations are tried.", least=1)] = 100,
    runs: Annotated[int, whole_number("How often each is trained in the search.", least=1)] = 1,
    top: Annotated[int, whole_number("How many of the best are trained anew.", least=1)] = 5,
    final_runs: Annotated[int, whole_number("How often each of those is trained, on either graph.", least=1)] = 5,
    seed: Annotated[int, whole_number("Of what is drawn, and of the first run; the next ones count on.")] = 0,
    batch: Annotated[int, whole_number("How many are drawn at a time; no more workers can be busy.", least=1)] = 8,
    grid: GridOption = (),
    metric: MetricOption = None,
    set_: Annotated[
        SetOption,
        Parameter(help="Settings of the training or of the models that every configuration keeps, such as epochs=200."),
    ] = (),
    prune: Annotated[
        bool, Parameter(help="Give up what is not in the best third after a ninth, or a third, of its epochs.")
    ] = True,
    check: Annotated[
        bool,
        Parameter(
            help="Train the best on the whole graph, too, and say how far both orders agree; often most of the work."
        ),
    ] = True,
    save: Annotated[bool, flag("Write the winner into the condensed file, for --recipe recommended.")] = False,
    out: Annotated[
        Path | None,
        Parameter(alias="-o", help="Folder for tune.json, trials.jsonl and tune.png; CONDENSED-tune if not given."),
    ] = None,
    setting: SettingOption = None,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    memory: MemoryOption = None,
    work: EngineOptions = THIS_MACHINE,
    common: Common = DEFAULTS,
) -> None:
    """Search hyper-parameters on a condensed graph, and train the best on the whole one to compare.

    Width, depth, dropout, rate, weight decay and what only a model has, by validation nodes alone (extra `tune`).

    For example: gcond tune cora-clusters-70.safetensors --on cora --model gcn --trials 100 --save

    The same search on the whole graph: gcond tune --whole cora --trials 100

    Only what it is for, without the comparison: gcond tune small.safetensors --on my-graph --no-check --save

    A search that was stopped goes on when the same command is started again.
    """
    voice = common.start()
    from gcond.results.optuna_study import require_optuna
    from gcond.results.tuning import TUNING

    require_optuna()
    _check_graphs(condensed, on, whole, save)
    from gcond.evaluation.tuning.hyperparameter_search import check_trials, tune
    from gcond.evaluation.tuning.search_space import tuning_space
    from gcond.reports.comparison_table import failure_lines
    from gcond.reports.tuning_table import tuning_tables
    from gcond.results import RunFolder
    from gcond.runtime.files import make_folder

    # What can be refused without the graphs is refused before they are read.
    held: dict[str, Any] = dict(with_metric(parse_assignments(set_), metric))
    wanted = parse_grid(grid)
    names = named_models(model, "--model")
    check_trials(trials, tuning_space(names, wanted, held))
    small = _load(condensed, save) if condensed is not None else None
    same = None
    if condensed is not None and small is not None:
        source, same = common.load_origin(
            small, str(on), voice, setting=setting, directed=directed, features=features, memory=memory
        )
        if save and not same:
            raise GcondError(f"'{condensed}' was made from another graph, which --save needs: leave it out")
        out = out or Path(f"{condensed.stem}-tune")
    else:
        source = common.load(str(whole), voice, setting=setting, directed=directed, features=features, memory=memory)
        out = out or Path(f"{file_stem(source)}-tune")
    check_run_folder(out, TUNING)
    RunFolder(out).check_source(source)
    with work.open(common.threads) as worker:
        if not work.so_far:
            make_folder(out)
        try:
            with voice.progress("searching") as tick:
                found = tune(
                    source if small is None else small,
                    on=source,
                    model=names,
                    trials=trials,
                    runs=runs,
                    seed=seed,
                    top=top,
                    final_runs=final_runs,
                    batch=batch,
                    prune=prune,
                    check=check,
                    grid=wanted,
                    folder=out,
                    engine=worker,
                    device=common.device,
                    command=command_line(),
                    on_progress=tick,
                    **held,
                )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted: the same command goes on from what '{out}' has") from None
    for line in failure_lines(found.failures):
        voice.warn(line)
    if not found.trials or (not found.finalists and not work.so_far):
        reason = found.failures[0].error if found.failures else "nothing is done yet, so leave --so-far out"
        raise GcondError(f"no configuration was trained: {reason}")
    if not work.so_far:
        found.save(out)
        if can_draw(voice):
            from gcond.reports.figures import save_figure
            from gcond.reports.figures.tuning_progress import tuning_figure

            save_figure(tuning_figure(found), out / "tune.png")
    written: list[Path] = []
    if save and condensed is not None and small is not None and found.recommendation is not None and not work.so_far:
        written = write_recommendation([condensed], [small], found.recommendation, voice)
    following = _next(found, condensed, on, whole, bool(written))
    payload: dict[str, Any] = {
        "out": str(out),
        "same_source": same,
        "saved": bool(written),
        "next": following,
        **found.to_json(),
    }
    tables = tuning_tables(found, "\n".join(map(str, [out, *written])), following, new=not work.so_far)
    voice.result(payload, *(table.rich() for table in tables if table.rows))


def _check_graphs(condensed: Path | None, on: str | None, whole: str | None, save: bool) -> None:
    if (condensed is None) == (whole is None):
        raise GcondError("give either a condensed file with --on SOURCE, or --whole SOURCE")
    if whole is not None and on is not None:
        raise GcondError("--on goes with a condensed file: --whole SOURCE is searched on itself")
    if condensed is not None and on is None:
        raise GcondError(f"'{condensed}' is validated on the graph it was made from: add --on SOURCE")
    if whole is not None and save:
        raise GcondError("--save writes into a condensed file, and --whole has none: leave it out")


def _load(condensed: Path, save: bool) -> CondensedGraph:
    """The condensed graph, refused where its file could not keep what is to be saved in it."""
    from gcond.condensed import CondensedGraph
    from gcond.runtime.files import check_writable

    small = CondensedGraph.load(condensed)
    if save:
        if small.provenance is None:
            raise GcondError(f"'{condensed}' does not say how it was made, so --save has no place there: leave it out")
        check_writable(condensed)
    return small


def _next(found: Tuning, condensed: Path | None, on: str | None, whole: str | None, saved: bool) -> str:
    """The command that trains by what was found."""
    from gcond.reports.score_changes import changed

    winner = found.winner
    if winner is None:
        return ""
    graph = [str(whole)] if condensed is None else [str(condensed), "--on", str(on)]
    words = ["gcond", "train", *graph, "--model", winner.model]
    if saved:
        words += ["--recipe", "recommended"]
    elif changes := [f"{key}={value}" for key, value in changed(winner).items()]:
        words += ["--set", *changes]
    return shlex.join([*words, "-o", "model.safetensors"])
