"""The teacher: labels for all nodes of the training graph, by one way or several together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from pydantic import BeforeValidator
from torch import Tensor

from gcond.config.metric import Metric
from gcond.errors import GcondError
from gcond.graph import LabelledView
from gcond.linalg.tall import Tall, map_rows, row_blocks
from gcond.teaching.calibration import calibrate, sharpen
from gcond.teaching.random_propagation import RandomPropagation
from gcond.teaching.ridge import ridge_scores
from gcond.teaching.stored_network import in_memory

TeacherName: TypeAlias = Annotated[
    Literal["ridge", "network", "both", "ensemble"],
    BeforeValidator(lambda name: "ridge" if name == "auto" else name),  # files from when there was a choice say so
]

REACHES: Mapping[str, tuple[int, ...]] = {"ridge": (), "network": (4,), "both": (4,), "ensemble": (4, 8, 4, 8, 4)}
"""The hops of every network that a teacher has beside the ridge."""


@dataclass(frozen=True, eq=False)
class Taught:
    """Labels for all nodes of the training graph."""

    labels: Tall
    """float32 [N, C]: how likely a node is of a class; a labelled node has its own class."""
    choices: dict[str, Any] = field(default_factory=dict)
    """What validation chose, and how well the teacher alone does on validation nodes; for the record."""
    importance: Tensor | None = None
    """float32 [C]: what a validation node counts by its class, so that they stand for all nodes; ``None`` where they
    count the same."""
    frequencies: Tensor | None = None
    """float32 [C]: the classes' shares among all nodes, where they were estimated."""

    @cached_property
    def classes(self) -> Tensor:
        """int64 [N]: the likeliest class of every node."""
        return torch.cat([rows.argmax(1) for _, rows in row_blocks(self.labels)])


@torch.no_grad()
def teach(
    name: TeacherName,
    train: LabelledView,
    val: LabelledView,
    classes: int,
    seed: int,
    *,
    metric: Metric = "accuracy",
    before: Mapping[str, Any] | None = None,
) -> Taught:
    """Labels for all nodes of ``train.inputs``.

    Where every node is labelled, as in the inductive setting, these are the labels, and there is nothing to teach.
    Otherwise a teacher is fitted on the labelled nodes; unlabelled nodes have a part in it by features and edges.
    Labels of validation nodes choose its settings, by ``metric``, and are not among what is taught.

    - ``ridge``: closed form, a second or less (:func:`gcond.teaching.ridge.ridge_scores`), and no worse than a network
      on the graphs of docs/clusters.md;
    - ``network``: random propagation with consistency (:class:`gcond.teaching.random_propagation.RandomPropagation`);
    - ``both``: the two, their probabilities multiplied;
    - ``ensemble``: the ridge and five networks over two reaches, for those who have time.

    ``val`` is of the same graph as ``train``, or, where every node is labelled, not looked at. ``before`` is what
    :func:`~gcond.teaching.ridge.ridge_scores` takes.
    """
    own = F.one_hot(train.y, classes).float()
    if len(train.nodes) == train.inputs.num_nodes:
        known = torch.empty_like(own)
        known[train.nodes] = own
        return Taught(known, {"teacher": "the labels themselves"})
    if name not in REACHES:
        raise GcondError(f"there is no teacher '{name}': use {', '.join(REACHES)}")
    choices: dict[str, Any] = {}
    if name != "ridge":
        train, val = in_memory(train, val, classes, beside_ridge=name != "network")
    voices: list[Tall] = []
    if name != "network":
        ridge = ridge_scores(train, val, classes, seed, metric, before=before)
        choices |= ridge.choices
        voices.append(sharpen(ridge.scores, val, seed).of(ridge.scores))
    for place, hops in enumerate(REACHES[name]):
        member = RandomPropagation(hops=hops).log_probabilities(train, val, classes, seed + place, metric)
        voices.append(sharpen(member, val, seed).of(member))
    return calibrated(name, voices, train, val, seed, found=choices, metric=metric)


def calibrated(
    name: TeacherName,
    voices: Sequence[Tall],
    train: LabelledView,
    val: LabelledView,
    seed: int,
    *,
    found: Mapping[str, Any],
    metric: Metric,
) -> Taught:
    """What the teacher ``name`` says by its ``voices``, probabilities [N, C] each; ``found`` is for the record.

    Each is sharpened before, so that none drowns the others, and all together after: those that agree are surer.
    """
    together = _together(voices, voices[0].shape[1])
    said = calibrate(together, train, val, seed, metric=metric)
    choices = {"teacher": name, **found, "sharpness": said.sharpness, "prior": said.prior}
    labels = said.of(together)
    if len(val.nodes):
        choices["val_accuracy"] = float((labels[val.nodes].argmax(1) == val.y).double().mean())
    return Taught(_with_own(labels, train), choices, said.shift, said.frequencies)


def _together(voices: Sequence[Tall], classes: int) -> Tall:
    """The mean of the logarithms of probabilities [N, C]; several are in memory."""
    if len(voices) == 1:
        return map_rows(voices[0], classes, lambda rows, _: rows.clamp(min=1e-9).log())
    return torch.stack([voice for voice in voices if isinstance(voice, Tensor)]).clamp(min=1e-9).log().mean(0)


def _with_own(labels: Tall, train: LabelledView) -> Tall:
    """``labels`` [N, C] in which labelled nodes have their own class."""
    known = torch.full((train.inputs.num_nodes,), -1, device=train.y.device)
    known[train.nodes] = train.y

    def replaced(rows: Tensor, index: Tensor) -> Tensor:
        own = known[index]
        certain = F.one_hot(own.clamp(min=0), rows.shape[1]).to(rows)
        return torch.where((own >= 0)[:, None], certain, rows)

    return map_rows(labels, labels.shape[1], replaced)
