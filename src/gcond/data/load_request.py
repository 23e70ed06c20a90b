"""The arguments of ``gcond.load`` beside the source itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gcond.graph import Setting
from gcond.graph.feature_kinds import FeatureChoice

if TYPE_CHECKING:
    from gcond.data.splits import Split
    from gcond.graph import SourceGraph
    from gcond.graph.features import FeatureTransform
    from gcond.linalg.sparse import Matrix


@dataclass(frozen=True)
class Request:
    """The way a graph is to be read; every reader gets it unchanged."""

    name: str
    """The name that the graph will have."""
    setting: Setting | None = None
    """``None`` takes the source's own."""
    directed: bool = False
    seed: int = 0
    """Of the split where the source has none, and of the graph where it is made up."""
    features: FeatureChoice | FeatureTransform | None = None
    """The transform of the features; ``None`` takes the source's own."""

    def build(
        self,
        split: Split,
        *,
        x: Matrix | None,
        usual: FeatureChoice = "auto",
        default: Setting = "transductive",
        notes: tuple[str, ...] = (),
        **graph: Any,
    ) -> SourceGraph:
        """The graph of what a file holds, handed over, with its split.

        ``x`` are the features as the file has them; ``usual`` and ``default`` are the source's own transform and
        setting.
        """
        from gcond.graph import SourceGraph
        from gcond.graph import validation as checks
        from gcond.graph.feature_treatment import treated

        raw = checks.features(x, copy=False) if x is not None else None
        built = SourceGraph.build(
            name=self.name,
            x=raw,
            setting=self.setting or default,
            directed=self.directed,
            copy=False,
            train=split.train,
            val=split.val,
            test=split.test,
            notes=(split.note, *notes),
            **graph,
        )
        return treated(built, self.features or usual, raw)
