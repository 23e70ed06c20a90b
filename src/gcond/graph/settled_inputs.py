"""Inputs as a training sees them: dense features that nothing but weights is ever multiplied by."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from torch import Tensor

from gcond.graph.inputs import Chain, Form, Inputs
from gcond.linalg.dense_products import FixedMatrix
from gcond.linalg.sparse import Adjacency, Matrix

T = TypeVar("T")


class SettledInputs(Inputs):
    """The same graph as ``of`` and all that it has made, with dense features as :class:`FixedMatrix`.

    Their products with weights have one derivative, and a quick one. Where X or A is itself learned, the plain inputs
    are the ones to use.
    """

    def __init__(self, of: Inputs) -> None:
        super().__init__(_fixed(of.x), of.adjacency, loops=of.loops)  # type: ignore[arg-type]  # it multiplies alike
        self._of = of

    def _normalised(self, form: Form) -> Adjacency:
        normalised: Adjacency = getattr(self._of, form)
        return normalised

    def _propagate(self, form: Form, hops: int) -> Matrix | Chain:
        return _fixed(self._of.features(form, hops))  # type: ignore[return-value]

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        return self._of.once(key, make)


def settled(inputs: Inputs) -> SettledInputs:
    """``inputs`` for a training; views that share inputs share what comes of them too."""
    return inputs.once(SettledInputs, lambda: SettledInputs(inputs))


def _fixed(features: Matrix | Chain) -> Matrix | Chain | FixedMatrix:
    return FixedMatrix(features) if isinstance(features, Tensor) else features
