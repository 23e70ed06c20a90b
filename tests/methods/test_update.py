from __future__ import annotations

import dataclasses
import warnings

import pytest
import torch

from gcond import methods
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.errors import GcondError, GcondWarning
from gcond.graph.node_ids import NodeIds
from gcond.graph.source_graph import SourceGraph
from gcond.linalg.sparse import dense
from gcond.methods.condense import condense
from gcond.methods.update import update

QUICK = {"epochs": 10, "hidden": 8, "outer": 2, "inner": 1, "probe_every": 0, "structure_hidden": 8, "delta": 0.0}
NODES = 9
UPDATABLE = sorted(set(methods.available()) - {"coarsening"})
SHOWN = 60
"""Nodes of the random graph that are there from the first."""


def quick(name):
    fields = {field.name for field in dataclasses.fields(methods.find(name))}
    return {key: value for key, value in QUICK.items() if key in fields}


def part(graph, nodes, *, ids=None, classes=None, names=(), **changes):
    """The graph induced by ``nodes``, in their order."""
    adjacency = graph.adjacency.submatrix(nodes)
    given = {
        "name": "part",
        "x": dense(graph.x)[nodes],
        "edge_index": adjacency.edge_index,
        "edge_weight": adjacency.values,
        "y": graph.y[nodes],
        "train": graph.train_mask[nodes],
        "val": graph.val_mask[nodes],
        "test": graph.test_mask[nodes],
        "num_classes": classes or graph.num_classes,
        "class_names": names,
        "setting": graph.setting,
        "directed": graph.directed,
        "ids": [f"n{node}" for node in nodes.tolist()] if ids else None,
    }
    return SourceGraph.build(**given | changes)


@pytest.fixture(params=UPDATABLE)
def name(request):
    return request.param


@pytest.fixture
def grown(name, graph):
    """A method, what it made of the first nodes of a graph, and the whole graph."""
    first = part(graph, torch.arange(SHOWN))
    return name, condense(first, method=name, nodes=NODES, **quick(name)), part(graph, torch.arange(graph.num_nodes))


def last_changes(graph):
    return graph.provenance.updates[-1]["changes"]


def test_an_unchanged_source_changes_nothing(name, graph):
    small = condense(graph, method=name, nodes=NODES, **quick(name))
    again = update(small, on=graph)
    assert again is small
    assert again.provenance.updates == ()


def test_new_nodes_give_a_graph_as_good_as_any(grown, tmp_path):
    name, small, whole = grown
    before = {key: tensor.clone() for key, tensor in small.tensors().items()}
    updated = update(small, on=whole)
    assert updated.num_nodes == NODES
    assert set(updated.hard_labels.tolist()) == set(range(whole.num_classes))
    for key, tensor in updated.tensors().items():
        assert bool(torch.isfinite(tensor.double()).all()), key
    for key, tensor in small.tensors().items():
        assert torch.equal(tensor, before[key])
    made = updated.provenance
    assert (made.method, made.settings, made.source["sha256"]) == (name, small.provenance.settings, whole.sha256)
    (record,) = made.updates
    assert record["updated_from"] == small.sha256
    assert record["source"] == small.provenance.source
    assert made.cost["wall_seconds"] > record["cost"]["wall_seconds"] > 0
    changes = record["changes"]
    assert (changes["nodes_before"], changes["nodes_added"], changes["nodes_removed"]) == (SHOWN, 20, 0)
    kinds = ("kept", "changed", "added")
    assert sum(changes[f"synthetic_{kind}"] for kind in kinds) == NODES
    assert changes["synthetic_kept"] + changes["synthetic_changed"] + changes["synthetic_removed"] == small.num_nodes
    updated.save(tmp_path / "updated.safetensors")
    back = CondensedGraph.load(tmp_path / "updated.safetensors")
    assert back.sha256 == updated.sha256
    assert back.provenance == made
    assert update(back, on=whole) is back


def test_the_same_seed_gives_the_same_graph(grown):
    _, small, whole = grown
    first, again = update(small, on=whole), update(small, on=dataclasses.replace(whole))
    assert first.provenance.choices == again.provenance.choices
    for key, tensor in first.tensors().items():
        assert torch.equal(tensor, again.tensors()[key]), key


def test_test_labels_are_not_looked_at(grown):
    _, small, whole = grown
    y = whole.y.clone()
    hidden = whole.test_mask.nonzero().squeeze(1)
    y[hidden] = (y[hidden] + 1) % whole.num_classes
    poisoned = dataclasses.replace(whole, y=y)
    updated, other = update(small, on=whole), update(small, on=poisoned)
    assert updated.sha256 == other.sha256
    for key, digest in updated.digests.tensors().items():
        assert torch.equal(digest, other.digests.tensors()[key]), key
    assert last_changes(updated) == last_changes(other)


