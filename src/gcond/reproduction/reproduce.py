"""``gcond reproduce``: experiments on the data sets at hand, written beside the paper's figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gcond import __version__
from gcond.graph.source_graph import SourceGraph
from gcond.jobs.runner import Failure
from gcond.reports.reproduction_table import reproduction_table
from gcond.reports.tables import Table
from gcond.reproduction.experiment_setup import FULL, Lab, Row, Scale, Settings
from gcond.reproduction.experiments import EXPERIMENTS, Experiment
from gcond.runtime.engines.engine import Engine
from gcond.runtime.files import make_folder, write_text
from gcond.runtime.tick import Tick


@dataclass(frozen=True)
class Report:
    """One experiment, done on some data sets."""

    experiment: Experiment
    rows: dict[str, list[Row]]
    """By data set."""
    failures: tuple[Failure, ...]
    scale: Scale
    settings: Settings
    command: str

    def table(self) -> Table:
        return reproduction_table(self.to_json())

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "reproduction",
            "gcond": __version__,
            "table": self.experiment.name,
            "title": self.experiment.title,
            "columns": self.experiment.columns,
            "digits": self.experiment.digits,
            "command": self.command,
            "settings": self.settings,
            "seeds": self.scale.seeds,
            "runs": self.scale.runs,
            "rows": [{"dataset": dataset, **_as_json(row)} for dataset, rows in self.rows.items() for row in rows],
            "failures": [asdict(failure) for failure in self.failures],
        }

    def save(self, folder: Path) -> list[Path]:
        """Markdown, LaTeX and JSON, named after the table."""
        name, table = self.experiment.name, self.table()
        texts = {
            "md": f"{table.markdown()}\n\n`{self.command}`\n",
            "tex": table.latex() + "\n",
            "json": json.dumps(self.to_json(), indent=1, allow_nan=False, ensure_ascii=False) + "\n",
        }
        for suffix, text in texts.items():
            write_text(folder / f"{name}.{suffix}", text)
        return [folder / f"{name}.{suffix}" for suffix in texts]


def reproduce(
    names: Sequence[str],
    load: Callable[[str], SourceGraph],
    datasets: Sequence[str],
    folder: Path,
    engine: Engine,
    *,
    scale: Scale = FULL,
    settings: Settings = "gcond",
    device: str = "auto",
    command: str = "",
    on_progress: Tick | None = None,
) -> Iterator[Report]:
    """Every experiment in ``names`` on those of ``datasets`` that the paper has it for, as each is done.

    ``folder`` has a run folder a data set, which all experiments share, and the tables as they are written.
    """
    needed = {dataset for name in names for dataset in EXPERIMENTS[name].datasets}
    # All of them before any work: one that is missing is told now, and not after hours.
    sources = {dataset: load(dataset) for dataset in datasets if dataset in needed}
    if not engine.idle:
        make_folder(folder)
    labs = {
        dataset: Lab(
            dataset,
            source,
            folder / dataset,
            engine,
            scale=scale,
            settings=settings,
            device=device,
            command=command,
            on_progress=on_progress,
        )
        for dataset, source in sources.items()
    }
    for name in names:
        experiment = EXPERIMENTS[name]
        wanted = [dataset for dataset in datasets if dataset in experiment.datasets]
        rows: dict[str, list[Row]] = {}
        failures: list[Failure] = []
        for dataset in wanted:
            lab = labs[dataset]
            lab.failures.clear()
            rows[dataset] = experiment.measure(lab)
            failures += lab.failures
        if not wanted:
            continue
        report = Report(experiment, rows, tuple(failures), scale, settings, command)
        if not engine.idle:
            report.save(folder)
        yield report


def _as_json(row: Row) -> dict[str, Any]:
    return {
        "labels": row.labels,
        "ours": None if row.ours is None else row.ours._asdict(),
        "n": row.n,
        "paper": None if row.paper is None else row.paper._asdict(),
        "digits": row.digits,
    }
