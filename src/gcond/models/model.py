"""The base of all models: a frozen description with functions and no state.

Parameters are a plain dictionary of tensors, so that gradients with respect to them can be taken as a function.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self, TypeAlias

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from gcond.config.setting_ranges import SettingRange
from gcond.errors import GcondError
from gcond.graph import Inputs
from gcond.graph.inputs import Chain
from gcond.linalg.sparse import Adjacency, Identity, Matrix, Operator
from gcond.models.stages import Local, Stages

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
    recipe: ClassVar[Mapping[str, Any]] = {}
    """Where training this model differs from the default :class:`gcond.training.Recipe`."""
    counts: ClassVar[tuple[str, ...]] = ("layers", "hidden")
    """Settings that must be at least 1."""
    ranges: ClassVar[Mapping[str, SettingRange]] = {}
    """Where a search for hyper-parameters looks among the settings that only this model has."""

    layers: int = 2
    """Layers with weights; 1 has no hidden layer."""
    hidden: int = 256
    """Width of every hidden layer."""
    activation: Activation = "relu"
    """Between layers."""

    def __post_init__(self) -> None:
        for name in self.counts:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}")

    @property
    def reach(self) -> int:
        """The distance, in edges, that a node's output can look: one per layer unless a subclass says otherwise."""
        return self.layers

    @property
    def precomputed(self) -> int:
        """The number of these hops that are taken on the features alone, before any weight."""
        return 0

    def linear_in(self, inputs: Inputs) -> Matrix | Chain | None:
        """H [n, d] where the scores are ``H W + b`` with ``weight0`` and ``bias0``; ``None`` if they are not linear."""
        return None

    def init(self, features: int, classes: int, generator: Generator) -> Parameters:
        """Fresh weights for ``features`` inputs and ``classes`` outputs, on the CPU.

        Unless a subclass says otherwise, ``weight{layer}`` [in, out] by :func:`glorot` and ``bias{layer}`` [out] at 0.
        """
        parameters = {}
        for layer, (rows, columns) in enumerate(self.widths(features, classes)):
            parameters[f"weight{layer}"] = glorot(rows, columns, generator)
            parameters[f"bias{layer}"] = torch.zeros(columns)
        return parameters

    def shapes(self, features: int, classes: int) -> dict[str, torch.Size]:
        """The shapes of the weights that :meth:`init` makes; nothing is drawn or stored."""
        with torch.device("meta"):
            weights = self.init(features, classes, None)  # type: ignore[arg-type]  # no generator on the meta device
        return {key: weight.shape for key, weight in weights.items()}

    @abstractmethod
    def logits(self, parameters: Parameters, inputs: Inputs, dropout: Dropout | None = None) -> Tensor:
        """Class scores [n, C]; ``dropout`` falls on hidden layers."""

    def stages(self, parameters: Parameters) -> Stages | None:
        """The pass of :meth:`logits` without dropout as stages, for graphs past memory; ``None`` where there are none.

        Without, such a graph is scored by blocks of nodes, each with all that it looks at in memory. A subclass that
        changes how scores are made, and does not write its stages anew, counts as one without
        (:func:`streamable`).
        """
        return None

    @classmethod
    def logits_together(
        cls,
        models: Sequence[Self],
        parameters: Sequence[Parameters],
        inputs: Inputs,
        dropouts: Sequence[Dropout | None],
    ) -> list[Tensor]:
        """The class scores [n, C] of several models, each with weights of its own but of the same shapes.

        One after the other here. A model whose work can be shared among them overrides this; whoever does must give
        each model the same bits whichever stand beside it.
        """
        return [model.logits(one, inputs, drop) for model, one, drop in zip(models, parameters, dropouts, strict=True)]

    def to_pyg(
        self, parameters: Parameters, *, dropout: float = 0.0, weighted: bool = False, directed: bool = False
    ) -> torch.nn.Module:
        """A module of stock PyG layers with these weights, which gives the same scores [n, C] (extra ``pyg``).

        It is called with ``x``, ``edge_index`` and ``edge_weight``. ``dropout`` falls on hidden layers once it is told
        to ``train()``. ``weighted`` says that edges have weights that must count, where PyG's own layer passes them
        over, and ``directed`` that some have no reverse, where PyG's own layer counts those that leave a node. A model
        of one's own overrides this; :mod:`gcond.models.pyg_modules` has the parts.
        """
        raise GcondError(f"the model '{self.name}' has no form in PyG: to_pyg() of its class must give one")

    def activate(self, h: Tensor, dropout: Dropout | None = None) -> Tensor:
        """The step between two layers: the activation σ, then dropout."""
        h = ACTIVATIONS[self.activation](h)
        return dropout(h) if dropout else h

    def stack(
        self, parameters: Parameters, first: Operator, dropout: Dropout | None, operator: Adjacency | None = None
    ) -> Tensor:
        """Layers ``h ↦ S h W + b`` with :meth:`activate` between them.

        ``first`` is ``S X``, since it does not change while weights do; ``operator`` is ``S`` of the
        further layers, by default the identity.
        """
        operator = Identity() if operator is None else operator
        h = first @ parameters["weight0"] + parameters["bias0"]
        for layer in range(1, self.layers):
            h = self.activate(h, dropout) @ parameters[f"weight{layer}"]
            h = operator @ h + parameters[f"bias{layer}"]
        return h

    def hidden_layers(self, parameters: Parameters) -> Local:
        """:meth:`stack` without the graph, from ``X W`` of the first layer on, as one row-wise stage."""

        def rest(h: Tensor) -> Tensor:
            h = h + parameters["bias0"]
            for layer in range(1, self.layers):
                h = self.activate(h) @ parameters[f"weight{layer}"] + parameters[f"bias{layer}"]
            return h

        widths = [len(parameters[f"bias{layer}"]) for layer in range(self.layers)]
        return Local(rest, widths[-1], max(widths))

    def widths(self, features: int, classes: int) -> list[tuple[int, int]]:
        """(in, out) of every layer."""
        sizes = [features, *[self.hidden] * (self.layers - 1), classes]
        return list(pairwise(sizes))


def streamable(model: Model) -> bool:
    """Whether what :meth:`Model.stages` says is what the model computes.

    Fields and weights may be a subclass's own. Once it has another method or property, the stages that it has inherited
    may be those of another function.
    """
    for kind in type(model).__mro__:
        if "stages" in vars(kind):
            return kind is not Model
        if any(_computes(key, value) for key, value in vars(kind).items()):
            return False
    return False


def _computes(key: str, value: object) -> bool:
    """Whether a class's attribute has a part in the scores."""
    is_code = callable(value) or isinstance(value, property | classmethod | staticmethod)
    return is_code and not key.startswith("__") and key not in ("init", "to_pyg")


def glorot(rows: int, columns: int, generator: Generator) -> Tensor:
    """Uniform on ±√(6 / (rows + columns)) (Glorot and Bengio, AISTATS 2010), as PyG initialises its layers."""
    bound = math.sqrt(6 / (rows + columns))
    return torch.empty(rows, columns).uniform_(-bound, bound, generator=generator)
