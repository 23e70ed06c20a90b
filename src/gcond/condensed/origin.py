"""The source graph of a condensed one, read as it was when the condensed graph was made from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gcond.condensed.provenance import Origin
from gcond.data import load
from gcond.graph import Setting, SourceGraph
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.features import FeatureTransform

if TYPE_CHECKING:
    from torch_geometric.data import Data


class ReadAs(Protocol):
    """Whatever says how its source graph was read: a provenance, or the record of a training."""

    @property
    def setting(self) -> Setting: ...

    @property
    def directed(self) -> bool: ...

    @property
    def transform(self) -> dict[str, Any]: ...

    @property
    def source(self) -> Origin: ...


def load_origin(
    made: ReadAs | None,
    on: SourceGraph | Data | str | Path,
    *,
    setting: Setting | None = None,
    directed: bool = False,
    features: FeatureChoice | FeatureTransform | None = None,
    data_dir: str | Path | None = None,
    labelled: bool = True,
    memory_limit: str | int | None = None,
) -> SourceGraph:
    """``on`` in the setting, with the directions and with the feature transform that ``made`` says.

    The transform is applied with the statistics that were recorded, and not fitted anew. What is given goes before what
    ``made`` says. A graph that is in memory already is used as it is, and so are features that gcond transformed before
    it wrote them to a file. ``labelled`` and ``memory_limit`` as for :func:`gcond.load`.
    """
    if isinstance(on, SourceGraph):
        return on
    if made is None:
        return load(
            on,
            setting=setting,
            directed=directed,
            features=features,
            data_dir=data_dir,
            labelled=labelled,
            memory_limit=memory_limit,
        )
    setting, directed = setting or made.setting, directed or made.directed
    if features is None:
        features = FeatureTransform.from_json(made.transform)
        if isinstance(on, str | Path) and Path(on).suffix == ".safetensors":
            graph = load(on, setting=setting, directed=directed, labelled=labelled, memory_limit=memory_limit)
            return load(graph, features=features) if graph.transform.kind == "none" else graph
    return load(
        on,
        setting=setting,
        directed=directed,
        features=features,
        data_dir=data_dir,
        labelled=labelled,
        memory_limit=memory_limit,
    )


def same_source(made: ReadAs | None, graph: SourceGraph) -> bool | None:
    """Whether ``graph`` is the very one that ``made`` is from; ``None`` where that is not known."""
    return None if made is None else made.source.get("sha256") == graph.sha256


def source_difference(made: ReadAs | None, graph: SourceGraph, who: str = "this was") -> str:
    """A sentence where ``graph`` is not the very one that ``made`` is from, else nothing."""
    if made is None or same_source(made, graph):
        return ""
    return f"'{graph.name}' is not the graph {who} made from ('{made.source.get('name')}'): " + (
        transform_difference(made, graph) or "its tensors, its split or its setting differ"
    )


def transform_difference(made: ReadAs, graph: SourceGraph) -> str:
    """A sentence where the features of ``graph`` were transformed otherwise than ``made`` says, else nothing."""
    then, now = FeatureTransform.from_json(made.transform), graph.transform
    if then == now:
        return ""
    words = f"{then.kind} with other statistics" if then.kind == now.kind else then.kind
    return f"its features are {now.kind}, and those it was made from were {words}"
