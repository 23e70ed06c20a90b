from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond import methods
from gcond.callbacks import Callback
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.provenance import KEPT_EPOCH, Provenance
from gcond.errors import GcondError
from gcond.graph.budget import nodes_per_class
from gcond.matching.probe import Probe
from gcond.matching.source_side import real_side
from gcond.matching.structure import PairwiseMLP
from gcond.methods.condense import condense
from gcond.methods.grow import added_per_class, grow

QUICK = {"epochs": 3, "outer": 2, "inner": 1, "probe_every": 0}
OLD, NEW = 9, 16
LEARNED = sorted(name for name, cls in methods.available().items() if cls.kind == "learned")
PAPER = {"teacher": "none", "init": "sample", "delta": 0.05}
"""Hard labels and a δ that is given."""


def quick(name, **changes):
    own = {"structure_hidden": 8, "edge_bias": 0.0} if name == "gcond" else {}
    return QUICK | own | changes


@pytest.fixture(scope="module", params=[*LEARNED, "gcond of the paper"])
def pair(request, make_graph):
    """A source, and what a learned method made of it."""
    source, name = make_graph(), request.param.split()[0]
    return source, condense(source, method=name, nodes=OLD, **quick(name, **(PAPER if name != request.param else {})))


@pytest.fixture(scope="module")
def structured(make_graph):
    source = make_graph()
    return source, condense(source, nodes=OLD, **quick("gcond", **PAPER))


@pytest.fixture(scope="module")
def taught(make_graph):
    """By all defaults but those that take time: a teacher, clusters, soft labels, and a δ that was chosen."""
    source = make_graph()
    return source, condense(source, nodes=OLD, **quick("gcond", probe_every=3, teacher="ridge"))


def among_old(graph):
    """Edges between the first nodes, in their order."""
    inside = (graph.edge_index < OLD).all(0)
    return graph.edge_index[:, inside], graph.edge_weight[inside]


def test_old_nodes_stay_bit_for_bit(pair):
    source, small = pair
    before = {key: tensor.clone() for key, tensor in small.tensors().items()}
    grown = grow(small, on=source, nodes=NEW)
    assert grown.num_nodes == NEW
    assert torch.equal(grown.x[:OLD], small.x)
    assert torch.equal(grown.y[:OLD], small.y)
    for mine, theirs in zip(among_old(grown), (small.edge_index, small.edge_weight), strict=True):
        assert torch.equal(mine, theirs)
    assert grown.structure.keys() == small.structure.keys()
    for key, tensor in small.structure.items():
        assert torch.equal(grown.structure[key], tensor)
    for key, tensor in small.tensors().items():
        assert torch.equal(tensor, before[key])


def test_classes_are_those_of_the_larger_budget(pair):
    source, small = pair
    grown = grow(small, on=source, nodes=NEW)
    target = nodes_per_class(NEW, source.class_counts())
    if small.y.dim() == 1:
        assert torch.equal(torch.bincount(grown.y), target)
        return
    # What labels add up to is what training sees of a class, and the old ones add up to its share.
    added = grown.y[OLD:]
    assert bool(((added == 0) | (added == 1)).all())
    torch.testing.assert_close(added.sum(1), torch.ones(NEW - OLD))
    shares = source.class_counts() / source.class_counts().sum()
    assert float((grown.y.sum(0) - NEW * shares).abs().max()) < 1


def test_only_a_structure_gives_edges(pair):
    source, small = pair
    grown = grow(small, on=source, nodes=NEW)
    assert (grown.num_edges > small.num_edges) == bool(small.structure)
    assert (grown.num_edges > 0) == bool(small.structure)


def test_new_nodes_are_learned(pair):
    source, small = pair
    starts = grow(small, on=source, nodes=NEW, lr_features=1e-12, epochs=1, outer=1)
    grown = grow(small, on=source, nodes=NEW)
    assert grown.provenance.history["loss"]
    moved = (grown.x - starts.x)[OLD:].abs().amax(1)
    assert bool((moved > 1e-3).all())


def test_the_same_seed_gives_the_same_graph(pair):
    source, small = pair
    first, again = grow(small, on=source, nodes=NEW, seed=3), grow(small, on=source, nodes=NEW, seed=3)
    assert first.sha256 == again.sha256
    assert first.provenance.seed == 3


