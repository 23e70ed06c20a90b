"""``gcond plot``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import Parameter

from gcond.cli.assignments import parse_list
from gcond.cli.common_options import DEFAULTS, Common, check_new_file, flag, whole_number
from gcond.config.registry import resolve
from gcond.errors import GcondError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gcond.cli.output import Voice
    from gcond.condensed import CondensedGraph
    from gcond.graph import SourceGraph

T = TypeVar("T")

OF_A_FILE = ("graph", "embedding", "threshold", "curves", "balance")
# Each is drawn from a file of the run folder, which a command wrote.
OF_A_RUN = {
    "budget": ("comparison.json", "compare"),
    "architectures": ("nas.json", "nas"),
    "tuning": ("tune.json", "tune"),
}
KINDS = (*OF_A_FILE, *OF_A_RUN)
# What people may ask for, and what matplotlib could write, but these figures are not tested in.
_OTHER_FORMATS = (".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".bmp")


def command(
    *inputs: Annotated[
        Path, Parameter(name="FILE|RUN", help="Files of `gcond condense`, or run folders of compare, nas or tune.")
    ],
    kind: Annotated[str, Parameter(help=f"Some of {','.join(KINDS)}, or all that can be drawn.")] = "all",
    on: Annotated[str | None, Parameter(help="The source graph; `threshold` needs it.")] = None,
    out: Annotated[
        Path | None, Parameter(alias="-o", help="A folder, or FILE.png or FILE.svg for one figure; here if not given.")
    ] = None,
    format: Annotated[Literal["png", "svg"] | None, Parameter(help="png if neither this nor -o says.")] = None,
    delta: Annotated[
        float | None, Parameter(help="Draw the graph with A' thresholded here, not as it was saved.")
    ] = None,
    runs: Annotated[int, whole_number("How often a GCN is trained at each threshold.", least=1)] = 3,
    seed: Annotated[int, whole_number("Of layouts, of t-SNE and of the first training.")] = 0,
    force: Annotated[
        bool, flag("Replace the one figure that -o names if it exists; those in a folder always are.")
    ] = False,
    common: Common = DEFAULTS,
) -> None:
    """Draw condensed graphs, and what was measured on them, as PNG or SVG.

    For example: gcond plot cora-gcond-70.safetensors --on cora --kind graph,curves -o figures
    """
    voice = common.start()
    from gcond.reports.figures import save_figure
    from gcond.reports.figures.style import require
    from gcond.runtime.files import make_folder

    require()
    if not inputs:
        raise GcondError("gcond plot needs FILE or RUN: give a condensed file or a run folder")
    named = parse_list(kind, "--kind", "figure", (*KINDS, "all"))
    for name in named:
        resolve("figure", name, dict.fromkeys((*KINDS, "all")))
    by_name = "all" not in named
    asked = _Asked(tuple(named) if by_name else KINDS, by_name, on, delta, runs, seed, common, voice)
    subjects = list(dict.fromkeys(inputs))
    _check(asked, subjects)
    place = _Place.of(out or Path(), format)
    plan = [
        (path, name, place.file(path, name), make)
        for path in subjects
        for name, make in (_of_run(path, asked) if path.is_dir() else _of_file(path, asked))
    ]
    _check_targets([(path, target) for path, _, target, _ in plan])
    if place.is_file:
        check_new_file(place.out, "", force)

    drawn: list[dict[str, str]] = []
    left_out: list[dict[str, str]] = []
    for path, name, target, make in plan:
        about = {"kind": name, "of": str(path)}
        try:
            figure = make()
        except GcondError as error:
            if by_name:
                raise
            left_out.append(about | {"reason": str(error)})
            voice.note(f"{name} of {path.name} is left out: {error}")
            continue
        if not place.is_file:
            make_folder(place.out)
        save_figure(figure, target)
        drawn.append(about | {"out": str(target)})
    if not drawn:
        reason = left_out[0]["reason"] if left_out else "it holds neither comparison.json nor nas.json nor tune.json"
        raise GcondError(f"nothing of '{subjects[0]}' can be drawn: {reason}")
    voice.result({"figures": drawn, "left_out": left_out}, "\n".join(figure["out"] for figure in drawn))


@dataclass(frozen=True)
class _Asked:
    """The figures to be drawn, and how."""

    kinds: tuple[str, ...]
    by_name: bool
    """Whether each kind was named, so that one that cannot be drawn is an error."""
    on: str | None
    delta: float | None
    runs: int
    seed: int
    common: Common
    voice: Voice


@dataclass(frozen=True)
class _Place:
    """Where figures go: one file, or a folder in which each gets a name."""

    out: Path
    is_file: bool
    format: str

    @classmethod
    def of(cls, out: Path, format: str | None) -> _Place:
        from gcond.reports.figures import FORMATS

        suffix = "" if out.is_dir() else out.suffix.lower()
        if suffix.removeprefix(".") in FORMATS:
            if format is not None and suffix != f".{format}":
                raise GcondError(f"'{out}' and --format {format} contradict each other: leave --format out")
            return cls(out, True, suffix.removeprefix("."))
        if suffix in _OTHER_FORMATS or (out.exists() and not out.is_dir()):
            raise GcondError(f"'{out}' is no place for figures: give a folder, or a name that ends in .png or .svg")
        return cls(out, False, format or FORMATS[0])

    def file(self, subject: Path, kind: str) -> Path:
        stem = (subject.resolve().name if subject.is_dir() else subject.stem) or "run"
        return self.out if self.is_file else self.out / f"{stem}-{kind}.{self.format}"


def _check(asked: _Asked, subjects: Sequence[Path]) -> None:
    """Refuse what cannot come to anything before work starts."""
    for path in subjects:
        if not path.exists():
            raise GcondError(f"there is no file or folder '{path}': give a condensed file or a run folder")
    runs = any(path.is_dir() for path in subjects)
    files = not all(path.is_dir() for path in subjects)
    for name in asked.kinds if asked.by_name else ():
        if name in OF_A_FILE and not files:
            raise GcondError(f"figure '{name}' is of a condensed graph, and '{subjects[0]}' is a run folder")
        if name in OF_A_RUN and not runs:
            raise GcondError(
                f"figure '{name}' is of a run, and '{subjects[0]}' is a file: give a folder with "
                f"{OF_A_RUN[name][0]} in it"
            )
        if name == "threshold" and asked.on is None:
            raise GcondError("figure 'threshold' trains on the graph and tests on its source: add --on SOURCE")
    if asked.delta is not None and ("graph" not in asked.kinds or not files):
        raise GcondError("--delta says how to draw the graph: it goes with --kind graph and a condensed file")


def _check_targets(plan: Sequence[tuple[Path, Path]]) -> None:
    """Refuse to write two figures to one file, before any is made."""
    taken: dict[Path, Path] = {}
    for subject, target in plan:
        other = taken.setdefault(target, subject)
        if other != subject:
            raise GcondError(
                f"'{other}' and '{subject}' would both be written to '{target}': "
                "plot them one by one, each with its own -o"
            )
    if len(taken) < len(plan):
        raise GcondError(f"'{plan[0][1]}' has room for one figure: name one with --kind, or give a folder with -o")


def _of_run(path: Path, asked: _Asked) -> list[tuple[str, Callable[[], Figure]]]:
    """Name and maker of every figure to draw of a run folder."""
    # A run is of compare, of nas or of tune: that it lacks the others' files is nothing to speak of.
    return [
        (name, partial(_draw_run, name, path))
        for name, (file, _) in OF_A_RUN.items()
        if name in asked.kinds and (asked.by_name or (path / file).exists())
    ]


def _draw_run(kind: str, path: Path) -> Figure:
    from gcond.reports.figures.accuracy_by_budget import budget_figure
    from gcond.reports.figures.architecture_agreement import architectures_figure
    from gcond.reports.figures.tuning_progress import tuning_figure
    from gcond.results import RunFolder

    def there(found: T | None) -> T:
        if found is None:
            file, maker = OF_A_RUN[kind]
            raise GcondError(f"'{path}' has no {file}: give the folder of a gcond {maker}")
        return found

    folder = RunFolder(path)
    if kind == "budget":
        return budget_figure(there(folder.comparison()))
    if kind == "architectures":
        return architectures_figure(there(folder.search()))
    return tuning_figure(there(folder.tuning()))


def _of_file(path: Path, asked: _Asked) -> list[tuple[str, Callable[[], Figure]]]:
    """Name and maker of every figure to draw of a condensed file."""
    from gcond.condensed import CondensedGraph
    from gcond.reports.display_names import with_class_names

    small = CondensedGraph.load(path)
    source = None
    if asked.on is not None:
        source, _ = asked.common.load_origin(small, asked.on, asked.voice)
        small = with_class_names(small, source.class_names)
    return [(name, partial(_draw_file, name, small, source, asked)) for name in OF_A_FILE if name in asked.kinds]


def _draw_file(kind: str, small: CondensedGraph, source: SourceGraph | None, asked: _Asked) -> Figure:
    from gcond.evaluation.threshold_sweep import threshold_sweep
    from gcond.reports.figures.accuracy_by_threshold import threshold_figure
    from gcond.reports.figures.class_balance import balance_figure
    from gcond.reports.figures.feature_map import embedding_figure
    from gcond.reports.figures.graph_drawing import graph_figure
    from gcond.reports.figures.learning_curves import curves_figure

    if kind == "graph":
        return graph_figure(small, delta=asked.delta, seed=asked.seed)
    if kind == "embedding":
        with asked.voice.progress("t-SNE"):
            return embedding_figure(small, source, seed=asked.seed)
    if kind == "curves":
        return curves_figure(small)
    if kind == "balance":
        return balance_figure(small, source.class_counts().tolist() if source is not None else None)
    if source is None:
        raise GcondError("it trains on the graph and tests on its source: add --on SOURCE")
    runs, seed, device = asked.runs, asked.seed, asked.common.device
    with asked.voice.progress("training") as tick:
        points = threshold_sweep(small, source, runs=runs, seed=seed, device=device, on_progress=tick)
    return threshold_figure(points, small=small)
