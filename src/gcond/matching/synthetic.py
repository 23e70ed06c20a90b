"""The condensed graph while it is being learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gcond.condensed import CondensedGraph
from gcond.condensed.compaction import cut
from gcond.graph import Inputs, LabelledView
from gcond.linalg.adam import Adam
from gcond.linalg.sparse import Adjacency, edge_list
from gcond.matching.candidates import Candidates
from gcond.matching.cost_estimate import OVERHEAD
from gcond.matching.structure import Structure
from gcond.models.model import Parameters


@dataclass(frozen=True)
class Rates:
    """Adam's rates."""

    features: float
    structure: float = 1e-4


class NotFiniteError(Exception):
    """A loss or a gradient that is no number: nothing was changed by it."""


@dataclass(eq=False, repr=False)
class Synthetic:
    """X' and Φ, which of them learns at present, and their optimisers."""

    _x: Tensor
    y: Tensor
    """int64 [n], fixed rows first."""
    structure: Structure
    _phi: Parameters
    _rates: Rates
    shown: Tensor | None = field(default=None, kw_only=True)
    """float32 [n, C]: soft labels that the graph is probed and saved with; ``y`` if there are none."""
    fixed: Tensor | None = field(default=None, kw_only=True)
    """Rows [m, d] that stand before X' and never change: the old nodes of a graph that is grown."""
    entries: int | None = field(default=None, kw_only=True)
    """Entries that each row of X' shows, its largest; the others are hidden, and may come forward as these shrink."""
    rate: float = field(default=1.0, init=False)
    """Factor on the learning rates since the start, after numbers that were not finite."""

    def __post_init__(self) -> None:
        self._order = self.y.argsort(stable=True)
        self._features = Adam({"x": self._x}, self._rates.features)
        self._structure = Adam(self._phi, self._rates.structure)
        self._among: Candidates | None = None

    @property
    def x(self) -> Tensor:
        """X' [n, d] as it is seen, fixed rows first."""
        seen = cut(self._x, self.entries)
        return seen if self.fixed is None else torch.cat([self.fixed, seen])

    @property
    def labels(self) -> Tensor:
        """The labels that the graph is probed and saved with: int64 [n], or float32 [n, C]."""
        return self.y if self.shown is None else self.shown

    def to(self, device: torch.device | str) -> Synthetic:
        """A fresh start from the same numbers on ``device``."""
        phi = {key: tensor.to(device) for key, tensor in self._phi.items()}
        fixed = None if self.fixed is None else self.fixed.to(device)
        shown = None if self.shown is None else self.shown.to(device)
        x, y = self._x.to(device), self.y.to(device)
        return Synthetic(x, y, self.structure, phi, self._rates, shown=shown, fixed=fixed, entries=self.entries)

    def learn(self, features: bool, structure: bool) -> None:
        """Say which of X' and Φ the coming updates change; only that is differentiated.

        Where not all pairs of nodes may have an edge, those that may are found anew and stay until this is called
        again: at the beginning of an epoch, so they are the same in a run that is taken up there.
        """
        self._x.requires_grad_(features)
        for tensor in self._phi.values():
            tensor.requires_grad_(structure)
        self._among = self.structure.candidates(self.x)

    def inputs(self) -> Inputs:
        """X' and A' = g_Φ(X') for a model to look at, differentiable in what learns."""
        x = self.x
        return Inputs(x, self.structure.adjacency(self._phi, x, self._among), loops=True)

    @torch.no_grad()
    def settled(self) -> Inputs:
        """X' and A' as they stand: pairs that may have an edge are those of this X', as in the graph that is saved."""
        x = self.x
        return Inputs(x, self.structure.adjacency(self._phi, x), loops=True)

    def labelled(self) -> LabelledView:
        """:meth:`inputs` with the labels, in order of class."""
        return LabelledView(self.inputs(), self._order, self.y[self._order], self._order)

    @torch.no_grad()
    def view(self, ship: Callable[[Adjacency], Adjacency] = lambda adjacency: adjacency) -> LabelledView:
        """The graph as it stands, to train on; ``ship`` is what becomes of A' in the end."""
        inputs = self.settled()
        everyone = torch.arange(len(self.y), device=self.y.device)
        return LabelledView(Inputs(inputs.x, ship(inputs.adjacency), loops=True), everyone, self.labels, everyone)

    @torch.no_grad()
    def finish(self, ship: Callable[[Adjacency], Adjacency]) -> CondensedGraph:
        """The condensed graph, with what its structure was made by."""
        inputs = self.settled()
        assert isinstance(inputs.x, Tensor)
        edge_index, weight = (part.cpu() for part in edge_list(ship(inputs.adjacency)))
        kept = {key: tensor.cpu() for key, tensor in self.structure.finish(self._phi, inputs.x).items()}
        return CondensedGraph(inputs.x.clone().cpu(), self.labels.cpu(), edge_index, weight, structure=kept)

    def work(self) -> float:
        """Of one update, estimated; see :mod:`gcond.matching.cost_estimate`."""
        return self.structure.work(len(self.y), self._x.shape[1]) + OVERHEAD

    def update(self, loss: Tensor) -> None:
        """One step of what learns against ``loss``; if a number is not finite, :class:`NotFiniteError` instead."""
        learning = {key: tensor for key, tensor in self._tensors().items() if tensor.requires_grad}
        found = torch.autograd.grad(loss, list(learning.values()))
        if not all(bool(value.sum().isfinite()) for value in (loss, *found)):
            raise NotFiniteError
        gradients = dict(zip(learning, found, strict=True))
        if "x" in gradients:
            self._features.step({"x": gradients.pop("x")})
        if gradients:
            self._structure.step({key.removeprefix("phi."): value for key, value in gradients.items()})

    def slow_down(self, factor: float) -> None:
        """Multiply the learning rates."""
        self.rate *= factor
        for adam in (self._features, self._structure):
            adam.slow_down(factor)

    def _tensors(self) -> dict[str, Tensor]:
        return {"x": self._x} | {f"phi.{key}": tensor for key, tensor in self._phi.items()}

    def learned(self) -> dict[str, Tensor]:
        """X' and Φ as copies, under the names ``x`` and ``phi.*``."""
        return {key: tensor.detach().clone() for key, tensor in self._tensors().items()}

    def load_learned(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up X' and Φ as :meth:`learned` gave them."""
        with torch.no_grad():
            for key, tensor in self._tensors().items():
                tensor.copy_(tensors[key])

    def snapshot(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, as copies."""
        moments = {"features": self._features.state(), "structure": self._structure.state()}
        return self.learned() | {
            f"adam.{part}.{key}": tensor for part, state in moments.items() for key, tensor in state.items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up what :meth:`snapshot` gave."""
        self.load_learned(tensors)
        for part, adam in (("features", self._features), ("structure", self._structure)):
            prefix = f"adam.{part}."
            adam.load({key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)})
