"""Features as they are wanted: the one place that transforms those of a graph, by name, as recorded, or by choice."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json

from gcond.errors import GcondError
from gcond.graph.doubts import SAME_FEATURES, is_constant
from gcond.graph.feature_choice import Choice, choose_transform, fitted
from gcond.graph.feature_kinds import FeatureChoice
from gcond.graph.features import FeatureTransform, compact
from gcond.graph.source_graph import SourceGraph
from gcond.graph.stored_graph import StoredGraph
from gcond.graph.stored_inputs import DERIVED
from gcond.graph.structural_features import structural_features
from gcond.linalg.sparse import Matrix
from gcond.runtime.files import write_text


def treated(graph: SourceGraph, asked: FeatureChoice | FeatureTransform, raw: Matrix | None = None) -> SourceGraph:
    """``graph`` with its features as ``asked``: a kind by name, ``auto``, or a transform with its statistics.

    ``raw`` are the features as they came, if ``graph`` has them in another form. Features that were transformed
    before are left alone where they are what is asked for, and refused where they are not.
    """
    kind = asked.kind if isinstance(asked, FeatureTransform) else asked
    if kind == "structural":
        if isinstance(graph, StoredGraph):
            if graph.transform.kind == "structural" and asked in (graph.transform, "structural"):
                return graph
            raise graph.arrays.too_large("making structural features", ", or the features that it has")
        return _with_structure(graph, asked if isinstance(asked, FeatureTransform) else None)
    has = graph.transform.kind
    if asked in (graph.transform, has) or (has == "structural" and kind in ("auto", "none")):
        return graph
    if has != "none":
        raise GcondError(_refusal(graph, kind))
    if isinstance(graph, StoredGraph):
        return _treated_as_read(graph, asked)
    raw = graph.x if raw is None else raw
    if kind == "auto" and is_constant(raw):  # no transform makes anything of them
        return _with_structure(graph, None)
    if kind == "auto":
        choice = choose_transform(graph, raw)
        return _transformed(graph, choice.transform, raw, (choice.note,))
    if isinstance(asked, FeatureTransform):
        return _transformed(graph, asked, raw)
    return _transformed(graph, fitted(kind, graph, raw), raw)


def _treated_as_read(graph: StoredGraph, asked: FeatureChoice | FeatureTransform) -> StoredGraph:
    """A graph that stays on disk, with features that are transformed whenever they are read."""
    if isinstance(asked, FeatureTransform):
        return graph.with_transform(asked)
    if asked == "auto":
        choice = _kept_choice(graph)
        return graph.with_transform(choice.transform, (choice.note,))
    assert asked != "structural"
    return graph.with_transform(fitted(asked, graph, graph.stored))


def _kept_choice(graph: StoredGraph) -> Choice:
    """The transform that is chosen for a graph on disk; it is kept in the store, since it looks at every feature."""
    facts = [graph.arrays.sha256, graph.setting, "auto"]
    name = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]
    path = graph.arrays.folder / DERIVED / f"features-{name}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError, GcondError):
        known = json.loads(path.read_bytes())
        return Choice(FeatureTransform.from_json(known["transform"]), str(known["note"]))
    choice = choose_transform(graph, graph.stored)
    with contextlib.suppress(OSError, GcondError):  # where nothing may be written it is made each time
        path.parent.mkdir(exist_ok=True)
        write_text(path, json.dumps({"transform": choice.transform.to_json(), "note": choice.note}))
    return choice


def _refusal(graph: SourceGraph, kind: str) -> str:
    has = graph.transform.kind
    if has == "structural":
        return f"'{graph.name}' has structural features, and no others to make {kind}: load raw data that has some"
    how = f"{has} with other statistics" if has == kind else has
    return f"the features of '{graph.name}' were already made {how}: load its raw data with features='{kind}'"


def _transformed(
    graph: SourceGraph, transform: FeatureTransform, raw: Matrix, notes: tuple[str, ...] = ()
) -> SourceGraph:
    x = graph.x if transform.kind == "none" else compact(transform.apply(raw))
    return dataclasses.replace(graph, x=x, transform=transform, notes=(*graph.notes, *notes))


def _with_structure(graph: SourceGraph, recorded: FeatureTransform | None) -> SourceGraph:
    if graph.transform.kind == "structural" and recorded in (None, graph.transform):
        return graph
    parts = (graph.train_mask, graph.val_mask, graph.test_mask)
    x, transform = structural_features(graph.adjacency, parts, graph.setting, recorded)
    notes = tuple(note for note in graph.notes if not note.startswith(SAME_FEATURES))
    if len(notes) < len(graph.notes):
        notes += (f"{SAME_FEATURES}: {x.shape[1]} structural ones, made from the edges, take their place",)
    elif graph.transform.kind != "structural":
        notes += (f"the {graph.num_features} given features are replaced by {x.shape[1]} structural ones",)
    return dataclasses.replace(graph, x=compact(x), transform=transform, notes=notes, feature_names=())
