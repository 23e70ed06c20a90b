"""``gcond evaluate``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    whole_number,
)
from gcond.cli.engine_options import THIS_MACHINE, EngineOptions
from gcond.errors import GcondError
from gcond.reports.score_changes import changed

if TYPE_CHECKING:
    from gcond.cli.output import Voice
    from gcond.condensed import CondensedGraph, Score
    from gcond.config.metric import Metric
    from gcond.evaluation.recommended import Advice
    from gcond.graph import SourceGraph
    from gcond.models import Model

_REPORTED = ("model", "mean", "std", "runs", "val_mean")


def command(
    condensed: Annotated[Path | None, Parameter(help="A file that `gcond condense` wrote.")] = None,
    /,
    *,
    on: Annotated[str | None, Parameter(help="The source graph that it was made from.")] = None,
    whole: Annotated[str | None, Parameter(help="Train on this whole source graph instead, as the reference.")] = None,
    models: Annotated[str, Parameter(help="Names from `gcond models` with commas between, or all.")] = "gcn",
    runs: Annotated[int, whole_number("How often each model is trained.")] = 10,
    seed: Annotated[int, whole_number("Seed of the first run; the next ones count on.")] = 0,
    set_: Annotated[
        SetOption, Parameter(help="Settings of the training or of the models, such as epochs=600 or hidden=64.")
    ] = (),
    metric: MetricOption = None,
    recipe: Annotated[
        str | None,
        Parameter(
            help="How to train: recommended is what `gcond recommend` found for the condensed graph, and the name of a "
            "condensed FILE what it found for that one. If not given, the fixed recipe that all comparisons use."
        ),
    ] = None,
    out: Annotated[
        Path | None, Parameter(alias="-o", help="Run folder to keep finished runs in, and to find them in.")
    ] = None,
    setting: SettingOption = None,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    record: Annotated[bool, Parameter(help="Write the scores into the condensed file.")] = True,
    work: EngineOptions = THIS_MACHINE,
    memory: MemoryOption = None,
    common: Common = DEFAULTS,
) -> None:
    """Train models on a condensed graph and test them on its source.

    For example: gcond evaluate cora-herding-70.safetensors --on cora --models gcn,sgc

    For the reference: gcond evaluate --whole cora

    By the recipe that fits: gcond evaluate cora-herding-70.safetensors --on cora --recipe recommended
    """
    voice = common.start()
    from gcond.reports.class_table import class_table
    from gcond.reports.tables import score_table
    from gcond.runtime.files import make_folder

    assigned = with_metric(parse_assignments(set_), metric)
    if (condensed is None) == (whole is None):
        raise GcondError("give either a condensed file with --on SOURCE, or --whole SOURCE")
    if whole is not None and on is not None:
        raise GcondError("--on goes with a condensed file: --whole SOURCE is tested on itself")
    if condensed is not None and on is None:
        raise GcondError(f"'{condensed}' is tested on the graph it was made from: add --on SOURCE")
    if runs < 1:
        raise GcondError(f"{runs} runs are too few: use --runs 1 or more")
    names = named_models(models)
    shape, training = divide_settings(names, assigned)
    networks = networks_of(names, shape)
    if out is not None:
        make_folder(out)
    record = record and (condensed is None or _writable(condensed, voice))

    small = _load_condensed(condensed) if condensed is not None else None
    advice = advice_for(recipe, condensed, small)
    if advice is not None:
        networks = [advice.model(name, shape) for name in names]
    same = None
    if small is None:
        source = load_whole(
            common, str(whole), voice, advice, setting=setting, directed=directed, features=features, memory=memory
        )
    else:
        source, same = common.load_origin(
            small, str(on), voice, setting=setting, directed=directed, features=features, memory=memory
        )
        record = record and _can_record(small, same, voice)

    from gcond.evaluation.evaluate import evaluate
    from gcond.graph.stored_graph import watched

    own = nullcontext() if work == THIS_MACHINE else work.open(common.threads)  # a few trainings need no processes
    with own as engine, voice.progress("evaluating") as tick:
        source = watched(source, tick)
        scores = evaluate(
            source if small is None else small,
            on=source,
            models=networks,
            runs=runs,
            seed=seed,
            recipe=recipe,
            **training,
            device=common.device,
            threads=common.threads if engine is None else None,
            folder=out,
            engine=engine,
            on_progress=tick,
        )
    if record and condensed is not None and small is not None:
        _record(condensed, small, scores, voice)
    provenance = small.provenance if small is not None else None
    method = provenance.method if provenance is not None else None
    changes = [changed(score) for score in scores]
    by_class = class_table({score.model: score.metrics for score in scores}, source.class_names, "by class, %")
    title = f"{source.name}, whole graph" if condensed is None else f"{condensed.name}, tested on {source.name}"
    voice.result(
        {
            "source": source.name,
            "condensed": str(condensed) if condensed is not None else None,
            "same_source": same,
            "method": method,
            **({"notes": list(small.notes)} if small is not None and small.notes else {}),
            "nodes": (source if small is None else small).num_nodes,
            "recipe": shared_recipe(scores),
            "results": [
                {**{key: getattr(score, key) for key in _REPORTED}, "settings": change, **_class_metrics(score)}
                for score, change in zip(scores, changes, strict=True)
            ],
        },
        score_table(scores, title, changes).rich(),
        *([by_class.rich()] if by_class is not None else []),
    )


def with_metric(assigned: dict[str, str], metric: Metric | None) -> dict[str, str]:
    """What is ``assigned``, and the metric where it is an option of its own; said twice it is refused."""
    if metric is None:
        return assigned
    if "metric" in assigned:
        raise GcondError(f"the metric is given twice, as {assigned['metric']} too: use --metric alone")
    return {**assigned, "metric": metric}


def shared_recipe(scores: Sequence[Score]) -> dict[str, Any]:
    """The recipe of all models; a setting in which they differ is given by model."""
    first, *others = scores
    return {
        key: value
        if all(other.recipe[key] == value for other in others)
        else {score.model: score.recipe[key] for score in scores}
        for key, value in first.recipe.items()
    }


def named_models(text: str, option: str = "--models") -> list[str]:
    """``gcn,sgc`` or ``all`` as a list of models that exist, each once."""
    from gcond import models

    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise GcondError(f"{option} names no model: choose among {', '.join(sorted(models.available()))}, or all")
    for name in names:
        if name != "all":
            models.find(name)
    return sorted(models.available()) if "all" in names else names


def divide_settings(names: Sequence[str], assigned: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is ``assigned`` to the architecture of the models, and the rest, which is the recipe's."""
    from gcond import models
    from gcond.config import settings
    from gcond.config.registry import suggest
    from gcond.training import Recipe

    training = [field.name for field in dataclasses.fields(Recipe)]
    fields = {name: [field.name for field in dataclasses.fields(models.find(name))] for name in names}
    shared = [key for key in fields[names[0]] if all(key in known for known in fields.values())]
    for key in assigned:
        if key in training or key in shared:
            continue
        exists = f"the training has {', '.join(training)}, and {_together(names)} {', '.join(shared)}"
        having = [name for name in names if key in fields[name]]
        if having:
            lacking = [name for name in names if name not in having]
            raise GcondError(f"setting '{key}' exists for {_list(having)} but not for {_list(lacking)}: {exists}")
        known = dict.fromkeys([*training, *shared])
        raise GcondError(f"there is no setting '{key}'{suggest(key, known)}: {exists}")
    recipe = {key: value for key, value in assigned.items() if key in training}
    settings.build(Recipe, recipe, "the training recipe")
    shape = {key: value for key, value in assigned.items() if key not in training}
    return shape, recipe


