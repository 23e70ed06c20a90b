"""``gcond audit``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from gcond.cli.assignments import parse_assignments
from gcond.cli.column_engine import MemoryOption
from gcond.cli.common_options import (
    DEFAULTS,
    Common,
    DirectedOption,
    FeaturesOption,
    MetricOption,
    SetOption,
    SettingOption,
    check_run_folder,
    command_line,
    flag,
    whole_number,
)
from gcond.cli.engine_options import THIS_MACHINE, EngineOptions
from gcond.cli.evaluate import divide_settings, named_models, networks_of, with_metric
from gcond.errors import GcondError

NoiseOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--noise",
        consume_multiple=(1, None),
        negative=(),
        show_default=False,
        metavar="WHAT=SHARE",
        help="Shares to change: edges=1%, features=10% and labels=20% if not given; 0 leaves one out.",
    ),
]


def command(
    *condensed: Annotated[Path, Parameter(help="Condensed files, all of one source.", negative=())],
    on: Annotated[str | None, Parameter(help="The source graph that they were made from.")] = None,
    models: Annotated[str, Parameter(help="Names from `gcond models` with commas between, or all.")] = "gcn",
    seeds: Annotated[int | None, whole_number("How often each noise is drawn; 3 if not given.", least=1)] = None,
    runs: Annotated[int | None, whole_number("Trainings on each graph; 3 if not given.", least=1)] = None,
    noise: NoiseOption = (),
    quick: Annotated[bool, flag("A first look: each noise once, two trainings.")] = False,
    metric: MetricOption = None,
    set_: Annotated[
        SetOption, Parameter(help="Settings of the training or of the models, such as epochs=200 or hidden=64.")
    ] = (),
    out: Annotated[Path | None, Parameter(alias="-o", help="The run folder; CONDENSED-audit if not given.")] = None,
    setting: SettingOption = None,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    work: EngineOptions = THIS_MACHINE,
    memory: MemoryOption = None,
    common: Common = DEFAULTS,
) -> None:
    """Measure what noise does to condensed graphs, and what can be told from them about their source.

    Accuracy with changed edges, features and labels before condensing and at test, distances from source nodes, a
    membership attack, and the worst class, beside random nodes and the whole graph.

    For example: gcond audit cora-clusters-70.safetensors --on cora

    What is done is kept in the run folder: the same command goes on where it was.
    """
    voice = common.start()
    from gcond.condensed import CondensedGraph
    from gcond.evaluation.audit.audit import audit
    from gcond.reports.audit_table import audit_lines, audit_tables
    from gcond.reports.comparison_table import failure_lines
    from gcond.results import RunFolder
    from gcond.results.audit import AUDIT

    # What can be refused without the graphs is refused before they are read.
    if not condensed:
        raise GcondError("gcond audit needs a file: give one or more condensed graphs of one source")
    if on is None:
        raise GcondError(f"'{condensed[0]}' is audited beside the graph it was made from: add --on SOURCE")
    levels = parse_noise(noise)
    names = named_models(models)
    shape, training = divide_settings(names, with_metric(parse_assignments(set_), metric))
    networks = networks_of(names, shape)
    smalls = [CondensedGraph.load(file) for file in condensed]
    out = out or Path(f"{condensed[0].stem}-audit")
    check_run_folder(out, AUDIT)
    with work.open(common.threads) as engine:
        source, _ = common.load_origin(
            smalls[0], on, voice, setting=setting, directed=directed, features=features, memory=memory
        )
        RunFolder(out).check_source(source)
        try:
            with voice.progress("auditing") as tick:
                found = audit(
                    smalls,
                    on=source,
                    models=networks,
                    seeds=seeds,
                    runs=runs,
                    noise=levels,
                    quick=quick,
                    folder=out,
                    engine=engine,
                    device=common.device,
                    command=command_line(),
                    on_progress=tick,
                    **training,
                )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted: the same command goes on from what '{out}' has") from None
    if not found.accuracies:
        raise GcondError("nothing is done yet, so leave --so-far out")
    for line in failure_lines(found.failures):
        voice.warn(line)
    following = f"Everything is in {out}; a page of it: {shlex.join(['gcond', 'report', str(out)])}"
    tables = [table.rich() for table in audit_tables(found)]
    voice.result({"out": str(out), **found.to_json()}, *tables, *audit_lines(found), "", following)


def parse_noise(pairs: tuple[str, ...]) -> dict[str, Any]:
    """``edges=1%`` and the like as shares; refused where that is none."""
    from gcond.config import settings
    from gcond.graph.perturbation import Noise

    shares: dict[str, Any] = {}
    for pair in pairs:
        kind, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not kind:
            raise GcondError(f"--noise takes what=share, such as labels=20%, and '{pair}' is not of that form")
        try:
            shares[kind] = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            raise GcondError(f"--noise {pair} has no number: write for example {kind}=10% or {kind}=0.1") from None
    settings.build(Noise, shares, "the noise")
    return shares
