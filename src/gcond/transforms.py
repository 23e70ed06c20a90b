"""Condensation as a PyG transform; needs the extra ``pyg``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gcond.errors import GcondError
from gcond.graph.budget import parse_ratio
from gcond.graph.learning_setting import Setting
from gcond.methods.condense import DEFAULT_METHOD, condense, method_for


class Condense(BaseTransform):
    """Condenses a ``Data`` into a small one for stock models, in which every node is a training node.

    >>> from torch_geometric.transforms import Compose, NormalizeFeatures
    >>> Compose([NormalizeFeatures(), Condense(ratio="2.6%")])(data)

    The arguments are those of :func:`gcond.condense`, but for callbacks and checkpoints. The input is left as it
    is; the result is that of :meth:`gcond.CondensedGraph.to_pyg`. What reading it took (a split that was drawn, one-way
    edges that got their reverse) is said as a ``UserWarning`` each.
    """

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
        *,
        ratio: str | float | None = None,
        nodes: int | None = None,
        seed: int = 0,
        setting: Setting | None = None,
        directed: bool = False,
        device: str = "auto",
        recipe: str | Path | None = None,
        **options: Any,
    ) -> None:
        if (ratio is None) == (nodes is None):
            raise GcondError("give a budget as either a ratio or a number of nodes, for example ratio='2.6%'")
        if ratio is not None:
            parse_ratio(ratio)
        method_for(method, options, recipe)  # refuses what cannot be, before there is any data
        self.method = method
        self.budget = {"ratio": ratio} if nodes is None else {"nodes": nodes}
        self.options = {
            "seed": seed,
            "setting": setting,
            "directed": directed,
            "device": device,
            "recipe": recipe,
            **options,
        }

    def forward(self, data: Data) -> Data:
        """The condensed graph of ``data``."""
        return condense(data, method=self.method, **self.budget, **self.options).to_pyg()  # type: ignore[arg-type]

    def __repr__(self) -> str:
        (size,) = self.budget.items()
        return f"{type(self).__name__}({self.method}, {size[0]}={size[1]})"