def test_in_the_inductive_setting_other_nodes_are_not_looked_at(name, make_graph):
    graph = make_graph("inductive")
    small = condense(part(graph, torch.arange(SHOWN)), method=name, nodes=NODES, **quick(name))
    whole = part(graph, torch.arange(graph.num_nodes))
    x = dense(whole.x).clone()
    x[~whole.train_mask] = 7.0
    poisoned = dataclasses.replace(whole, x=x)
    updated, other = update(small, on=whole), update(small, on=poisoned)
    assert updated.sha256 == other.sha256
    assert torch.equal(updated.digests.features, other.digests.features)


def test_a_new_class_gets_nodes(name, graph):
    """A class that comes later, also where its name puts it in the middle of the others."""
    old = (graph.y != 1).nonzero().squeeze(1)
    relabelled = torch.where(graph.y == 2, 1, graph.y)
    names = ("apples", "pears", "sprouts")
    first = part(graph, old, y=relabelled[old], classes=2, names=(names[0], names[2]))
    small = condense(first, method=name, nodes=NODES, **quick(name))
    order = torch.cat([old, (graph.y == 1).nonzero().squeeze(1)])
    updated = update(small, on=part(graph, order, names=names), nodes=12)
    assert updated.num_nodes == 12
    assert updated.num_classes == 3
    assert set(updated.hard_labels.tolist()) == {0, 1, 2}
    assert last_changes(updated)["classes_added"] == 1
    if updated.cluster is not None and small.cluster is not None:  # groups go on in the class of the same name
        members = (small.cluster == int((small.hard_labels == 1).nonzero()[0])).nonzero().squeeze(1)
        classes = updated.hard_labels[updated.cluster[members[updated.cluster[members] >= 0]]]
        assert int(torch.mode(classes).values) == 2


def test_removed_nodes_are_known_by_their_ids(name, graph):
    everyone = torch.arange(graph.num_nodes)
    small = condense(part(graph, everyone, ids=True), method=name, nodes=NODES, **quick(name))
    left = everyone[everyone % 7 != 0].flip(0)
    updated = update(small, on=part(graph, left, ids=True))
    changes = last_changes(updated)
    assert changes["matched_by"] == "ids"
    assert (changes["nodes_added"], changes["nodes_removed"]) == (0, graph.num_nodes - len(left))
    assert changes["features_changed"] == changes["labels_added"] == changes["labels_changed"] == 0
    assert (changes["labels_removed"], changes["labels_gone"]) == (0, int(graph.train_mask[::7].sum()))
    if small.source_index is not None:  # all that are left, as far as their class gets so many nodes
        stayed = left[updated.source_index]
        for label in range(3):
            there = {node for node in small.source_index[small.y == label].tolist() if node % 7}
            now = set(stayed[updated.y == label].tolist())
            assert len(there & now) == min(len(there), len(now))


def test_an_order_is_no_change(name, graph):
    """The same nodes in another order, with ids: nothing is counted, and groups stay whole."""
    everyone = torch.arange(graph.num_nodes)
    small = condense(part(graph, everyone, ids=True), method=name, nodes=NODES, **quick(name))
    stream = torch.Generator().manual_seed(1)
    updated = update(small, on=part(graph, everyone[torch.randperm(len(everyone), generator=stream)], ids=True))
    changes = last_changes(updated)
    counted = [key for key in changes if key.startswith(("nodes_", "labels_", "features_", "neighbours_"))]
    assert not any(changes[key] for key in counted if key != "nodes_before")


def test_what_changed_is_counted(make_graph):
    graph = make_graph()
    x, y, train = dense(graph.x).clone(), graph.y.clone(), graph.train_mask.clone()
    small = condense(graph, method="clusters", nodes=NODES, teacher="ridge")
    x[[3, 5]] += 1
    trained = train.nonzero().squeeze(1)
    y[trained[0]] = (y[trained[0]] + 1) % 3
    train[trained[1]] = False
    (free,) = (~(graph.train_mask | graph.val_mask | graph.test_mask)).nonzero()[0].tolist()
    y[free], train[free] = 0, True
    edges = graph.adjacency.edge_index
    kept = ~(
        ((edges[0] == edges[0, 0]) & (edges[1] == edges[1, 0]))
        | ((edges[1] == edges[0, 0]) & (edges[0] == edges[1, 0]))
    )
    changed = part(
        graph, torch.arange(graph.num_nodes), x=x, y=y, train=train, edge_index=edges[:, kept], edge_weight=None
    )
    found = last_changes(update(small, on=changed))
    assert found["features_changed"] == 2
    assert (found["labels_changed"], found["labels_removed"], found["labels_added"]) == (1, 1, 1)
    assert found["neighbours_changed"] == 2
    assert found["edges"] == found["edges_before"] - 1


