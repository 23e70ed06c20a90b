"""What every model is: a frozen description with functions, no state.

Parameters are a plain dictionary of tensors, so that a training loop can stack several runs along a
leading axis (one set of weights [R, …] for R seeds), and so that gradients with respect to them can be
taken as a function. Every function here works with and without that axis.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from gcond.inputs import Inputs

Parameters: TypeAlias = dict[str, Tensor]
Dropout: TypeAlias = Callable[[Tensor], Tensor]
Activation = Literal["sigmoid", "tanh", "relu", "linear", "softplus", "leakyrelu", "relu6", "elu"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": F.relu,
    "linear": lambda x: x,
    "softplus": F.softplus,
    "leakyrelu": F.leaky_relu,
    "relu6": F.relu6,
    "elu": F.elu,
}


@dataclass(frozen=True)
class Model(ABC):
    """A node classifier. Subclasses are frozen dataclasses; their fields are the architecture."""

    name: ClassVar[str]
    citation: ClassVar[str]

    layers: int = 2
    """Layers with weights; 1 has no hidden layer."""
    hidden: int = 256
    """Width of every hidden layer."""
    activation: Activation = "relu"
    """Between layers."""

    def __post_init__(self) -> None:
        if self.layers < 1 or self.hidden < 1:
            raise ValueError("layers and hidden must be at least 1")

    @abstractmethod
    def init(self, features: int, classes: int, generator: Generator) -> Parameters:
        """Fresh weights of one run for ``features`` inputs and ``classes`` outputs."""

    @abstractmethod
    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        """Class scores [n, C], or [R, n, C] for stacked parameters."""

    def activate(self, x: Tensor) -> Tensor:
        return ACTIVATIONS[self.activation](x)

    def widths(self, features: int, classes: int) -> list[tuple[int, int]]:
        """(in, out) of every layer."""
        sizes = [features, *[self.hidden] * (self.layers - 1), classes]
        return list(zip(sizes[:-1], sizes[1:], strict=True))


def glorot(rows: int, columns: int, generator: Generator) -> Tensor:
    """Uniform on ±√(6 / (rows + columns)) (Glorot and Bengio, AISTATS 2010), as PyG initialises its layers."""
    bound = math.sqrt(6 / (rows + columns))
    return torch.empty(rows, columns).uniform_(-bound, bound, generator=generator)


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """``x`` [n, k] + ``bias`` [k], or [R, n, k] + [R, k]."""
    return x + bias.unsqueeze(-2)
