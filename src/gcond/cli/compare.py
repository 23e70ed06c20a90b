"""``gcond compare``."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gcond.cli.assignments import parse_assignments, parse_list
from gcond.cli.common_options import (
    DEFAULTS,
    Common,
    DirectedOption,
    FeaturesOption,
    MetricOption,
    SetOption,
    SettingOption,
    command_line,
    file_stem,
    whole_number,
)
from gcond.cli.engine_options import THIS_MACHINE, EngineOptions
from gcond.errors import GcondError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gcond.cli.output import Voice
    from gcond.evaluation.comparison_time import ComparisonTime
    from gcond.methods import Method
    from gcond.results import Comparison
    from gcond.results.comparison_request import ComparisonRequest


def command(
    source: Annotated[
        str | None,
        Parameter(help="A name from `gcond datasets`, or the path of a graph; with --so-far its folder knows it."),
    ] = None,
    /,
    *,
    ratio: Annotated[str | None, Parameter(help="Budgets as shares of the nodes, with commas: 1.3%,2.6%.")] = None,
    nodes: Annotated[str | None, Parameter(help="Budgets as numbers of nodes, with commas: 35,70,140.")] = None,
    methods: Annotated[str, Parameter(help="Names from `gcond methods` with commas between, or all.")] = "all",
    models: Annotated[str, Parameter(help="Names from `gcond models` with commas between, or all.")] = "gcn",
    seeds: Annotated[int, whole_number("Condensed graphs per method and budget.", least=1)] = 5,
    runs: Annotated[int, whole_number("Trainings on each of them.", least=1)] = 10,
    metric: MetricOption = None,
    out: Annotated[Path | None, Parameter(alias="-o", help="The run folder; SOURCE-comparison if not given.")] = None,
    recipe: Annotated[
        str | None,
        Parameter(help="Settings of the methods from a TOML file, or the paper's for a data set, such as cora."),
    ] = None,
    set_: Annotated[
        SetOption,
        Parameter(help="Settings of the methods that have them (epochs=20), or of one of them (gcond.epochs=20)."),
    ] = (),
    train: Annotated[SetOption, Parameter(name="--train", help="Settings of the training, such as epochs=200.")] = (),
    setting: SettingOption = None,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    work: EngineOptions = THIS_MACHINE,
    common: Common = DEFAULTS,
) -> None:
    """Condense a graph in many ways, train on all of them, and say which pays.

    For example: gcond compare cora --nodes 35,70,140 --methods random,herding,gcond

    What is done is kept in the run folder: the same command goes on where it was.
    """
    voice = common.start()
    from gcond.results.comparison_request import ComparisonRequest

    graph = _source(source, out if work.so_far else None)
    asked = ComparisonRequest(
        ratio, nodes, methods, models, seeds, runs, metric, recipe, set_, train, setting, directed, features, graph
    )
    if work.so_far and out is not None and ratio is None and nodes is None:
        usual = ComparisonRequest()
        said = {key: value for key, value in dataclasses.asdict(asked).items() if value != getattr(usual, key)}
        asked = dataclasses.replace(ComparisonRequest.kept_in(out), **said)
    found, folder = _compared(graph, asked, out, work, common=common, voice=voice)
    if not work.so_far:
        write_tables(found, folder)
    next_step = f"Everything is in {folder}; a page of it: {shlex.join(['gcond', 'report', str(folder)])}"
    voice.result({"folder": str(folder), **found.to_json()}, *shown(found), "", next_step)


def _source(given: str | None, folder: Path | None) -> str:
    """The source that is ``given``, else the one that ``folder`` was started with."""
    if given is not None:
        return given
    if folder is None:
        raise GcondError("gcond compare needs SOURCE: see gcond compare --help")
    from gcond.results.comparison_request import ComparisonRequest

    kept = ComparisonRequest.kept_in(folder).source
    if kept is None:
        raise GcondError(f"'{folder}' does not know its source: give SOURCE as when it was started")
    return kept


def _compared(
    source: str, asked: ComparisonRequest, out: Path | None, work: EngineOptions, *, common: Common, voice: Voice
) -> tuple[Comparison, Path]:
    """The comparison that is ``asked`` for, and its folder."""
    from gcond.cli.evaluate import named_models
    from gcond.config import settings
    from gcond.evaluation.compare import compare
    from gcond.results import RunFolder
    from gcond.runtime.files import make_folder
    from gcond.training import Recipe

    chosen = chosen_methods(asked.methods, parse_assignments(asked.settings), asked.recipe)
    networks = named_models(asked.models)
    training = parse_assignments(asked.training)
    settings.build(Recipe, training, "the training recipe")
    ratios, sizes = asked_budgets(asked.ratio, asked.nodes)
    with work.open(common.threads) as engine:
        graph = common.load(source, voice, setting=asked.setting, directed=asked.directed, features=asked.features)
        folder = out or Path(f"{file_stem(graph)}-comparison")
        if not work.so_far:
            make_folder(folder)
            RunFolder(folder).check_source(graph)
            asked.save(folder)
        try:
            with voice.progress(f"comparing on {graph.name}") as tick:
                found = compare(
                    graph,
                    methods=chosen,
                    ratio=ratios,
                    nodes=sizes,
                    models=networks,
                    seeds=asked.seeds,
                    runs=asked.runs,
                    metric=asked.metric,
                    recipe=training,
                    folder=folder,
                    engine=engine,
                    device=common.device,
                    command=command_line(),
                    on_estimate=None if voice.quiet else partial(_say_time, voice),
                    on_progress=tick,
                )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(how_to_go_on(folder, source)) from None
    return found, folder


def _say_time(voice: Voice, left: ComparisonTime) -> None:
    """How much there is to do, before it starts."""
    from gcond.reports.tables import count, rough_time

    if not left.graphs and not left.trainings:
        return
    todo = f"{count(left.graphs, 'graph')} to make and {count(left.trainings, 'training')} to do"
    about = f"about {rough_time(left.seconds)} on {count(left.workers, 'worker')}, as short ones went"
    others = f", and what {', '.join(left.uncounted)} take, which do not learn" if left.uncounted else ""
    voice.note(f"{todo}: {about}{others}")


def how_to_go_on(folder: Path, source: str) -> str:
    """The sentence for a comparison that was interrupted."""
    from gcond.results import RunFolder

    so_far = shlex.join(["gcond", "compare", source, "-o", str(folder), "--so-far"])
    shown = f"{so_far} shows it" if len(RunFolder(folder).trials) else "no training is done yet that could be shown"
    return f"interrupted: the same command goes on from what '{folder}' has, and {shown}"


def write_tables(found: Comparison, folder: Path) -> None:
    """The comparison as Markdown and LaTeX beside its JSON."""
    from gcond.reports.comparison_table import comparison_table, failure_lines, legend
    from gcond.runtime.files import write_text

    table = comparison_table(found)
    said = "\n".join([legend(found), "", *found.advice, *failure_lines(found.failures)])
    write_text(folder / "comparison.md", f"{table.markdown()}\n\n{said}\n")
    write_text(folder / "comparison.tex", f"{table.latex()}\n")


def shown(found: Comparison) -> list[RenderableType]:
    """The comparison as people see it."""
    from gcond.reports.comparison_table import comparison_table, failure_lines, legend

    return [comparison_table(found).rich(), legend(found), "", *found.advice, *failure_lines(found.failures)]


def chosen_methods(names: str, assigned: Mapping[str, str], recipe: str | None) -> list[Method]:
    """The methods of ``gcond methods`` that are asked for, with the settings that concern each."""
    from gcond import methods
    from gcond.config.registry import suggest
    from gcond.methods import method_for

    wanted = parse_list(names, "--methods", "method", (*methods.available(), "all"))
    wanted = list(methods.available()) if "all" in wanted else wanted
    fields = {name: {field.name for field in dataclasses.fields(methods.find(name))} for name in wanted}
    for key in assigned:
        owner, dot, setting = key.rpartition(".")
        if dot and owner not in fields:
            raise GcondError(
                f"'{key}' is for a method that is not compared{suggest(owner, fields)}: {', '.join(fields)} are"
            )
        if not any(setting in known for name, known in fields.items() if not dot or name == owner):
            known = sorted({field for name, own in fields.items() if not dot or name == owner for field in own})
            choices = f"choose among {', '.join(known)}" if known else "they have none"
            raise GcondError(f"no method here has a setting '{key}'{suggest(setting, known)}: {choices}")
    return [method_for(name, _concerning(name, fields[name], assigned), recipe) for name in wanted]


def _concerning(name: str, fields: set[str], assigned: Mapping[str, str]) -> dict[str, Any]:
    """The settings assigned to all methods, overridden by those assigned to this one."""
    general = {key: value for key, value in assigned.items() if "." not in key and key in fields}
    own = {key.partition(".")[2]: value for key, value in assigned.items() if key.startswith(f"{name}.")}
    return general | own


def asked_budgets(ratio: str | None, nodes: str | None) -> tuple[list[str], list[int]]:
    """The budgets as shares and as numbers of nodes; those that no graph could have are refused."""
    from gcond.graph.budget import parse_ratio

    if (ratio is None) == (nodes is None):
        raise GcondError("give budgets as either --ratio or --nodes, for example --ratio 1.3%,2.6% or --nodes 35,70")
    if ratio is not None:
        shares = parse_list(ratio, "--ratio", "budget")
        for share in shares:
            parse_ratio(share)
        return shares, []
    sizes = parse_list(nodes or "", "--nodes", "budget")
    for part in sizes:
        if not part.isdecimal():
            raise GcondError(f"--nodes cannot be '{part}': give whole numbers with commas between, such as 35,70")
    return [], [int(part) for part in sizes]
