"""A PyG transform that condenses; needs the extra ``pyg``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gcond.data.loading import check_features
from gcond.graph import Setting
from gcond.graph.budget import check_budget
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.features import FeatureTransform
from gcond.methods import Method, method_for
from gcond.methods.condense import DEFAULT_METHOD, condense
from gcond.runtime.stopwatch import parse_seconds
from gcond.runtime.threads import check_threads


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
        method: str | Method = DEFAULT_METHOD,
        *,
        ratio: str | float | None = None,
        nodes: int | None = None,
        seed: int = 0,
        setting: Setting | None = None,
        directed: bool = False,
        features: FeatureChoice | FeatureTransform | None = None,
        device: str = "auto",
        threads: int | None = None,
        within: str | float | None = None,
        recipe: str | Path | None = None,
        **options: Any,
    ) -> None:
        check_budget(ratio, nodes)  # what cannot be is refused before there is any data
        self.method = method_for(method, options, recipe)
        self.budget: dict[str, Any] = {"ratio": ratio} if nodes is None else {"nodes": nodes}
        check_features(features)
        self.options: dict[str, Any] = {"seed": seed, "setting": setting, "directed": directed, "device": device}
        self.options |= {
            "threads": check_threads(threads),
            "within": within if within is None else parse_seconds(within),
        }
        self.options["features"] = features

    def forward(self, data: Data) -> Data:
        """The condensed graph of ``data``."""
        return condense(data, method=self.method, **self.budget, **self.options).to_pyg()

    def __repr__(self) -> str:
        ((word, size),) = self.budget.items()
        return f"{type(self).__name__}({self.method.name}, {word}={size})"
