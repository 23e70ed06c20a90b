"""An audit of condensed graphs: what noise does to them, and what can be told from them about their source."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat

from gcond.condensed import ClassMetrics
from gcond.graph.perturbation import Noise
from gcond.results.failure import Failure
from gcond.results.json_file import marked, read_json, write_json
from gcond.results.quantities import Accuracy, Amount, Count, SettingValue
from gcond.results.source_summary import SourceSummary
from gcond.runtime import notebook

AUDIT = "audit.json"

Stage = Literal["clean", "before", "test"]
"""When noise came in: never, before condensing and training, or when a model that was trained without is tested."""
Space = Literal["features", "propagated"]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Subject:
    """A graph that models were trained on: the whole one, random nodes of it, or a condensed graph that was given."""

    name: str
    """By which the other parts of the audit call it."""
    kind: Literal["whole", "random", "condensed"]
    nodes: Count
    method: str = ""
    """What made it; empty where that is not known."""
    seed: int | None = None
    sha256: str = ""
    """Of a condensed graph's tensors."""
    repeated: bool = True
    """Whether it could be made again from a noisy source."""


@dataclass(frozen=True)
class NoisyAccuracy:
    """Test accuracy of one model trained on one subject, with noise of one kind or several."""

    subject: str
    model: str
    stage: Stage
    noise: str
    """What was changed: ``edges``, ``features``, ``labels``, several with ``+`` between, or nothing."""
    mean: Accuracy
    """A fraction of the test nodes, all of whose labels are true."""
    std: Amount
    """Sample standard deviation over all ``n`` trainings, on all draws of the noise; 0 for a single one."""
    n: Count
    metrics: ClassMetrics | None = None

    @property
    def spread(self) -> float | None:
        return self.std if self.n > 1 else None


@dataclass(frozen=True)
class Spread:
    """How some numbers are spread: the least, the 5 %, 50 % and 95 % quantiles, and the most."""

    least: FiniteFloat
    low: FiniteFloat
    median: FiniteFloat
    high: FiniteFloat
    most: FiniteFloat


@dataclass(frozen=True)
class Closeness:
    """How near the nodes of a condensed graph are to those of its source, and these to each other.

    Distances are Euclidean; :mod:`gcond.evaluation.audit.closeness` has the definitions.
    """

    subject: str
    space: Space
    """X' against X, or both after two hops on their own edges, which is what a model of two layers sees."""
    nearest: Spread
    """From each condensed node to the nearest source node."""
    between: Spread
    """From source nodes to the nearest other source node."""
    ratio: Spread
    """For each condensed node, the distance to the nearest source node as a share of that to the second nearest: near 0
    it points at one node, near 1 at none."""
    between_ratio: Spread
    """The same from source nodes to the nearest and second nearest of the others."""
    closer: Share
    """The share of condensed nodes that are nearer to a source node than half of the source nodes are to another."""
    copies: Count
    """Condensed nodes that equal a source node in every entry."""
    sampled: Count
    """Source nodes from which ``between`` was measured, to all others."""


@dataclass(frozen=True)
class Membership:
    """How well confidence tells the nodes whose labels were trained on from test nodes, over all runs.

    The score of a node is the probability that a model gives to its label. 0.5 is guessing, 1 is telling all apart.
    Intervals are of 95 % by DeLong's method, over the nodes; runs are averaged.
    """

    subject: str
    model: str
    auc: Share
    low: Share
    high: Share
    std: Amount
    """Sample standard deviation of the AUC over the runs; 0 for a single one."""
    n: Count
    """Runs."""
    members: Count
    """Training nodes that were asked about."""
    others: Count
    """Test nodes."""
    within: Share | None = None
    """The same over pairs of one class alone: classes that are more frequent among training nodes than among test nodes
    do not count as telling them apart. ``None`` where no class has both."""
    within_low: Share | None = None
    within_high: Share | None = None
    above_whole: FiniteFloat | None = None
    """``auc`` less that of training on the whole graph, on the same nodes; ``None`` for that itself."""
    above_whole_low: FiniteFloat | None = None
    above_whole_high: FiniteFloat | None = None


@dataclass(frozen=True)
class Audit:
    """The outcome of :func:`gcond.audit`."""

    source: SourceSummary
    subjects: tuple[Subject, ...]
    noise: Noise
    """Shares that were changed."""
    models: tuple[str, ...]
    seeds: Count
    """Draws of every noise."""
    runs: Count
    """Trainings on each graph."""
    recipe: dict[str, SettingValue] = field(default_factory=dict)
    """Settings of the training that were asked for."""
    accuracies: tuple[NoisyAccuracy, ...] = ()
    closeness: tuple[Closeness, ...] = ()
    membership: tuple[Membership, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out or has to be known, a sentence each."""
    failures: tuple[Failure, ...] = ()
    command: str = ""
    """The command line that made it."""

    def accuracy(self, subject: str, model: str, stage: Stage = "clean", noise: str = "") -> NoisyAccuracy | None:
        """What was measured there, if it was."""
        wanted = (subject, model, stage, noise)
        found = (one for one in self.accuracies if (one.subject, one.model, one.stage, one.noise) == wanted)
        return next(found, None)

    def noises(self, stage: Stage) -> tuple[str, ...]:
        """The kinds of noise that were measured at ``stage``."""
        return tuple(dict.fromkeys(one.noise for one in self.accuracies if one.stage == stage))

    def _repr_html_(self) -> str:
        """For notebooks; the report's page has all of it."""
        rows = [
            (one.subject, one.model, one.stage, one.noise or "none", notebook.percent(one.mean), one.n)
            for one in self.accuracies
        ]
        table = notebook.grid(
            f"Audit on {self.source.name}", ("trained on", "model", "noise", "in", "test accuracy", "n"), rows
        )
        return table + "".join(f"<div>{notebook.text(sentence)}</div>" for sentence in self.notes)

    def to_json(self) -> dict[str, Any]:
        return marked("audit", self)

    def save(self, folder: Path) -> Path:
        return write_json(folder / AUDIT, self.to_json())

    @classmethod
    def load(cls, folder: Path) -> Audit:
        return read_json(folder / AUDIT, cls, "audit")