def test_a_seed_draws_its_own_start(structured):
    source, small = structured
    found = {grow(small, on=source, nodes=NEW, init="sample", seed=seed).sha256 for seed in range(3)}
    assert len(found) == 3


@pytest.mark.parametrize("init", ["sample", "k-center", "means", "propagated-means", "noise"])
@pytest.mark.parametrize("nodes", [OLD + 1, 2 * OLD, 39])
def test_new_nodes_do_not_start_where_the_old_ones_did(init, nodes, make_graph):
    """Down to the last labelled node, and also after a second growth."""
    source = make_graph()
    still = {"init": init, "teacher": "none", "epochs": 0, "probe_every": 0}
    small = condense(source, method="gcond-x", nodes=OLD, **still)
    once = grow(small, on=source, nodes=OLD + 1)
    for old in (small, once) if nodes > OLD + 1 else (small,):
        x = grow(old, on=source, nodes=nodes).x
        assert len(torch.unique(x, dim=0)) == nodes


def test_starts_are_those_of_the_larger_graph(make_graph):
    """All labelled nodes of a class are there in the end, each once, whichever the old ones were."""
    source = make_graph()
    small = condense(source, method="gcond-x", nodes=OLD, init="sample", teacher="none", epochs=0, probe_every=0)
    grown = grow(small, on=source, nodes=39)
    rows = source.x[source.train_mask]
    assert torch.equal(torch.unique(grown.x, dim=0), torch.unique(rows, dim=0))


def test_connections_come_from_the_trained_function(structured):
    """Every new edge is what Φ says, with the statistics that it was finished with, and so are the old ones."""
    source, small = structured
    grown = grow(small, on=source, nodes=NEW)
    structure = PairwiseMLP(hidden=8)
    weights = structure.adjacency(small.structure, grown.x)
    delta = small.provenance.settings["delta"]
    expected = torch.where(weights > delta, weights, 0.0)
    torch.testing.assert_close(grown.adjacency(), expected, rtol=1e-4, atol=1e-5)
    # Statistics over the new pairs would have given something else.
    fresh = {key: tensor for key, tensor in small.structure.items() if key[:4] not in ("mean", "vari")}
    assert not torch.allclose(structure.adjacency(fresh, grown.x), weights, atol=1e-3)


def test_soft_labels_and_what_was_chosen_are_gone_on_with(taught, tmp_path):
    source, small = taught
    assert small.y.shape == (OLD, 3)
    grown = grow(small, on=source, nodes=NEW)
    once = grow(small, on=source, nodes=12)
    assert torch.equal(grown.y[:OLD], small.y)
    made, first = grown.provenance, small.provenance
    assert made.settings == first.settings
    assert (made.settings["delta"], made.start) == ("auto", "sample")
    delta = first.choices["delta"]
    chosen = {key: value for key, value in first.choices.items() if key != KEPT_EPOCH}  # of the old nodes' own run
    assert made.choices == chosen
    assert grow(once, on=source, nodes=NEW).provenance.choices == chosen
    weights = PairwiseMLP(hidden=8).adjacency(small.structure, grown.x)
    expected = torch.where(weights > delta, weights, 0.0)
    torch.testing.assert_close(grown.adjacency(), expected, rtol=1e-4, atol=1e-5)
    grown.save(tmp_path / "grown.safetensors")
    assert CondensedGraph.load(tmp_path / "grown.safetensors").provenance.parent["choices"] == first.choices
    given = grow(small, on=source, nodes=NEW, delta=0.2).provenance
    assert given.settings["delta"] == 0.2
    assert "delta" not in given.choices


