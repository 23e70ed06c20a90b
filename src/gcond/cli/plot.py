"""``gcond plot``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import Parameter

from gcond.cli.common_options import DEFAULTS, Common, whole_number
from gcond.config.registry import suggest
from gcond.errors import GcondError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gcond.cli.voice import Voice

T = TypeVar("T")

OF_A_FILE = ("graph", "embedding", "threshold", "curves", "balance")
# Each is drawn from a file of the run folder, which a command wrote.
OF_A_RUN = {"budget": ("comparison.json", "compare"), "architectures": ("nas.json", "nas")}
KINDS = (*OF_A_FILE, *OF_A_RUN)
# What people may ask for, and what matplotlib could write, but these figures are not tested in.
_OTHER_FORMATS = (".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".bmp")


def command(
    *inputs: Annotated[
        Path, Parameter(name="FILE|RUN", help="Files of `gcond condense`, or run folders of compare or nas.")
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
    runs: Annotated[int, whole_number("How often a GCN is trained at each threshold.")] = 3,
    seed: Annotated[int, whole_number("Of layouts, of t-SNE and of the first training.")] = 0,
    common: Common = DEFAULTS,
) -> None:
    """Draw condensed graphs, and what was measured on them, as PNG or SVG.

    For example: gcond plot cora-gcond-70.safetensors --on cora --kind graph,curves -o figures
    """
    voice = common.start()
    from gcond.reports.figures.style import require

    require()
    if not inputs:
        raise GcondError("gcond plot needs FILE or RUN: give a condensed file or a run folder")
    if runs < 1:
        raise GcondError(f"{runs} runs are too few: use --runs 1 or more")
    kinds = _kinds(kind)
    asked = _Asked(kinds, "all" not in kind.replace(" ", "").split(","), on, delta, runs, seed)
    subjects = [_Subject.at(path) for path in dict.fromkeys(inputs)]
    _check(asked, subjects)
    place = _Place.of(out, format)

    plan = [
        _Planned(subject.path, place.file(subject.stem, name), name, make)
        for subject in subjects
        for name, make in subject.figures(asked, common, voice)
    ]
    _check_targets(plan)

    drawn: list[dict[str, str]] = []
    left_out: list[dict[str, str]] = []
    for planned in plan:
        about = {"kind": planned.kind, "of": str(planned.subject)}
        try:
            figure = planned.make()
        except GcondError as error:
            if asked.by_name:
                raise
            left_out.append(about | {"reason": str(error)})
            voice.note(f"{planned.kind} of {planned.subject.name} is left out: {error}")
            continue
        place.save(figure, planned.target)
        drawn.append(about | {"out": str(planned.target)})
    if not drawn:
        reason = left_out[0]["reason"] if left_out else "it holds neither comparison.json nor nas.json"
        raise GcondError(f"nothing of '{subjects[0].path}' can be drawn: {reason}")
    voice.result({"figures": drawn, "left_out": left_out}, "\n".join(figure["out"] for figure in drawn))


@dataclass(frozen=True)
class _Asked:
    """What is to be drawn, and how."""

    kinds: tuple[str, ...]
    by_name: bool
    """Whether each kind was named, so that one that cannot be drawn is an error."""
    on: str | None
    delta: float | None
    runs: int
    seed: int


@dataclass(frozen=True)
class _Planned:
    """A figure to be made."""

    subject: Path
    target: Path
    kind: str
    make: Callable[[], Figure]


@dataclass(frozen=True)
class _Subject:
    """A condensed file or a run folder."""

    path: Path
    is_run: bool

    @classmethod
    def at(cls, path: Path) -> _Subject:
        if not path.exists():
            raise GcondError(f"there is no file or folder '{path}': give a condensed file or a run folder")
        return cls(path, path.is_dir())

    @property
    def stem(self) -> str:
        return (self.path.resolve().name if self.is_run else self.path.stem) or "run"

    def figures(self, asked: _Asked, common: Common, voice: Voice) -> list[tuple[str, Callable[[], Figure]]]:
        """Name and maker of every figure to draw of this."""
        if self.is_run:
            return _of_run(self.path, asked)
        return _of_file(self.path, asked, common, voice)


@dataclass(frozen=True)
class _Place:
    """Where figures go: one file, or a folder in which each gets a name."""

    out: Path
    is_file: bool
    format: str

    @classmethod
    def of(cls, out: Path | None, format: str | None) -> _Place:
        from gcond.reports.figures import FORMATS

        if out is None:
            return cls(Path(), False, format or FORMATS[0])
        suffix = out.suffix.lower()
        if out.is_dir():
            return cls(out, False, format or FORMATS[0])
        if suffix.removeprefix(".") in FORMATS:
            if format is not None and suffix != f".{format}":
                raise GcondError(f"'{out}' and --format {format} contradict each other: leave --format out")
            return cls(out, True, suffix.removeprefix("."))
        if suffix in _OTHER_FORMATS or out.exists():
            raise GcondError(f"'{out}' is no place for figures: give a folder, or a name that ends in .png or .svg")
        return cls(out, False, format or FORMATS[0])

    def file(self, stem: str, kind: str) -> Path:
        return self.out if self.is_file else self.out / f"{stem}-{kind}.{self.format}"

    def save(self, figure: Figure, target: Path) -> None:
        from gcond.reports.figures import save_figure
        from gcond.runtime.files import unwritable

        if not self.is_file:
            try:
                self.out.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise unwritable(target, error) from None
        save_figure(figure, target)


def _kinds(text: str) -> tuple[str, ...]:
    """``graph,curves`` or ``all`` as kinds that exist, each once."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise GcondError(f"--kind names no figure: choose among {', '.join(KINDS)}, or all")
    for name in names:
        if name not in (*KINDS, "all"):
            raise GcondError(
                f"there is no figure '{name}'{suggest(name, KINDS)}: choose among {', '.join(KINDS)}, or all"
            )
    return KINDS if "all" in names else names


