"""``gcond train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    check_new_file,
    flag,
    spelled,
    whole_number,
)
from gcond.cli.evaluate import advice_for, divide_settings, load_whole, networks_of, with_metric
from gcond.cli.model_facts import model_facts, model_payload
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.condensed import CondensedGraph


def command(
    graph: Annotated[
        str,
        Parameter(help="A file that `gcond condense` or another tool wrote, or a whole source graph, to compare with."),
    ],
    /,
    *,
    on: Annotated[str | None, Parameter(help="The source graph that a condensed file was made from.")] = None,
    model: Annotated[str, Parameter(help="One of `gcond models`.")] = "gcn",
    out: Annotated[Path, Parameter(alias="-o", help="The .safetensors file to write.")],
    seed: Annotated[int, whole_number("Seed of the first run; the next ones count on.")] = 0,
    runs: Annotated[
        int, whole_number("Trainings, of which the one that is best on validation nodes is kept.", least=1)
    ] = 1,
    set_: Annotated[
        SetOption, Parameter(help="Settings of the training or of the model, such as epochs=600 or hidden=64.")
    ] = (),
    metric: MetricOption = None,
    recipe: Annotated[
        str | None,
        Parameter(
            help="How to train: recommended is what `gcond recommend` found for the condensed graph, and the name of a "
            "condensed FILE what it found for that one. If not given, the fixed recipe that all comparisons use."
        ),
    ] = None,
    setting: SettingOption = None,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    memory: MemoryOption = None,
    force: Annotated[bool, flag("Replace the file if it exists.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Train a model on a condensed graph, or on a whole one, and write it to a file.

    For example: gcond train cora-clusters-70.safetensors --on cora --model gcn -o model.safetensors

    With the same seed it is the model that `gcond evaluate` tests. `gcond predict` uses it.
    """
    voice = common.start()
    from gcond import models
    from gcond.evaluation.train import names_condensed, train
    from gcond.reports.tables import facts, seconds

    if out.suffix != ".safetensors":
        raise GcondError(f"'{out}' is no name for a model: end it in .safetensors")
    models.find(model)
    shape, training = divide_settings([model], with_metric(parse_assignments(set_), metric))
    (network,) = networks_of([model], shape)
    for other in (graph, on or graph):
        check_new_file(out, other, force)
    file = Path(graph) if names_condensed(graph) else None
    if file is not None and on is None:
        raise GcondError(f"'{file}' is validated and tested on the graph it was made from: add --on SOURCE")
    if file is None and on not in (None, graph):
        raise GcondError(f"the whole graph '{graph}' is validated and tested on itself: leave --on {on} out")
    small = _load_condensed(file) if file is not None else None
    advice = advice_for(recipe, file, small)
    if advice is not None:
        network = advice.model(model, shape)
    same = None
    if small is None:
        source = load_whole(
            common, graph, voice, advice, setting=setting, directed=directed, features=features, memory=memory
        )
    else:
        source, same = common.load_origin(
            small, str(on), voice, setting=setting, directed=directed, features=features, memory=memory
        )
    with voice.progress(f"training {model}") as tick:
        trained = train(
            source if small is None else small,
            on=source,
            model=network,
            seed=seed,
            runs=runs,
            recipe=recipe,
            device=common.device,
            threads=common.threads,
            on_progress=tick,
            **training,
        )
    trained.save(out)
    about = {"wrote": str(out), **model_facts(trained), "time": f"{seconds(trained.record.cpu_seconds)} CPU time"}
    about["next"] = spelled("predict", out, "--on", on or graph, "-o", "predictions.csv")
    voice.result({"out": str(out), "same_source": same, **model_payload(trained)}, facts(about).rich())


def _load_condensed(path: Path) -> CondensedGraph:
    from gcond.condensed import CondensedGraph

    return CondensedGraph.load(path)