def test_groups_stay_where_little_changes(make_graph):
    """One node more: most synthetic nodes stand for the nodes that they stood for."""
    graph = make_graph(sizes=(60, 50, 40))
    count = graph.num_nodes
    small = condense(part(graph, torch.arange(count - 1)), method="clusters", nodes=12, teacher="ridge")
    updated = update(small, on=part(graph, torch.arange(count)))
    changes = last_changes(updated)
    assert changes["synthetic_added"] == changes["synthetic_removed"] == 0
    same = (small.cluster == updated.cluster[:-1]).float().mean()
    assert float(same) > 0.8


def test_nodes_that_lost_their_label_leave_their_group_only_for_a_reason(make_graph):
    """A node that was trained on and is a test node now is placed as if it were new."""
    graph = make_graph()
    small = condense(graph, method="random", nodes=NODES)
    node = int(small.source_index[0])
    train, test = graph.train_mask.clone(), graph.test_mask.clone()
    train[node], test[node] = False, True
    updated = update(small, on=part(graph, torch.arange(graph.num_nodes), train=train, test=test))
    assert node not in updated.source_index.tolist()
    assert set(small.source_index.tolist()) - {node} < set(updated.source_index.tolist())


@pytest.mark.parametrize("nodes", [3, 5, 20, 30])
def test_the_size_is_what_was_asked_for(name, make_graph, nodes):
    graph = make_graph()
    small = condense(part(graph, torch.arange(SHOWN)), method=name, nodes=NODES, **quick(name))
    updated = update(small, on=part(graph, torch.arange(graph.num_nodes)), nodes=nodes)
    assert updated.num_nodes == nodes == updated.provenance.budget["nodes"]
    assert set(updated.hard_labels.tolist()) == {0, 1, 2}
    share = update(small, on=part(graph, torch.arange(graph.num_nodes)), ratio="25%")
    assert share.num_nodes == 20


def test_several_updates_are_all_recorded(make_graph):
    graph = make_graph()
    small = first = condense(part(graph, torch.arange(40)), method="clusters", nodes=NODES, teacher="ridge")
    for count in (55, 70, 80):
        small = update(small, on=part(graph, torch.arange(count)))
    found = small.provenance.updates
    assert [each["source"]["nodes"] for each in found] == [40, 55, 70]
    assert found[0]["updated_from"] == first.sha256
    assert small.provenance.cost["cpu_seconds"] >= sum(each["cost"]["cpu_seconds"] for each in found)


def test_a_compact_graph_stays_compact(make_graph):
    from gcond.methods.compact import compact

    graph = make_graph()
    small = compact(condense(part(graph, torch.arange(SHOWN)), method="clusters", nodes=NODES), entries=4, bits=8)
    updated = update(small, on=part(graph, torch.arange(graph.num_nodes)))
    assert updated.compaction == small.compaction
    assert int((updated.x != 0).sum(1).max()) <= 4
    assert len(updated.provenance.updates) == 1


@pytest.mark.parametrize("kept", [True, False])
def test_a_compact_file_keeps_its_digests_through_an_update_if_it_had_any(make_graph, kept):
    from gcond.methods.compact import compact

    graph = make_graph()
    small = condense(part(graph, torch.arange(SHOWN)), method="clusters", nodes=NODES, teacher="ridge")
    updated = update(compact(small, entries=4, keep_digests=kept), on=part(graph, torch.arange(graph.num_nodes)))
    assert (updated.digests is not None) == kept
    changes = last_changes(updated)
    assert ("compared" in changes) == kept
    assert (changes["nodes_added"], changes["nodes_removed"]) == (graph.num_nodes - SHOWN, 0)