def _check(asked: _Asked, subjects: list[_Subject]) -> None:
    """Refuse what cannot come to anything before work starts."""
    runs = any(subject.is_run for subject in subjects)
    files = any(not subject.is_run for subject in subjects)
    if asked.by_name:
        for name in asked.kinds:
            if name in OF_A_FILE and not files:
                raise GcondError(f"figure '{name}' is of a condensed graph, and '{subjects[0].path}' is a run folder")
            if name in OF_A_RUN and not runs:
                raise GcondError(
                    f"figure '{name}' is of a run, and '{subjects[0].path}' is a file: give a folder with "
                    f"{OF_A_RUN[name][0]} in it"
                )
    if asked.by_name and "threshold" in asked.kinds and asked.on is None:
        raise GcondError("figure 'threshold' trains on the graph and tests on its source: add --on SOURCE")
    if asked.delta is not None and ("graph" not in asked.kinds or not files):
        raise GcondError("--delta says how to draw the graph: it goes with --kind graph and a condensed file")


def _check_targets(plan: list[_Planned]) -> None:
    """Refuse to write two figures to one file, before any is made."""
    taken: dict[Path, Path] = {}
    for planned in plan:
        other = taken.setdefault(planned.target, planned.subject)
        if other != planned.subject:
            raise GcondError(
                f"'{other}' and '{planned.subject}' would both be written to '{planned.target}': "
                "plot them one by one, each with its own -o"
            )
    if len(taken) < len(plan):
        raise GcondError(f"'{plan[0].target}' has room for one figure: name one with --kind, or give a folder with -o")


def _of_run(path: Path, asked: _Asked) -> list[tuple[str, Callable[[], Figure]]]:
    from gcond.results import RunFolder

    folder = RunFolder(path)

    def budget() -> Figure:
        from gcond.reports.figures.accuracy_by_budget import budget_figure

        return budget_figure(_there(folder.comparison(), path, "budget"))

    def architectures() -> Figure:
        from gcond.reports.figures.architecture_agreement import architectures_figure

        return architectures_figure(_there(folder.search(), path, "architectures"))

    makers = {"budget": budget, "architectures": architectures}
    wanted = [name for name in OF_A_RUN if name in asked.kinds]
    # A run is of compare or of nas: that it lacks the other's file is nothing to speak of.
    return [(name, makers[name]) for name in wanted if asked.by_name or (path / OF_A_RUN[name][0]).exists()]


def _there(found: T | None, path: Path, kind: str) -> T:
    if found is None:
        file, maker = OF_A_RUN[kind]
        raise GcondError(f"'{path}' has no {file}: give the folder of a gcond {maker}")
    return found


def _of_file(path: Path, asked: _Asked, common: Common, voice: Voice) -> list[tuple[str, Callable[[], Figure]]]:
    from gcond.condensed import CondensedGraph
    from gcond.reports.display_names import with_class_names

    small = CondensedGraph.load(path)
    source = None
    if asked.on is not None:
        source, _ = common.load_origin(small, asked.on, voice)
        small = with_class_names(small, source.class_names)

    def graph() -> Figure:
        from gcond.reports.figures.graph_drawing import graph_figure

        return graph_figure(small, delta=asked.delta, seed=asked.seed)

    def embedding() -> Figure:
        from gcond.reports.figures.feature_map import embedding_figure

        with voice.progress("t-SNE"):
            return embedding_figure(small, source, seed=asked.seed)

    def threshold() -> Figure:
        from gcond.evaluation.thresholds import threshold_sweep
        from gcond.reports.figures.accuracy_by_threshold import threshold_figure

        if source is None:
            raise GcondError("it trains on the graph and tests on its source: add --on SOURCE")
        with voice.progress("training") as tick:
            points = threshold_sweep(
                small, source, runs=asked.runs, seed=asked.seed, device=common.device, on_progress=tick
            )
        return threshold_figure(points, small=small)

    def curves() -> Figure:
        from gcond.reports.figures.learning_curves import curves_figure

        return curves_figure(small)

    def balance() -> Figure:
        from gcond.reports.figures.class_balance import balance_figure

        return balance_figure(small, source.class_counts().tolist() if source is not None else None)

    makers = {"graph": graph, "embedding": embedding, "threshold": threshold, "curves": curves, "balance": balance}
    return [(name, makers[name]) for name in OF_A_FILE if name in asked.kinds]
