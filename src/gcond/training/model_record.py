"""How a trained model came to be, in its file beside the weights."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict  # pydantic takes the standard one from Python 3.12 on

from gcond.condensed.provenance import Count, Origin
from gcond.config.recorded import read_record
from gcond.graph import Setting

Fraction = Annotated[float, Field(ge=0, le=1)]


class TrainedOn(TypedDict, total=False):
    """The graph that was trained on."""

    method: str | None
    """The method that made it; ``None`` where that is not known, and ``whole`` for the source itself."""
    nodes: Count
    sha256: str
    seed: int | None
    """Of the condensation."""


@dataclass(frozen=True)
class ModelRecord:
    """A training: enough to use its model, to do it again, and to judge it."""

    num_features: Annotated[int, Field(ge=1, lt=2**31)]
    num_classes: Annotated[int, Field(ge=1, le=10**6)]
    setting: Setting
    transform: dict[str, Any]
    """The feature transform of the source, with its statistics: new data is treated alike."""
    recipe: dict[str, Any]
    """The recipe that it was trained by."""
    seed: int
    """Of the training."""
    trained_on: TrainedOn
    source: Origin
    """The graph that it was validated and tested on."""
    class_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    """The source's columns, where each feature was one of its own: another table may have them in another order."""
    directed: bool = False
    """Whether one-way edges of the source stayed one-way."""
    weighted: bool = False
    """Whether edges of the source have weights of their own."""
    structure: str = ""
    """A fingerprint of the source's edges, where features were made from these and mean nothing elsewhere."""
    runs: Annotated[int, Field(ge=1)] = 1
    """Trainings of which this one was the best on validation nodes."""
    sharpness: Annotated[float, Field(gt=0)] = 1.0
    """What scores are multiplied by before they become probabilities; fitted on the source's validation nodes
    (:mod:`gcond.training.temperature`)."""
    epoch: Count = 0
    """The epoch that the weights are of."""
    val_accuracy: Fraction | None = None
    """On the source's validation nodes, by which the epoch was chosen; ``None`` where there are none."""
    test_accuracy: Fraction | None = None
    """On its test nodes, which nothing was chosen by; ``None`` where there are none."""
    cpu_seconds: float = 0.0
    """Of all runs together, validation included."""
    gcond_version: str = ""
    notes: tuple[str, ...] = field(default=())
    """What is not known about the graph that was trained on."""

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: Any) -> ModelRecord:
        """Read what :meth:`to_json` gave; what a later gcond added is passed over."""
        return read_record(cls, values, "training")