def test_new_nodes_are_matched_with_what_the_old_ones_were(taught, monkeypatch):
    """All nodes, by the teacher's labels of the first seed, also in a second growth."""
    source, small = taught
    seen = []

    def watched(model, view, *rest):
        seen.append(view)
        return real_side(model, view, *rest)

    monkeypatch.setattr("gcond.methods.gradient_matching.real_side", watched)
    condense(source, nodes=OLD, **quick("gcond", teacher="ridge"))
    once = grow(small, on=source, nodes=12, seed=4)
    grow(once, on=source, nodes=NEW, seed=5)
    assert [len(view.nodes) for view in seen] == [source.num_nodes] * 3
    for view in seen[1:]:
        assert torch.equal(view.nodes, seen[0].nodes)
        assert torch.equal(view.y, seen[0].y)
    seen.clear()
    grow(small, on=source, nodes=12, teacher="none", init="sample")
    assert [len(view.nodes) for view in seen] == [int(source.train_mask.sum())]


@pytest.mark.parametrize("init", ["sample", "k-center", "means", "propagated-means", "noise"])
def test_soft_labels_that_stand_for_more_of_a_class_than_it_has_nodes(init, make_graph):
    """All old nodes are likeliest of the smallest class, and add up to a little more than is labelled of it."""
    source = make_graph()
    small = condense(source, method="gcond-x", nodes=OLD, init="sample", teacher="none", epochs=0, probe_every=0)
    y = torch.tensor([[0.3, 0.3, 0.4]]).repeat(OLD, 1)
    skewed = dataclasses.replace(small, y=y)
    assert int(source.class_counts()[2]) < OLD
    grown = grow(skewed, on=source, nodes=39, init=init)
    assert grown.num_nodes == 39
    assert len(torch.unique(grown.x[OLD:], dim=0)) == 39 - OLD


def test_delta_is_for_the_new_edges(structured):
    source, small = structured
    plain, pruned = grow(small, on=source, nodes=NEW), grow(small, on=source, nodes=NEW, delta=0.999)
    assert plain.num_edges > pruned.num_edges == small.num_edges
    shrunk = grow(small, on=source, nodes=NEW, sparsify="shrink")
    delta = small.provenance.settings["delta"]
    new = (plain.edge_index >= OLD).any(0)
    assert torch.equal(shrunk.edge_index, plain.edge_index)
    torch.testing.assert_close(shrunk.edge_weight[new], plain.edge_weight[new] - delta)


def test_directed_sources(make_graph):
    source = make_graph(directed=True)
    small = condense(source, nodes=OLD, **quick("gcond", **PAPER | {"delta": 0.0}))
    grown = grow(small, on=source, nodes=NEW)
    assert not torch.allclose(grown.adjacency(), grown.adjacency().T)
    assert grown.provenance.directed


def test_the_inductive_setting(make_graph):
    source = make_graph("inductive")
    small = condense(source, nodes=OLD, **quick("gcond"))
    assert grow(small, on=source, nodes=NEW).provenance.setting == "inductive"
    with pytest.raises(GcondError, match="its setting differ"):
        grow(small, on=source.with_setting("transductive"), nodes=NEW)


def test_growing_twice(structured):
    source, small = structured
    once = grow(small, on=source, nodes=12)
    twice = grow(once, on=source, nodes=NEW)
    assert torch.equal(twice.x[:12], once.x)
    assert twice.provenance.grown_from == once.sha256


def test_every_start_works_where_a_class_gets_nothing(structured):
    source, small = structured
    for init in ("sample", "k-center", "means", "propagated-means", "noise"):
        assert grow(small, on=source, nodes=OLD + 1, init=init).num_nodes == OLD + 1


def test_provenance(structured, tmp_path):
    source, small = structured
    scored = dataclasses.replace(
        small,
        provenance=dataclasses.replace(
            small.provenance,
            scores=({"model": "gcn", "settings": {}, "recipe": {}, "mean": 1, "std": 0, "runs": [1], "val_mean": 1},),
        ),
    )
    grown = grow(scored, on=source, nodes=NEW, epochs="2")
    made, first = grown.provenance, small.provenance
    assert (made.method, made.source, made.grown_from) == ("gcond", first.source, small.sha256)
    assert made.budget == {"nodes": NEW, "ratio": NEW / source.num_nodes}
    assert made.settings == first.settings | {"epochs": 2}
    assert len(made.history["loss"]) == 2
    assert made.scores == ()
    assert made.cost["wall_seconds"] > first.cost["wall_seconds"]
    assert first.grown_from == ""
    grown.save(tmp_path / "grown.safetensors")
    loaded = CondensedGraph.load(tmp_path / "grown.safetensors")
    assert (loaded.sha256, loaded.provenance.grown_from) == (grown.sha256, small.sha256)


