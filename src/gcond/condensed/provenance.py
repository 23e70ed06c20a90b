"""Provenance: how a condensed graph came to be, in its file beside the tensors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict  # pydantic takes the standard one from Python 3.12 on

from gcond.condensed.recommendation import Recommendation
from gcond.condensed.score import Score
from gcond.config.metric import Metric
from gcond.config.recorded import read_record
from gcond.graph import Setting

Count = Annotated[int, Field(ge=0, lt=2**63)]


class Size(TypedDict, total=False):
    """The budget in both readings."""

    nodes: Count
    ratio: float


class Origin(TypedDict, total=False):
    """The source graph."""

    name: str
    sha256: str
    nodes: Count
    edges: Count
    features: Count
    bytes: Count


class Cost(TypedDict, total=False):
    """Time and memory that condensing took."""

    wall_seconds: float
    cpu_seconds: float
    peak_rss_mb: float


class Parent(TypedDict, total=False):
    """Provenance of the graph that another one was grown from, but for what both share: source and method."""

    settings: dict[str, Any]
    seed: int
    budget: Size
    cost: Cost
    threads: int
    history: dict[str, list[float]]
    choices: dict[str, Any]
    start: str
    ended: str
    gcond_version: str
    grown_from: str
    parent: Parent


KEPT_EPOCH = "kept_epoch"
"""The name of :attr:`Provenance.kept_epoch` among the choices."""


class Changes(TypedDict, total=False):
    """What changed in a source graph, counted; without digests in the file only its sizes are known."""

    matched_by: Literal["ids", "rows"]
    """How nodes were found again: by their ids, or by their rows, where old nodes come first."""
    nodes_before: Count
    nodes: Count
    nodes_added: Count
    nodes_removed: Count
    edges_before: Count
    edges: Count
    edges_of_added_nodes: Count
    classes_before: Count
    classes: Count
    classes_added: Count
    classes_removed: Count
    compared: Count
    """Nodes that are in both and that condensing saw."""
    features_changed: Count
    """Of these nodes, those with other features."""
    neighbours_changed: Count
    """Of these nodes, those with other edges, also to new nodes."""
    labels_added: Count
    """Nodes that are trained on now and were not, new ones included."""
    labels_removed: Count
    labels_changed: Count
    labels_gone: Count
    """Of nodes that are no longer there."""
    synthetic_kept: Count
    """Synthetic nodes that stand for the same source nodes as before."""
    synthetic_changed: Count
    """Those that stand for others now, besides some of the same."""
    synthetic_added: Count
    synthetic_removed: Count


class Update(TypedDict, total=False):
    """One update: the source before it, what it found changed, and what it took."""

    updated_from: str
    """sha256 of the condensed graph before."""
    source: Origin
    """The source before."""
    budget: Size
    """Of the graph before, as its seed and the version of gcond are."""
    seed: int
    gcond_version: str
    cost: Cost
    """Of this update alone; the provenance has that of everything."""
    changes: Changes


class TriedCut(TypedDict, total=False):
    """A cut of the ladder."""

    entries: Count | None
    bits: Count
    step: float
    """Instead of bits."""
    bytes: Count
    val_accuracy: float
    changed: float
    """Share of the source's nodes that models put into another class than those of the uncut graph did."""


class CompactionRecord(TypedDict, total=False):
    """What a compaction cut, and how that was chosen; without a ladder it was said by a person."""

    compacted_from: str
    """sha256 of the graph before."""
    entries: Count | None
    bits: Count
    step: float
    """Instead of bits."""
    bytes_before: Count
    bytes_after: Count
    val_accuracy: float
    """Mean validation accuracy before, a fraction; or of ``metric``, where that is there."""
    metric: Metric
    """What stands in the place of accuracy; absent where nothing does."""
    tolerance: float
    runs: Count
    """Trainings for each accuracy."""
    ladder: list[TriedCut]
    """All that were tried, from strong to weak."""
    start: CompactionRecord
    """The choice of entries on what a learned graph started from."""
    ended: str
    """Why not all cuts were tried that were due; absent where they were."""


@dataclass(frozen=True)
class Provenance:
    """Origin of a condensed graph: enough to make it again and to judge it."""

    method: str
    settings: dict[str, Any]
    """Every setting of the method, defaults included."""
    seed: int
    budget: Size
    setting: Setting
    source: Origin
    transform: dict[str, Any]
    """The feature transform of the source, with its statistics."""
    num_classes: int
    class_names: tuple[str, ...] = ()
    directed: bool = False
    """Whether one-way edges of the source stayed one-way."""
    cost: Cost = field(default_factory=Cost)
    threads: Count = 0
    """CPU threads that it was computed with, by which large sums round differently; 0 where the file does not say."""
    history: dict[str, list[float]] = field(default_factory=dict)
    """Mean loss of each epoch and every validation probe, for learned methods."""
    choices: dict[str, Any] = field(default_factory=dict)
    """What validation, or a rule, decided on the way: a teacher's settings, for example."""
    scores: tuple[Score, ...] = ()
    """Scores that evaluation measured, one entry for each architecture, recipe and graph it was tested on."""
    recommendations: tuple[Recommendation, ...] = ()
    """The recipe that fits, for each model that one was looked for."""
    gcond_version: str = ""
    start: str = ""
    """Start of X', for methods that choose that themselves."""
    ended: str = ""
    """Why learning ended; nothing for methods that do not learn, and in files that do not say."""
    grown_from: str = ""
    """sha256 of the condensed graph that this one was grown from, if it was; seed and history are of the growth."""
    compaction: CompactionRecord = field(default_factory=CompactionRecord)
    """What was cut to make it compact, if it was."""
    updates: tuple[Update, ...] = ()
    """The updates that followed the source to what it is now, the latest last."""
    parent: Parent = field(default_factory=Parent)
    """The making of that graph: :meth:`as_parent` of its provenance, with a parent of its own if it was grown too."""

    @property
    def kept_epoch(self) -> int | None:
        """The epoch whose state a method that learns has kept, 0 for its start; ``None`` where nothing was probed."""
        kept = self.choices.get(KEPT_EPOCH)
        return None if kept is None else int(kept)

    @property
    def metric(self) -> str:
        """By which validation chose and probed; accuracy where the method or its version knows no other."""
        return str(self.settings.get("metric", "accuracy"))

    def as_parent(self) -> Parent:
        """Facts of this condensation alone, for the file of what is grown from it."""
        values = self.to_json()
        return cast(Parent, {key: values[key] for key in Parent.__annotations__})

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: Any) -> Provenance:
        """Read what :meth:`to_json` gave; what a later gcond added is passed over."""
        return read_record(cls, values, "provenance")
