"""The options of every command, and how each of them starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import CoercionError, Group, Parameter, Token

from gcond.cli.output import Voice
from gcond.cli.translation import in_options
from gcond.config.metric import Metric
from gcond.errors import GcondError
from gcond.graph import Setting
from gcond.graph.feature_kinds import MEANINGS, FeatureChoice

if TYPE_CHECKING:
    from gcond.condensed import CondensedGraph
    from gcond.graph import SourceGraph

_GROUP = Group("Options of every command", sort_key=9)


def flag(text: str, **details: Any) -> Parameter:
    """A switch that is off unless given, without a ``--no-`` twin."""
    return Parameter(help=text, negative=(), show_default=False, **details)


def whole_number(text: str, *, least: int | None = None, **details: Any) -> Parameter:
    """An integer, read strictly: 7.5 is refused, where the parser's own reading would round it, and what is too few."""

    def read(_: type, tokens: Sequence[Token]) -> int:
        option, value = tokens[0].keyword or "", tokens[0].value
        try:
            number = int(value)
        except ValueError:
            raise CoercionError(token=tokens[0], target_type=int) from None
        if least is not None and number < least:
            raise GcondError(f"{number} {option.lstrip('-')} are too few: use {option} {least} or more")
        return number

    return Parameter(help=text, converter=read, **details)


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """The options of every command."""

    json: Annotated[bool, flag("Print one JSON object on stdout and nothing else there.", group=_GROUP)] = False
    quiet: Annotated[bool, flag("No notes and no progress on stderr, only warnings.", alias="-q", group=_GROUP)] = False
    device: Annotated[str, Parameter(help="Where to compute: auto, cpu or cuda:0.", group=_GROUP)] = "auto"
    threads: Annotated[
        int | None,
        whole_number("CPU threads to use; as many as the work deserves if not given.", group=_GROUP),
    ] = None
    data: Annotated[
        Path | None, Parameter(help="Folder with raw data sets; else $GCOND_DATA, then the cache.", group=_GROUP)
    ] = None

    def start(self) -> Voice:
        """Refuse unusable options before any work, apply the others, and say how to speak."""
        from gcond.runtime.device import check_device
        from gcond.runtime.memory import reuse_memory
        from gcond.runtime.threads import cores, use_threads

        use_threads(self.threads)
        check_device(self.device)
        reuse_memory()
        voice = Voice(json=self.json, quiet=self.quiet)
        if self.threads is not None and self.threads > cores():
            voice.warn(
                f"--threads {self.threads} is more than the {cores()} that this process has cores for: they wait"
            )
        return voice

    def load(
        self,
        source: str,
        voice: Voice,
        *,
        setting: Setting | None = None,
        directed: bool = False,
        features: FeatureChoice | None = None,
        memory: str | None = None,
    ) -> SourceGraph:
        """The source graph called ``source``; what was repaired on the way is said.

        A random split always comes from seed 0, so that the seeds of a method and of its evaluation
        never move nodes between training and test.
        """
        from gcond.data import load

        with voice.progress(f"reading {source}"):
            graph = load(
                source, setting=setting, data_dir=self.data, directed=directed, features=features, memory_limit=memory
            )
        say_notes(graph, voice)
        return graph

    def load_origin(
        self,
        small: CondensedGraph,
        source: str,
        voice: Voice,
        *,
        setting: Setting | None = None,
        directed: bool = False,
        features: FeatureChoice | None = None,
        memory: str | None = None,
    ) -> tuple[SourceGraph, bool | None]:
        """The graph ``source`` as ``small`` was made from it, and whether it is that very graph; if not, it is said.

        ``None`` is for a graph of which that is not known.
        """
        from gcond.condensed.origin import load_origin, same_source, source_difference
        from gcond.graph.stored_graph import watched

        check_memory(source, memory)
        made = small.provenance
        with voice.progress(f"reading {source}") as tick:
            graph = load_origin(
                made,
                source,
                setting=setting,
                directed=directed,
                features=features,
                data_dir=self.data,
                memory_limit=memory,
            )
            graph = watched(graph, tick)
            same = same_source(made, graph)
        say_notes(graph, voice)
        for note in small.notes:
            voice.note(f"the condensed graph: {note}")
        if said := source_difference(made, graph):
            voice.warn(said)
        return graph, same


