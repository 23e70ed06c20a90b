"""``gcond reproduce``: experiments on the data sets at hand, written beside the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gcond.graph import SourceGraph
from gcond.reports.reproduction_table import reproduction_table
from gcond.reproduction.experiment_setup import ExperimentSetup, Plan
from gcond.reproduction.experiments import EXPERIMENTS
from gcond.results import Failure, ReproducedRow, Reproduction
from gcond.runtime.files import make_folder, write_text


def reproduce(
    names: Sequence[str],
    load: Callable[[str], SourceGraph],
    datasets: Sequence[str],
    folder: Path,
    plan: Plan,
) -> Iterator[Reproduction]:
    """Every experiment in ``names`` on those of ``datasets`` that the paper has it for, as each is done.

    ``folder`` has a run folder per data set, which all experiments share, and the tables as they are written.
    """
    needed = {dataset for name in names for dataset in EXPERIMENTS[name].datasets}
    # All of them before any work: one that is missing is told now, and not after hours.
    sources = {dataset: load(dataset) for dataset in datasets if dataset in needed}
    if not plan.engine.idle:
        make_folder(folder)
    setups = {name: ExperimentSetup(name, source, folder / name, plan) for name, source in sources.items()}
    for name in names:
        experiment = EXPERIMENTS[name]
        wanted = [dataset for dataset in datasets if dataset in experiment.datasets]
        if not wanted:
            continue
        rows: list[ReproducedRow] = []
        failures: list[Failure] = []
        for dataset in wanted:
            setup = setups[dataset]
            setup.failures.clear()
            rows += [replace(row, dataset=dataset) for row in experiment.measure(setup)]
            failures += setup.failures
        report = Reproduction(
            table=name,
            title=experiment.title,
            columns=experiment.columns,
            digits=experiment.digits,
            settings=plan.settings,
            seeds=plan.scale.seeds,
            runs=plan.scale.runs,
            rows=tuple(rows),
            failures=tuple(failures),
            command=plan.command,
        )
        if not plan.engine.idle:
            save(report, folder)
        yield report


def save(report: Reproduction, folder: Path) -> None:
    """JSON, Markdown and LaTeX, named after the table."""
    table = reproduction_table(report)
    report.save(folder)
    write_text(folder / f"{report.table}.md", f"{table.markdown()}\n\n`{report.command}`\n")
    write_text(folder / f"{report.table}.tex", table.latex() + "\n")
