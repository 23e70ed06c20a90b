"""The arguments of ``gcond.load`` beside the source itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gcond.graph import Setting
from gcond.graph.feature_kinds import FeatureChoice

if TYPE_CHECKING:
    from torch import Tensor

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
    labelled: bool = True
    """Whether there must be labels, and training nodes of every class: prediction alone does without."""
    memory: int | None = None
    """Bytes that the process may hold; a packed store that would take more stays on disk."""
    treat: Callable[[SourceGraph, FeatureChoice, Matrix | None], SourceGraph] | None = None
    """What is done with a graph, the source's own transform and its raw features instead of transforming them."""

    def drawn_split(self, y: Tensor, class_names: tuple[str, ...] = ()) -> Split:
        """The split of a graph that brings none; without parts where labels are not needed, and are too few for one."""
        from gcond.data.splits import no_split, per_class, splittable

        if self.labelled or splittable(y):
            return per_class(y, self.seed, class_names)
        return no_split()

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
            labelled=self.labelled,
            **graph,
        )
        if self.treat is not None:
            return self.treat(built, usual, raw)
        return treated(built, self.features or usual, raw)
