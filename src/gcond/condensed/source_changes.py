"""What became of a source graph since a condensed graph was made from it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.origin import transform_difference
from gcond.condensed.provenance import Changes, Provenance
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.graph.node_digests import NodeDigests


@dataclass(frozen=True, eq=False)
class SourceChanges:
    """A source graph beside the one that a condensed graph was made from."""

    before: Tensor
    """int64 [N]: the row that each node of the source had, -1 for new ones."""
    classes: Tensor
    """int64 [C before]: what each class is called now, -1 for those that are gone."""
    unsettled: Tensor
    """bool [N]: nodes that are new, or were trained on by a label that is no longer theirs."""
    counts: Changes

    @classmethod
    def between(cls, small: CondensedGraph, made: Provenance, graph: SourceGraph) -> SourceChanges:
        """What changed from the source of ``small`` to ``graph``; another graph altogether is refused."""
        _check_readings(made, graph)
        then, now = small.digests, NodeDigests.of(graph)
        classes = _classes(made, graph)
        before = _rows_before(made, then, now, graph)
        known = before >= 0
        old = torch.zeros(int(made.source["nodes"]), dtype=torch.bool)
        old[before[known]] = True
        adjacency = graph.adjacency
        touching_new = int((~known[adjacency.row_index] | ~known[adjacency.indices.long()]).sum())
        counts = Changes(
            matched_by="ids" if _by_ids(then, now) else "rows",
            nodes_before=len(old),
            nodes=graph.num_nodes,
            nodes_added=int((~known).sum()),
            nodes_removed=int((~old).sum()),
            edges_before=int(made.source.get("edges", 0)),
            edges=graph.num_edges,
            edges_of_added_nodes=touching_new if graph.directed else touching_new // 2,
            classes_before=made.num_classes,
            classes=graph.num_classes,
            classes_added=graph.num_classes - int((classes >= 0).sum()),
            classes_removed=int((classes < 0).sum()),
        )
        unsettled = ~known
        if then is not None and now is not None:
            differing, lost = _compared(then, now, before)
            counts |= differing
            unsettled = unsettled | lost
            _refuse_strangers(counts, made, graph)
        return cls(before, classes, unsettled, counts)


def unknown_ids(small: CondensedGraph, graph: SourceGraph) -> str | None:
    """A sentence on ids that ``graph`` has and the file of ``small`` does not know, so that rows have to do."""
    known = small.digests is not None and small.digests.ids is not None
    same = small.provenance is not None and small.provenance.source.get("sha256") == graph.sha256
    if graph.ids is None or known or same:
        return None
    return (
        f"the file knows no ids of its source's nodes, so these are told by their rows: nodes of '{graph.name}' that "
        "were there before have to come first, in the same order"
    )


def _check_readings(made: Provenance, graph: SourceGraph) -> None:
    """Refuse a graph that is read in another way, by which nothing could be compared."""
    source = made.source.get("name")
    if graph.num_features != made.source.get("features", graph.num_features):
        raise GcondError(
            f"'{graph.name}' has {graph.num_features} features and '{source}', which this was made from, had "
            f"{made.source['features']}: an update needs the same ones"
        )
    if graph.setting != made.setting:
        raise GcondError(f"'{graph.name}' is {graph.setting} and '{source}' was {made.setting}: load it as that")
    if graph.directed != made.directed:
        now, then = ("directed" if each else "undirected" for each in (graph.directed, made.directed))
        raise GcondError(f"'{graph.name}' is {now} and '{source}' was {then}: load it as that")
    if graph.transform.kind != "structural" and (difference := transform_difference(made, graph)):
        raise GcondError(
            f"'{graph.name}' cannot be compared with '{source}', because {difference}: give its raw file, which is "
            "read with the transform that was recorded"
        )


def _classes(made: Provenance, graph: SourceGraph) -> Tensor:
    """By their names, where both have names, else by their numbers."""
    if not made.class_names or not graph.class_names:
        number = torch.arange(made.num_classes)
        return torch.where(number < graph.num_classes, number, -1)
    places = {name: place for place, name in enumerate(graph.class_names)}
    found = torch.tensor([places.get(name, -1) for name in made.class_names])
    if bool((found < 0).all()):
        raise GcondError(
            f"no class of '{graph.name}' is one of '{made.source.get('name')}', which this was made from: "
            "condense the graph anew"
        )
    return found


def _by_ids(then: NodeDigests | None, now: NodeDigests | None) -> bool:
    return then is not None and now is not None and then.ids is not None and now.ids is not None


def _rows_before(made: Provenance, then: NodeDigests | None, now: NodeDigests | None, graph: SourceGraph) -> Tensor:
    """The row that each node had: by ids where both have them, else nodes that were there come first."""
    count = int(made.source["nodes"])
    if then is None or now is None or then.ids is None or now.ids is None:
        if graph.num_nodes < count and then is None and graph.ids is not None:
            raise GcondError(
                f"'{graph.name}' has {graph.num_nodes} nodes and '{made.source.get('name')}' had {count}, and the file "
                "does not know their ids, by which one could say which ones went: update a file that was made compact "
                "with its digests kept or not at all, or condense anew"
            )
        if graph.num_nodes < count:
            raise GcondError(
                f"'{graph.name}' has {graph.num_nodes} nodes and '{made.source.get('name')}' had {count}, and without "
                "ids nobody can say which ones went: give the nodes ids before condensing, or condense anew"
            )
        rows = torch.arange(graph.num_nodes)
        return torch.where(rows < count, rows, -1)
    known, order = then.ids.sort()
    place = torch.searchsorted(known, now.ids).clamp(max=count - 1)
    return torch.where(known[place] == now.ids, order[place], -1)


def _compared(then: NodeDigests, now: NodeDigests, before: Tensor) -> tuple[Changes, Tensor]:
    """Nodes of both in which something differs, counted, and bool [N]: those whose label is no longer theirs."""
    old, known = before.clamp(min=0), before >= 0
    # In the inductive setting nodes that were not trained on are not known, and all digests of theirs are 0.
    seen = known & (then.features[old] != 0) & (now.features != 0)
    was, is_ = torch.where(known, then.labels[old], 0), now.labels
    lost = (was != 0) & (was != is_)
    there = torch.zeros(len(then.labels), dtype=torch.bool)
    there[before[known]] = True
    counts = Changes(
        features_changed=int((seen & (then.features[old] != now.features)).sum()),
        neighbours_changed=int((seen & (then.edges[old] != now.edges)).sum()),
        labels_added=int(((was == 0) & (is_ != 0)).sum()),
        labels_removed=int((lost & (is_ == 0)).sum()),
        labels_changed=int((lost & (is_ != 0)).sum()),
        labels_gone=int(((then.labels != 0) & ~there).sum()),
        compared=int(seen.sum()),
    )
    return counts, lost


def _refuse_strangers(counts: Changes, made: Provenance, graph: SourceGraph) -> None:
    """Refuse a graph of which no node is there before, or none has the features that it had."""
    source = made.source.get("name")
    if counts["nodes"] == counts["nodes_added"]:
        raise GcondError(
            f"no node of '{graph.name}' is one of '{source}', which this was made from: condense the graph anew"
        )
    structural = graph.transform.kind == "structural"  # these follow the edges, so all may change
    if counts["compared"] and counts["features_changed"] == counts["compared"] and not structural:
        raise GcondError(
            f"no node of '{graph.name}' has the features that it had in '{source}', which this was made from: condense "
            "the graph anew"
        )
