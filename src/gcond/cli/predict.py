"""``gcond predict``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common, SettingOption, check_new_file, flag, say_notes
from gcond.errors import GcondError

if TYPE_CHECKING:
    from gcond.graph import SourceGraph
    from gcond.training.predictions import Predictions


def command(
    model: Annotated[Path, Parameter(help="A file that `gcond train` wrote.")],
    /,
    *,
    on: Annotated[
        str, Parameter(help="The graph to predict for: a name or a path, labelled or not, with the model's features.")
    ],
    out: Annotated[Path, Parameter(alias="-o", help="The .parquet or .csv file to write.")],
    nodes: Annotated[
        Path | None, Parameter(help="A text file with the ids of the nodes to predict for, one in each line.")
    ] = None,
    part: Annotated[
        Literal["all", "train", "val", "test", "unlabelled"], Parameter(help="The nodes to predict for.")
    ] = "all",
    labels: Annotated[bool, flag("Write the labels that the nodes have, too, as a column of its own.")] = False,
    setting: SettingOption = None,
    force: Annotated[bool, flag("Replace the file if it exists.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Predict the class of nodes by a trained model and write a table: id, class, and the probability of each class.

    For example: gcond predict model.safetensors --on cora -o predictions.parquet

    Those without a label: gcond predict model.safetensors --on my-graph --part unlabelled -o predictions.csv
    """
    voice = common.start()
    from gcond.condensed.origin import same_source, source_difference
    from gcond.reports.tables import count, facts, percent, seconds
    from gcond.training.predictions import check_table_name
    from gcond.training.trained_model import load_model

    check_table_name(out)
    for other in (on, str(model), str(nodes or model)):
        check_new_file(out, other, force)
    if nodes is not None and part != "all":
        raise GcondError(f"--nodes names the nodes, and --part {part} does too: leave one out")
    wanted = _listed(nodes) if nodes is not None else part
    trained = load_model(model)
    began = time.perf_counter()
    with voice.progress("reading") as tick:
        graph = trained.read(on, setting=setting, data_dir=common.data)
        say_notes(graph, voice)
        tick("predicting", 0, 1)
        found = trained.predict(graph, wanted, device=common.device, threads=common.threads)
        found.save(out, labels=labels, on_progress=tick)
    spent = time.perf_counter() - began
    accuracy, unknown = _accuracy(found, graph), found.unknown_classes()
    if accuracy and unknown:
        voice.note(_of_unknown_classes(unknown))
    counts = sorted(found.counts().items(), key=lambda each: -each[1])
    shown = [f"{name} ({number:,})" for name, number in counts if number][:6]
    more = sum(1 for _, number in counts if number) - len(shown)
    about = {
        "wrote": str(out),
        "holds": f"{count(len(found), 'node')} of {graph.name}: id, class, the probability of each class",
        "predicted": ", ".join([*shown, *([f"and {more} more classes"] if more else [])]),
        "another graph": source_difference(trained.record, graph, "the model was"),
        "accuracy": ", ".join(f"{percent(share)} % of {each} nodes" for each, share in accuracy.items()),
        "computed on": found.computed_on,
        "time": seconds(spent),
    }
    payload = {
        "out": str(out),
        "model": str(model),
        "source": graph.name,
        "nodes": len(found),
        "classes": found.counts(),
        "accuracy": accuracy,
        "unknown_classes": unknown,
        "computed_on": found.computed_on,
        "setting": graph.setting,
        "same_source": same_source(trained.record, graph),
        "seconds": spent,
    }
    voice.result(payload, facts(about).rich())


def _of_unknown_classes(unknown: Mapping[str, int]) -> str:
    from gcond.reports.tables import count

    nodes, names = sum(unknown.values()), list(unknown)
    listed = ", ".join([*names[:5], *(["…"] if len(names) > 5 else [])])
    of = "a class" if len(names) == 1 else "classes"
    are, they = ("is", "it counts") if nodes == 1 else ("are", "they count")
    return f"{count(nodes, 'labelled node')} {are} of {of} that the model does not know ({listed}): {they} as wrong"


def _listed(path: Path) -> list[str]:
    """The ids in a text file, one in each line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()  # editors on Windows begin a file with a mark
    except FileNotFoundError:
        raise GcondError(f"there is no file '{path}': --nodes takes a text file with one id in each line") from None
    except OSError as error:
        raise GcondError(f"'{path}' cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise GcondError(f"'{path}' is no text: --nodes takes a text file with one id in each line") from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise GcondError(f"'{path}' names no node: --nodes takes a text file with one id in each line")
    return ids


def _accuracy(found: Predictions, graph: SourceGraph) -> dict[str, float]:
    """The share of each part's nodes that is predicted right, where there are labels to compare with."""
    from gcond.graph.source_graph import PARTS

    shares = {part: found.accuracy(graph.mask(part)[found.nodes]) for part in PARTS}
    return {part: share for part, share in shares.items() if share is not None}