def networks_of(names: Sequence[str], shape: Mapping[str, str]) -> list[Model]:
    """The models, their architecture the usual one but for ``shape``."""
    from gcond import models
    from gcond.config import settings

    return [settings.build(models.find(name), shape, f"model '{name}'") for name in names]


def advice_for(recipe: str | None, condensed: Path | None, small: CondensedGraph | None) -> Advice | None:
    """The graph whose recommendation is asked for, if one is."""
    from gcond.evaluation.recommended import RECOMMENDED, Advice, lent_advice

    if recipe != RECOMMENDED:
        return lent_advice(recipe)
    if small is None:
        raise GcondError(
            "a whole graph has no recommended recipe of its own: use --recipe FILE, a condensed graph of it"
        )
    return Advice(small, str(condensed))


def load_whole(common: Common, whole: str, voice: Voice, advice: Advice | None, **reading: Any) -> SourceGraph:
    """The whole graph, as it was read for the condensed graph whose recommendation it is trained by."""
    if advice is None:
        return common.load(whole, voice, **reading)
    source, _ = common.load_origin(advice.graph, whole, voice, **reading)
    return source


def _class_metrics(score: Score) -> dict[str, Any]:
    """The metrics that look at every class, as fields of a result; none where a kept run has none."""
    return dataclasses.asdict(score.metrics) if score.metrics is not None else {}


def _together(names: Sequence[str]) -> str:
    return f"model '{names[0]}' has" if len(names) == 1 else "the models named share"


def _list(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _writable(condensed: Path, voice: Voice) -> bool:
    """Whether scores can be written into the file; it is said before hours are spent where they cannot."""
    from gcond.runtime.files import check_writable

    if not condensed.is_file():
        return True  # to be refused by whoever reads it
    try:
        check_writable(condensed)
    except GcondError as error:
        voice.warn(f"the scores are printed and not recorded: {error}")
        return False
    return True


def _load_condensed(path: Path) -> CondensedGraph:
    from gcond.condensed import CondensedGraph

    return CondensedGraph.load(path)


def _can_record(small: CondensedGraph, same: bool | None, voice: Voice) -> bool:
    """A file keeps scores on the very graph that it was made from: others could be taken for them."""
    if small.provenance is None:
        voice.note("the condensed file does not say what it was made from, so the scores are not recorded in it")
    elif not same:
        voice.note("the scores are not recorded in the condensed file, because they are on another graph")
    return bool(same)


def _record(path: Path, scored: CondensedGraph, scores: Sequence[Score], voice: Voice) -> None:
    # Read again: another process may have recorded its own scores in the meantime, or made another graph.
    graph = _load_condensed(path)
    if graph.provenance is None or graph.sha256 != scored.sha256:
        voice.warn(f"'{path}' changed while it was evaluated, so the scores are not recorded in it")
        return
    try:
        graph.with_scores(scores).save(path)
    except GcondError as error:  # a disk that is full by now must not cost the scores
        voice.warn(f"the scores are printed and not recorded: {error}")
