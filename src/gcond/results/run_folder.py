"""The run folder: where condensed graphs, trials and results are kept, all of them of one source graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.results.audit import AUDIT, Audit
from gcond.results.claims import Claims
from gcond.results.comparison import COMPARISON, Comparison
from gcond.results.observation import Observation
from gcond.results.row_log import RowLog
from gcond.results.search import SEARCH, Search
from gcond.results.trial import Timing, Trial
from gcond.results.tuning import TUNING, Tuning
from gcond.runtime.files import check_writable, make_folder


class RunFolder:
    """A folder of results that every command shares: what is in it is not done again.

    ``graphs/`` holds condensed graphs, ``trials.jsonl`` a line per training, ``timings.jsonl`` how long one takes;
    ``comparison.json``, ``nas.json``, ``tune.json`` and ``audit.json`` hold what ``compare``, ``nas``, ``tune`` and
    ``audit`` found, and ``observations.jsonl`` the trainings of the last one. Without a path it is memory alone.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.claims = Claims(self._file(".claims"))

    @cached_property
    def trials(self) -> RowLog[Trial]:
        """Every training, read when it is first asked for."""
        return RowLog(self._file("trials.jsonl"), Trial, "trial")

    @cached_property
    def timings(self) -> RowLog[Timing]:
        """The timings: how long one training takes."""
        return RowLog(self._file("timings.jsonl"), Timing, "timing")

    @cached_property
    def observations(self) -> RowLog[Observation]:
        """The trainings of audits."""
        return RowLog(self._file("observations.jsonl"), Observation, "observation")

    @property
    def graphs(self) -> Path | None:
        """Where condensed graphs are."""
        return self._file("graphs")

    def prepare(self) -> None:
        """Make the folder if it is not there; refuse a place where nothing could be written."""
        if self.path is not None:
            make_folder(self.path)
            check_writable(self.path / "trials.jsonl")

    def graph(self, name: str) -> CondensedGraph | None:
        """The condensed graph kept as ``name``; a file that is damaged is as good as none."""
        if self.graphs is None or not (self.graphs / name).exists():
            return None
        try:
            return CondensedGraph.load(self.graphs / name)
        except GcondError:
            return None

    def keep_graph(self, name: str, small: CondensedGraph) -> None:
        if self.graphs is not None:
            small.save(self.graphs / name)

    def graph_file(self, name: str) -> Path | None:
        """Where the graph is that a :class:`~gcond.results.comparison.Line` calls ``name``; ``None`` if it is gone."""
        if self.path is None:
            return None
        try:
            place = (self.path / name).resolve()
            inside = place.is_relative_to(self.path.resolve())
            there = inside and place.is_file()
        except (OSError, ValueError):  # no file can have such a name
            return None
        if not inside:
            raise GcondError(f"'{self.path / COMPARISON}' names '{name}', which is outside the run")
        return place if there else None

    def comparison(self) -> Comparison | None:
        """The comparison that ``gcond compare`` left here."""
        return Comparison.load(self.path) if self.path is not None and (self.path / COMPARISON).is_file() else None

    def search(self) -> Search | None:
        """The search that ``gcond nas`` left here."""
        return Search.load(self.path) if self.path is not None and (self.path / SEARCH).is_file() else None

    def tuning(self) -> Tuning | None:
        """The search that ``gcond tune`` left here, finished or not."""
        return Tuning.load(self.path) if self.path is not None and (self.path / TUNING).is_file() else None

    def audit(self) -> Audit | None:
        """The audit that ``gcond audit`` left here."""
        return Audit.load(self.path) if self.path is not None and (self.path / AUDIT).is_file() else None

    def check_source(self, source: SourceGraph) -> None:
        """Refuse the folder of another graph."""
        for what, find in _KINDS.items():
            try:
                found = find(self)
            except GcondError:  # damaged: it is written anew
                continue
            if found is not None and found.source.sha256 != source.sha256:
                other = found.source.name
                raise GcondError(f"'{self.path}' holds {what} on another graph, '{other}': give another folder")

    def _file(self, name: str) -> Path | None:
        return None if self.path is None else self.path / name


_KINDS: dict[str, Callable[[RunFolder], Comparison | Search | Tuning | Audit | None]] = {
    "a comparison": RunFolder.comparison,
    "a search": RunFolder.search,
    "a search for hyper-parameters": RunFolder.tuning,
    "an audit": RunFolder.audit,
}