def test_without_digests_ids_are_of_no_use_and_that_is_said(make_graph):
    from gcond.methods.compact import compact

    graph = make_graph()
    before = part(graph, torch.arange(SHOWN), ids=True)
    small = compact(condense(before, method="clusters", nodes=NODES, teacher="ridge"), entries=4)
    with pytest.warns(GcondWarning, match="the file knows no ids of its source's nodes, so these are told by their"):
        found = last_changes(update(small, on=part(graph, torch.arange(graph.num_nodes), ids=True)))
    assert found["matched_by"] == "rows"
    with (
        pytest.raises(GcondError, match="does not know their ids, by which one could say which ones went"),
        pytest.warns(GcondWarning),
    ):
        update(small, on=part(graph, torch.arange(SHOWN - 1), ids=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert update(small, on=before) is small


def test_files_without_digests_are_updated_by_rows(make_graph, tmp_path):
    graph = make_graph()
    small = condense(part(graph, torch.arange(SHOWN), ids=True), method="clusters", nodes=NODES, teacher="ridge")
    old = dataclasses.replace(small, digests=None)
    old.save(tmp_path / "old.safetensors")
    changes = last_changes(
        update(tmp_path / "old.safetensors", on=part(graph, torch.arange(graph.num_nodes), ids=True))
    )
    assert changes["matched_by"] == "rows"
    assert "compared" not in changes


def test_the_network_goes_on_from_what_is_remembered(make_graph):
    graph = make_graph()
    for teacher in ("network", "both", "ensemble"):
        small = condense(part(graph, torch.arange(SHOWN)), method="clusters", nodes=NODES, teacher=teacher)
        told = update(small, on=part(graph, torch.arange(graph.num_nodes))).provenance.choices["teacher"]
        assert told == ("network" if teacher == "network" else "both")


def refusals(make_graph):
    graph = make_graph()
    small = condense(graph, method="clusters", nodes=NODES, teacher="ridge")
    everyone = torch.arange(graph.num_nodes)
    yield small, part(graph, everyone, x=dense(graph.x)[:, :5]), "has 5 features and .* had 12"
    yield small, part(graph, everyone[:-1]), "without ids nobody can say which ones went"
    yield (
        small,
        make_graph(seed=5, sizes=(50, 30, 20)),
        "no node of 'random-5' has the features that it had in 'random-0'",
    )
    yield small, graph.with_setting("inductive"), "is inductive and 'random-0' was transductive"
    yield small, dataclasses.replace(graph, directed=True), "is directed and 'random-0' was undirected"
    named = condense(part(graph, everyone, names=("a", "b", "c")), method="clusters", nodes=NODES, teacher="ridge")
    yield named, part(graph, everyone, names=("d", "e", "f")), "no class of 'part' is one of 'part'"
    with_ids = condense(part(graph, everyone, ids=True), method="random", nodes=NODES)
    other = part(graph, everyone + 0, ids=True)
    others = [f"m{node}" for node in everyone.tolist()]
    other = dataclasses.replace(other, name="others", ids=NodeIds.of(others, len(others)))
    yield with_ids, other, "no node of 'others' is one of 'part'"
    yield condense(graph, method="coarsening", nodes=NODES), other, "does all of its work at once"
    yield dataclasses.replace(small, provenance=None), other, "does not say how it was made"
    free = condense(graph, method="gcond", nodes=NODES, structure="free", **quick("gcond") | {"structure_hidden": 1})
    yield free, other, "structure=free"


def test_refusals(make_graph):
    for small, source, sentence in refusals(make_graph):
        with pytest.raises(GcondError, match=sentence):
            update(small, on=source)
    graph = make_graph()
    small = condense(graph, method="random", nodes=NODES)
    with pytest.raises(GcondError, match="either ratio or nodes"):
        update(small, on=graph, nodes=9, ratio=0.1)
    with pytest.raises(GcondError, match="too few for 3 classes"):
        update(small, on=graph, nodes=2)
    with pytest.raises(GcondError, match="labelled"):
        update(small, on=graph, nodes=79)


@pytest.mark.parametrize("most", [1.1, 1.3, 1.5, 1.8, 2.2, 3.0])
@pytest.mark.parametrize("nodes", [3, 9, 30])
def test_an_update_stretches_as_condensing_does_whatever_the_budget(nodes, most, make_graph, monkeypatch):
    graph = make_graph(sizes=(30, 30, 30))
    monkeypatch.setattr("gcond.methods.clusters.MOST_STRETCHED", most)
    first = condense(part(graph, torch.arange(80)), method="clusters", nodes=nodes)
    updated = update(first, on=part(graph, torch.arange(90)), nodes=nodes)
    anew = condense(part(graph, torch.arange(90)), method="clusters", nodes=nodes)
    assert updated.provenance.choices["spread"] == anew.provenance.choices["spread"]
