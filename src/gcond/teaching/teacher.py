"""The teacher: labels for all nodes of the training graph, by one way or several together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.graph import LabelledView
from gcond.teaching.calibration import calibrate, sharpen
from gcond.teaching.random_propagation import RandomPropagation
from gcond.teaching.ridge import ridge_scores

TeacherName = Literal["auto", "ridge", "network", "both", "ensemble"]

AFFORDABLE = 5e11
"""Multiply-adds for which ``auto`` asks the network too: a quarter of a minute of one core."""
MEMBERS = 5
"""Networks in an ``ensemble``."""


@dataclass(frozen=True, eq=False)
class Taught:
    """Labels for all nodes of the training graph."""

    labels: Tensor
    """float32 [N, C]: how likely a node is of a class; a labelled node has its own class."""
    choices: dict[str, Any] = field(default_factory=dict)
    """What validation chose, and how well the teacher alone does on validation nodes; for the record."""

    @property
    def classes(self) -> Tensor:
        """int64 [N]: the likeliest class of every node."""
        return self.labels.argmax(1)


@torch.no_grad()
def teach(name: TeacherName, train: LabelledView, val: LabelledView, classes: int, seed: int) -> Taught:
    """Labels for all nodes of ``train.inputs``.

    Where every node is labelled, as in the inductive setting, these are the labels, and there is nothing to teach.
    Otherwise a teacher is fitted on the labelled nodes; unlabelled nodes have a part in it by features and edges.
    Labels of validation nodes choose its settings and are not among what is taught.

    - ``ridge``: closed form, a second or less (:func:`gcond.teaching.ridge.ridge_scores`);
    - ``network``: random propagation with consistency (:class:`gcond.teaching.random_propagation.RandomPropagation`);
    - ``both``: the two, their probabilities multiplied;
    - ``ensemble``: the ridge and :data:`MEMBERS` networks over two reaches, for those who have time;
    ``auto`` is for those who can choose between several (:func:`candidates`).

    ``val`` is of the same graph as ``train``, or, where every node is labelled, not looked at.
    """
    own = F.one_hot(train.y, classes).float()
    if len(train.nodes) == train.inputs.num_nodes:
        labels = torch.empty_like(own)
        labels[train.nodes] = own
        return Taught(labels, {"teacher": "the labels themselves"})
    if name == "auto":
        raise ValueError("auto stands for several teachers: ask for one of its candidates")
    choices: dict[str, Any] = {"teacher": name}
    voices = []
    if name != "network":
        ridge = ridge_scores(train, val, classes, seed)
        choices |= {"penalty": ridge.penalty, "own_share": ridge.own_share}
        voices.append(sharpen(ridge.scores, val).probabilities)
    networks = {"ridge": [], "network": [4], "both": [4], "ensemble": [4, 8, 4, 8, 4][:MEMBERS]}[name]
    for place, hops in enumerate(networks):
        member = RandomPropagation(hops=hops).log_probabilities(train, val, classes, seed + place)
        voices.append(sharpen(member, val).probabilities)
    # Each is sharpened before, so that none drowns the others, and all together after: those that agree are surer.
    together = torch.stack(voices).clamp(min=1e-9).log().mean(0)
    said = calibrate(together, train, val)
    choices |= {"sharpness": said.sharpness, "prior": said.prior}
    labels = said.probabilities.clone()
    if len(val.nodes):
        choices["val_accuracy"] = float((labels[val.nodes].argmax(1) == val.y).double().mean())
    labels[train.nodes] = own
    return Taught(labels, choices)


def candidates(name: TeacherName, train: LabelledView, val: LabelledView) -> list[TeacherName]:
    """The teachers that ``name`` stands for, the simplest first.

    ``auto`` is the ridge, and the network where it costs a quarter of a minute at most and there are validation nodes
    to choose by; where every node is labelled there is nothing to choose.
    """
    if name != "auto":
        return [name]
    choice = (
        len(val.nodes) > 0
        and len(train.nodes) < train.inputs.num_nodes
        and RandomPropagation().work(train) <= AFFORDABLE
    )
    return ["ridge", "network"] if choice else ["ridge"]