def test_how_the_first_part_was_made_stays_in_the_file(structured, tmp_path):
    source, small = structured
    once = grow(small, on=source, nodes=12, seed=4, epochs=2)
    twice = grow(once, on=source, nodes=NEW, seed=5, epochs=1, delta=0.2)
    twice.save(tmp_path / "grown.safetensors")
    made = CondensedGraph.load(tmp_path / "grown.safetensors").provenance
    assert (made.seed, made.settings["epochs"], len(made.history["loss"])) == (5, 1, 1)
    parent, first = made.parent, made.parent["parent"]
    assert (parent["seed"], parent["settings"]["epochs"], parent["grown_from"]) == (4, 2, small.sha256)
    assert parent["history"] == once.provenance.history
    assert first["history"] == small.provenance.history
    assert first["settings"] == json.loads(json.dumps(small.provenance.settings))
    assert (first["seed"], first["budget"]["nodes"], first["parent"]) == (0, OLD, {})
    assert small.provenance.parent == {}
    with pytest.raises(GcondError, match=r"damaged metadata, provenance\.parent"):
        Provenance.from_json(made.to_json() | {"parent": {"budget": "many"}})
    old = {key: value for key, value in made.to_json().items() if key != "parent"}
    assert Provenance.from_json(old).parent == {}


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("options", [{}, {"delta": 0.6}, {"sparsify": "shrink"}])
def test_probes_look_at_the_graph_that_is_shipped(kept, options, make_graph, monkeypatch):
    """The old edges with the δ that they were made with, the new ones with their own."""
    source = make_graph()
    small = condense(source, nodes=OLD, **quick("gcond", **PAPER | {"delta": 0.05 if kept else 0.999}))
    assert bool(small.num_edges) == kept
    seen = []
    monkeypatch.setattr(Probe, "accuracy", lambda self, view: seen.append(view.inputs.adjacency) or len(seen) / 9)
    grown = grow(small, on=source, nodes=NEW, **{"probe_every": 3, "delta": 0.05} | options)
    shipped = grown.adjacency()
    assert len(seen) == 2
    torch.testing.assert_close(seen[-1], shipped)
    assert torch.equal(seen[0][:OLD, :OLD], shipped[:OLD, :OLD])


def test_files_names_and_callbacks(structured, tmp_path):
    source, small = structured
    small.save(tmp_path / "small.safetensors")
    source.save(tmp_path / "source.safetensors")

    class Count(Callback):
        epochs = 0

        def on_epoch(self, run):
            self.epochs += 1

    count = Count()
    by_path = grow(tmp_path / "small.safetensors", on=tmp_path / "source.safetensors", nodes=NEW, callbacks=[count])
    assert by_path.sha256 == grow(small, on=source, nodes=NEW).sha256
    assert count.epochs == QUICK["epochs"]


@given(
    labelled=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    present=st.lists(st.integers(1, 20), min_size=6, max_size=6),
    more=st.integers(1, 30),
)
def test_added_nodes_sum_up_and_are_never_negative(labelled, present, more):
    have = torch.tensor(present[: len(labelled)])
    total = int(have.sum()) + more
    added = added_per_class(total, torch.tensor(labelled), have)
    assert int(added.sum()) == more
    assert int(added.min()) >= 0
    target = nodes_per_class(total, torch.tensor(labelled))
    assert bool((added <= (target - have).clamp(min=0)).all())


def test_added_nodes_where_a_class_has_too_many_already():
    assert added_per_class(12, torch.tensor([10, 10, 10]), torch.tensor([8, 1, 1])).tolist() == [0, 1, 1]
    assert added_per_class(12, torch.tensor([10, 10, 10]), torch.tensor([4, 3, 3])).tolist() == [0, 1, 1]
    assert added_per_class(11, torch.tensor([10, 10, 10]), torch.tensor([9, 1, 0])).tolist() == [0, 0, 1]