def check_memory(source: str, memory: str | None) -> None:
    """Refuse, before anything is read, a limit within which nothing could be computed on a store that it streams."""
    from gcond.data.store_reading import is_store, open_store
    from gcond.graph.stored_inputs import require_column
    from gcond.runtime.memory import parse_bytes

    path = Path(source).expanduser()
    if memory is None or not is_store(path):
        return
    stored, limit = open_store(path), parse_bytes(memory)
    if stored.memory_when_loaded > limit:
        require_column(stored.num_nodes, limit)


def say_notes(graph: SourceGraph, voice: Voice) -> None:
    """What was decided or repaired when the graph was read."""
    for note in graph.notes:
        voice.note(f"{graph.name}: {in_options(note, ['--features'])}")


DEFAULTS = Common()

Source = Annotated[str, Parameter(help="A name from `gcond datasets`, or the path of a graph.")]
SettingOption = Annotated[
    Setting | None,
    Parameter(help="How the graph is used; the data set's own way if not given."),
]
DirectedOption = Annotated[bool, flag("Keep one-way edges one-way.")]
FeaturesOption = Annotated[
    FeatureChoice | None,
    Parameter(
        help="The transform of the features; if not given, the data set's own, and auto for a folder or .npz of yours: "
        + "; ".join(f"{kind}, {meaning}" for kind, meaning in MEANINGS.items())
        + "."
    ),
]
KeepDigestsOption = Annotated[
    bool, flag("Keep the digests of the source's nodes, by which `gcond update` finds them and says what changed.")
]
MetricOption = Annotated[
    Metric | None,
    Parameter(help="What is best on the validation nodes, wherever they choose; accuracy if not given."),
]
SetOption = Annotated[
    tuple[str, ...],
    Parameter(name="--set", consume_multiple=(1, None), negative=(), show_default=False, metavar="KEY=VALUE"),
]


def file_stem(graph: SourceGraph) -> str:
    """The graph's name for a file; letters that trouble file systems become hyphens."""
    return re.sub(r"[^\w.-]+", "-", graph.name).strip("-.") or "graph"


TYPED: ContextVar[Sequence[str]] = ContextVar("TYPED", default=())
"""The words of the command line that is being run."""
BEGAN: ContextVar[float | None] = ContextVar("BEGAN", default=None)
"""When it began, by the monotonic clock."""


def command_line() -> str:
    """The command as it was typed, for the record."""
    return spelled(*TYPED.get())


def spelled(*words: object) -> str:
    """The command line of gcond's with these words, as a shell reads it: names with spaces are quoted."""
    return shlex.join(["gcond", *map(str, words)])


def can_draw(voice: Voice) -> bool:
    """Whether there is what pictures are drawn with; if not, it is said."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        voice.note("the picture needs matplotlib, so there is none: pip install 'gcond[report]'")
        return False
    return True


def check_tensor_file(out: Path) -> None:
    """Refuse a name that promises another format than safetensors."""
    from gcond.runtime.tensor_file import OTHER_FORMATS

    if out.suffix.lower() in OTHER_FORMATS:
        raise GcondError(f"'{out}' is no name for a condensed graph: end it in .safetensors")


class Reservations(ExitStack):
    """The names of new files that are this command's until it ends."""

    def __init__(self) -> None:
        super().__init__()
        self._names: set[Path] = set()

    def take(self, out: Path) -> None:
        """Reserve ``out``, unless that is done."""
        from gcond.runtime.files import reserved

        if out not in self._names:
            self.enter_context(reserved(out))
            self._names.add(out)


RESERVED: ContextVar[Reservations | None] = ContextVar("RESERVED", default=None)
"""Of the command line that is being run."""


def check_new_file(out: Path, source: str, force: bool) -> None:
    """Refuse a place that cannot be written to, and a file that stands there already, before any work.

    The name is this command's until it ends: of two that would make the same file at once the second is refused.
    """
    from gcond.runtime.files import check_writable, refuse_link

    refuse_link(out)
    check_writable(out)
    if (names := RESERVED.get()) is not None:
        names.take(out)
    if not out.exists():
        return
    if Path(source).exists() and out.samefile(source):
        raise GcondError(f"'{out}' is the source itself: give another name with -o")
    if not force:
        raise GcondError(f"'{out}' exists already: give another name with -o, or --force to replace it")


def check_run_folder(out: Path, result: str) -> None:
    """Refuse a place that the file ``result`` could not be written to before hours are spent on what goes in there."""
    from gcond.runtime.files import check_writable

    if out.exists() and not out.is_dir():
        raise GcondError(f"'{out}' is a file: give a folder with --out")
    check_writable(out / result if out.exists() else out)
