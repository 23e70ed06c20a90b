"""``gcond reproduce``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from gcond.cli.assignments import parse_list
from gcond.cli.common_options import DEFAULTS, Common, can_draw, command_line, flag, whole_number
from gcond.cli.engine_options import THIS_MACHINE, EngineOptions
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.cli.output import Voice


def command(
    *tables: Annotated[
        str, Parameter(name="TABLE", help="main, architectures, …, or all; without any, they are listed.")
    ],
    datasets: Annotated[
        str | None, Parameter(help="Data sets with commas between; those at hand if not given.")
    ] = None,
    quick: Annotated[bool, flag("A small version in minutes: one graph, two runs, few epochs.")] = False,
    seeds: Annotated[
        int | None, whole_number("Condensed graphs per cell, 5 if not given; a search is on one.", least=1)
    ] = None,
    runs: Annotated[int | None, whole_number("Trainings on each of them; 10 if not given.", least=1)] = None,
    settings: Annotated[
        Literal["gcond", "paper"], Parameter(help="The methods' own defaults, or what the paper's scripts use.")
    ] = "gcond",
    out: Annotated[Path, Parameter(alias="-o", help="Folder for tables and runs.")] = Path("reproduction"),
    work: EngineOptions = THIS_MACHINE,
    common: Common = DEFAULTS,
) -> None:
    """Measure the paper's tables, beside its own figures.

    For example: gcond reproduce main --datasets cora,citeseer

    What is done is kept in the folder: the same command goes on where it was.
    """
    voice = common.start()
    from gcond.config.registry import resolve
    from gcond.reports.comparison_table import failure_lines
    from gcond.reports.reproduction_table import reproduction_table
    from gcond.reproduction.drawings import draw
    from gcond.reproduction.experiment_setup import FULL, QUICK, Plan
    from gcond.reproduction.experiments import EXPERIMENTS
    from gcond.reproduction.reproduce import reproduce

    if not tables:
        _list(voice)
        return
    names = list(EXPERIMENTS) if "all" in tables else list(dict.fromkeys(tables))
    for name in names:
        resolve("table", name, {**EXPERIMENTS, "all": None})
    usual = QUICK if quick else FULL
    scale = dataclasses.replace(usual, seeds=seeds or usual.seeds, runs=runs or usual.runs)
    chosen = _datasets(names, datasets, common.data, voice)
    drawing = not work.so_far and can_draw(voice)
    shown, payload = [], []
    with work.open(common.threads) as engine, voice.progress("reproducing") as tick:
        plan = Plan(engine, scale, settings, common.device, command_line(), tick)
        for report in reproduce(names, lambda name: common.load(name, voice), chosen, out, plan):
            payload.append(report.to_json())
            shown.append(reproduction_table(report).rich())
            for line in failure_lines(report.failures):
                voice.warn(line)
            if drawing:
                draw(report, out)
    where = [] if work.so_far else [f"Markdown, LaTeX and JSON are in {out}"]
    voice.result({"folder": str(out), "tables": payload}, *shown, *where)


def _list(voice: Voice) -> None:
    from gcond.reports.tables import Table
    from gcond.reproduction.experiments import EXPERIMENTS

    found = [{"table": e.name, "title": e.title, "datasets": list(e.datasets)} for e in EXPERIMENTS.values()]
    rows = tuple((e.name, e.title, ", ".join(e.datasets)) for e in EXPERIMENTS.values())
    voice.result({"tables": found}, Table(("table", "what it is", "data sets"), rows, words=range(3)).rich())


def _datasets(names: list[str], asked: str | None, data: Path | None, voice: Voice) -> list[str]:
    """Those to use, and a word on each that is missing."""
    from gcond.config.registry import resolve
    from gcond.data.catalogue import DATASETS
    from gcond.reproduction.experiments import EXPERIMENTS

    printed = dict.fromkeys(dataset for name in names for dataset in EXPERIMENTS[name].datasets)
    if asked is not None:
        wanted = parse_list(asked, "--datasets", "data set", printed)
        for dataset in wanted:
            resolve("data set", dataset, {name: name for name in printed})
        return wanted
    here = [dataset for dataset in printed if DATASETS[dataset].at_hand(data)]
    for dataset in printed:
        if dataset not in here:
            voice.note(
                f"{dataset} is not here ({DATASETS[dataset].whereabouts(data)}); --datasets {dataset} asks for it"
            )
    if not here:
        raise GcondError(f"no data set is at hand: name some with --datasets, such as {next(iter(printed))}")
    return here