def test_added_nodes_beside_soft_labels():
    counts = torch.tensor([10, 10, 10])
    assert added_per_class(12, counts, torch.tensor([2.9, 3.6, 2.5])).tolist() == [1, 0, 2]
    assert added_per_class(12, counts, torch.tensor([3.0, 3.0, 3.0])).tolist() == [1, 1, 1]
    assert added_per_class(12, counts, torch.tensor([8.4, 0.3, 2.3])).tolist() == [0, 1, 0]


@given(soft=st.lists(st.floats(0.1, 20), min_size=3, max_size=3), more=st.integers(1, 30))
def test_added_nodes_beside_soft_labels_sum_up(soft, more):
    present = torch.tensor(soft).double()
    old = max(3, round(float(present.sum())))
    present = present * old / present.sum()
    counts = torch.tensor([60, 30, 20])
    added = added_per_class(old + more, counts, present)
    assert int(added.sum()) == more
    assert int(added.min()) >= 0
    assert bool((added <= nodes_per_class(old + more, counts)).all())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": OLD}, "has 9 nodes already, and nodes=9 is the size after growing: use 10 or more"),
        ({"nodes": 40}, "more than the 39 labelled ones"),
        ({"nodes": 9.5}, "nodes=9.5 is not a whole number"),
        ({"nodes": NEW, "depth": 2}, "method 'gcond' has no setting 'depth'"),
        ({"nodes": NEW, "structure_hidden": 4}, "'structure_hidden' is of the structure, which stays as it was"),
        ({"nodes": NEW, "schedule": "joint"}, "'schedule' is of the structure"),
        ({"nodes": NEW, "init": "clusters"}, "init=clusters needs a teacher"),
    ],
)
def test_refusals(structured, options, message):
    source, small = structured
    with pytest.raises(GcondError, match=message):
        grow(small, on=source, **options)


def test_another_source_is_refused(structured, make_graph):
    _, small = structured
    with pytest.raises(GcondError, match=r"'random-1' is not the graph this was made from \('random-0'\)"):
        grow(small, on=make_graph(seed=1), nodes=NEW)


@pytest.mark.parametrize("then", [False, True])
def test_a_source_that_is_directed_now_and_was_not_then_is_refused(then, make_graph):
    """With both directions of every edge the tensors are the same: only the mark says how they are meant."""
    graph = make_graph()
    first, second = (dataclasses.replace(graph, directed=directed) for directed in (then, not then))
    small = condense(first, nodes=OLD, **quick("gcond", **PAPER))
    now, before = ("undirected", "directed") if then else ("directed", "undirected")
    with pytest.raises(GcondError, match=f"'random-0' is {now} and was {before} when this was made from it"):
        grow(small, on=second, nodes=NEW)
    assert grow(small, on=first, nodes=NEW).provenance.directed == then


@pytest.mark.parametrize("name", sorted(name for name, cls in methods.available().items() if cls.kind != "learned"))
def test_what_did_not_learn_is_refused(name, make_graph):
    source = make_graph()
    epochs = {"epochs": 2} if name in ("herding", "k-center") else {}
    small = condense(source, method=name, nodes=OLD, **epochs)
    with pytest.raises(GcondError, match=f"method '{name}' does not learn its nodes.*condense the source anew"):
        grow(small, on=source, nodes=NEW)


def test_a_free_structure_is_refused(make_graph):
    source = make_graph()
    small = condense(source, nodes=OLD, **quick("gcond", structure="free"))
    with pytest.raises(GcondError, match="structure=free has one number per pair of nodes"):
        grow(small, on=source, nodes=NEW)


def test_a_graph_of_unknown_making_is_refused(structured):
    source, small = structured
    with pytest.raises(GcondError, match="does not say how it was made"):
        grow(dataclasses.replace(small, provenance=None), on=source, nodes=NEW)


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept.clear(),
        lambda kept: kept.pop("mean0"),
        lambda kept: kept.update(weight1=torch.ones(2, 2)),
        lambda kept: kept.update(weight1=kept["weight1"].double()),
    ],
)
def test_a_structure_that_is_not_whole_is_refused(structured, change):
    source, small = structured
    kept = dict(small.structure)
    change(kept)
    with pytest.raises(GcondError, match="weights of the structure are missing or of another shape"):
        grow(dataclasses.replace(small, structure=kept), on=source, nodes=NEW)
