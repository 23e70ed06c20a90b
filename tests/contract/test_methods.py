"""What every method promises. A new file in ``gcond/methods`` comes under this suite by being there."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
import scipy.sparse
import torch
from torch_geometric.utils import subgraph

from gcond import methods
from gcond.callbacks import Callback, Checkpoint
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.config.settings import as_dict
from gcond.errors import GcondError
from gcond.graph.features import compact
from gcond.linalg.sparse import SparseMatrix, dense
from gcond.matching.probe import Probe
from gcond.methods.condense import condense
from gcond.runtime.tensor_file import read_tensors
from gcond.training.recipe import Recipe

# Settings that make a run short, for whichever of them a method has; probe_every=0 turns validation off.
QUICK = {"epochs": 4, "hidden": 8, "outer": 2, "inner": 1, "probe_every": 0, "structure_hidden": 16, "delta": 0.0}
NODES = 13

pytestmark = pytest.mark.parametrize("name", sorted(methods.available()))


def quick(name, **changes):
    fields = {field.name for field in dataclasses.fields(methods.find(name))}
    return {key: value for key, value in (QUICK | changes).items() if key in fields}


def run(graph, name, seed=0, nodes=NODES, callbacks=(), **changes):
    return condense(graph, method=name, nodes=nodes, seed=seed, callbacks=callbacks, **quick(name, **changes))


def kinds(make_graph, setting):
    """Graphs of every sort a method may meet in ``setting``."""
    yield make_graph(setting)
    yield make_graph(setting, features=60, density=0.05)
    yield make_graph(setting, weighted=True)
    yield make_graph(setting, directed=True, weighted=True)


class StopAfter(Callback):
    """Ends a run after so many epochs."""

    def __init__(self, epochs):
        self.epochs = epochs

    def on_epoch(self, run):
        if run.epoch == self.epochs:
            run.stop("the test says so")


@pytest.fixture
def brief_probes(monkeypatch):
    """How well a probe tells graphs apart does not matter here."""
    monkeypatch.setattr(Probe, "recipe", Recipe(epochs=10))


def assert_same_tensors(first, second):
    assert first.keys() == second.keys()
    for key, tensor in first.items():
        assert tensor.dtype == second[key].dtype
        assert torch.equal(tensor, second[key]), key


def fingerprint(graph):
    """Every tensor of a source graph, hashed by hand."""
    digest = hashlib.sha256()
    parts = [graph.y, graph.train_mask, graph.val_mask, graph.test_mask]
    for matrix in (graph.x, graph.adjacency):
        parts += [matrix.indptr, matrix.indices, matrix.values] if isinstance(matrix, SparseMatrix) else [matrix]
    for part in parts:
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()


def poison_labels(graph, mask):
    """``graph`` with the labels in ``mask`` permuted."""
    y = graph.y.clone()
    index = mask.nonzero().squeeze(1)
    y[index] = y[index[torch.randperm(len(index), generator=torch.Generator().manual_seed(99))]]
    assert not torch.equal(y, graph.y)
    return dataclasses.replace(graph, y=y)


def poison_nodes(graph, mask):
    """``graph`` with other features, labels and edges wherever a node in ``mask`` takes part."""
    stream = torch.Generator().manual_seed(99)
    n = graph.num_nodes
    x = dense(graph.x).clone()
    x[mask] = 1e3 * torch.randn(int(mask.sum()), graph.num_features, generator=stream)
    x = compact(x)  # on entry, the form of the features follows from all of them
    y = torch.where(mask, torch.randint(graph.num_classes, (n,), generator=stream), graph.y)
    touched = mask[:, None] | mask[None, :]
    garbage = 5 * (torch.rand(n, n, generator=stream) < 0.3).float().triu(1)
    garbage = garbage if graph.directed else garbage + garbage.T
    adjacency = torch.where(touched, garbage, graph.adjacency.to_dense())
    sparse = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(adjacency.numpy()), symmetric=not graph.directed)
    return dataclasses.replace(graph, x=x, y=y, adjacency=sparse)


def test_describes_itself(name):
    method = methods.find(name)
    assert method.__doc__.strip()
    assert not method.__doc__.startswith(method.__name__ + "(")  # what dataclass writes where nobody did
    assert method.name == name
    assert method.summary
    assert "\n" not in method.summary
    assert method.citation
    assert method.kind in ("selected", "merged", "learned")
    assert method.__dataclass_params__.frozen


def test_is_exported(name):
    cls = methods.find(name)
    assert cls.__name__ in methods.__all__
    assert getattr(methods, cls.__name__) is cls


def test_an_instance_does_as_its_name_does(name, graph):
    method = methods.find(name)(**quick(name))
    assert condense(graph, method=method, nodes=NODES).sha256 == run(graph, name).sha256


def test_same_seed_same_result(name, setting, make_graph, tmp_path):
    for number, graph in enumerate(kinds(make_graph, setting)):
        again = dataclasses.replace(graph)  # without anything the first run may have cached
        first, second = run(graph, name, seed=5), run(again, name, seed=5)
        assert first.sha256 == second.sha256
        first.save(tmp_path / f"a{number}")
        second.save(tmp_path / f"b{number}")
        assert_same_tensors(read_tensors(tmp_path / f"a{number}")[0], read_tensors(tmp_path / f"b{number}")[0])


def test_global_random_state_is_neither_read_nor_changed(name, graph):
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = run(graph, name)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert run(graph, name).sha256 == first.sha256


def test_different_seed_different_result(name, graph):
    if name == "random" or methods.find(name).kind == "learned":
        assert len({run(graph, name, seed=seed).sha256 for seed in range(5)}) == 5
    else:
        # A deterministic method may ignore its seed; it still records it.
        assert run(graph, name, seed=1).provenance.seed == 1


def test_source_graph_is_left_untouched(name, setting, make_graph):
    for graph in kinds(make_graph, setting):
        before = fingerprint(graph)
        run(graph, name)
        assert fingerprint(graph) == before


def test_test_labels_are_never_read(name, setting, make_graph):
    for graph in kinds(make_graph, setting):
        assert_same_tensors(run(graph, name).tensors(), run(poison_labels(graph, graph.test_mask), name).tensors())


def test_probing_reads_validation_labels_and_nothing_of_the_test(name, graph, brief_probes):
    if "probe_every" not in quick(name):
        return  # what probes nothing is covered by the tests around
    options = {"probe_every": 1, "probe_share": 0.99, "init": "sample", "teacher": "none"}
    clean = run(graph, name, **options)
    poisoned = [poison_labels(graph, graph.test_mask)]
    if graph.setting == "inductive":
        poisoned.append(poison_nodes(graph, ~(graph.train_mask | graph.val_mask)))
    for other in poisoned:
        found = run(other, name, **options)
        assert_same_tensors(clean.tensors(), found.tensors())
        assert found.provenance.history == clean.provenance.history
    blind = run(poison_labels(graph, graph.val_mask), name, **options)
    assert blind.provenance.history["probe"] != clean.provenance.history["probe"]
    assert blind.provenance.history["loss"] == clean.provenance.history["loss"]  # they choose, and teach nothing


def test_defaults_read_nothing_of_the_test_either(name, graph, brief_probes):
    """With a teacher and probes, where the method has them; a teacher may choose by validation labels."""
    usual = quick(name).keys() & {"epochs", "outer", "inner", "hidden"}
    options = {key: QUICK[key] for key in usual}
    poisoned = [poison_labels(graph, graph.test_mask)]
    if graph.setting == "inductive":
        poisoned.append(poison_nodes(graph, ~(graph.train_mask | graph.val_mask)))
    clean = condense(graph, method=name, nodes=NODES, **options)
    for other in poisoned:
        found = condense(other, method=name, nodes=NODES, **options)
        assert_same_tensors(clean.tensors(), found.tensors())
        assert found.provenance.history == clean.provenance.history
        assert found.provenance.choices == clean.provenance.choices


def test_inductive_sees_training_nodes_only(name, make_graph):
    for graph in kinds(make_graph, "inductive"):
        poisoned = poison_nodes(graph, ~graph.train_mask)
        clean, dirty = run(graph, name).tensors(), run(poisoned, name).tensors()
        assert_same_tensors(clean, dirty)


def test_the_budget_is_met_and_every_class_is_there(name, graph):
    for nodes in (3, 4, NODES, int(graph.train_mask.sum())):
        result = run(graph, name, nodes=nodes)
        assert result.num_nodes == nodes
        assert result.hard_labels.unique().tolist() == [0, 1, 2]
        assert result.x.shape[1] == graph.num_features


def test_everything_is_finite_and_as_symmetric_as_the_source(name, setting, make_graph):
    for graph in kinds(make_graph, setting):
        result = run(graph, name)
        for tensor in result.tensors().values():
            assert bool(torch.isfinite(tensor.double()).all())
        if result.num_edges:
            adjacency = result.adjacency()
            assert torch.equal(adjacency, adjacency.T) != graph.directed
            assert not adjacency.diagonal().any()
            assert bool((adjacency >= 0).all())
        assert result.provenance.directed == graph.directed


def without_edges(graph):
    empty = scipy.sparse.csr_matrix((graph.num_nodes, graph.num_nodes), dtype="float32")
    return dataclasses.replace(graph, adjacency=SparseMatrix.from_scipy(empty, symmetric=True))


def without_validation(graph):
    return dataclasses.replace(graph, val_mask=torch.zeros_like(graph.val_mask))


def with_one_node_of_a_class(graph):
    """One node of the last class trains; the others that did are not labelled any more."""
    spare = ((graph.y == 2) & graph.train_mask).nonzero().squeeze(1)[1:]
    y, train = graph.y.clone(), graph.train_mask.clone()
    y[spare], train[spare] = -1, False
    return dataclasses.replace(graph, y=y, train_mask=train)


@pytest.mark.parametrize("odd", [without_edges, without_validation, with_one_node_of_a_class])
def test_graphs_that_lack_something(odd, name, graph):
    """Sizes, classes and numbers are as ever, and so is what the same seed gives."""
    lacking = odd(graph)
    result = run(lacking, name, nodes=6)
    assert result.num_nodes == 6
    assert result.hard_labels.unique().tolist() == [0, 1, 2]
    for tensor in result.tensors().values():
        assert bool(torch.isfinite(tensor.double()).all())
    assert run(odd(graph), name, nodes=6).sha256 == result.sha256


def test_stopped_and_resumed_equals_uninterrupted(name, setting, make_graph, tmp_path, brief_probes):
    if methods.find(name).kind != "learned":
        return  # one step cannot be interrupted
    for number, graph in enumerate(kinds(make_graph, setting)):
        options = {"probe_every": 2 * (number % 2), "probe_share": 0.99}
        path = tmp_path / f"checkpoint{number}"
        stopped = run(graph, name, callbacks=[Checkpoint(path), StopAfter(2)], **options)
        resumed = run(graph, name, callbacks=[Checkpoint(path, resume=True)], **options)
        whole = run(graph, name, **options)
        assert len(stopped.provenance.history["loss"]) == 2
        assert_same_tensors(resumed.tensors(), whole.tensors())
        assert dataclasses.replace(resumed.provenance, cost={}) == dataclasses.replace(whole.provenance, cost={})


def test_save_then_load_gives_it_back(name, graph, tmp_path):
    result = run(graph, name)
    result.save(tmp_path / "small.safetensors")
    back = CondensedGraph.load(tmp_path / "small.safetensors")
    assert_same_tensors(result.tensors(), back.tensors())
    assert back.provenance == result.provenance
    assert back.sha256 == result.sha256


def test_provenance_is_complete(name, graph):
    provenance = run(graph, name, seed=7).provenance
    assert provenance.method == name
    assert provenance.seed == 7
    assert provenance.settings == as_dict(methods.find(name)(**quick(name)))
    assert provenance.budget == {"nodes": NODES, "ratio": NODES / graph.budget_population}
    assert provenance.setting == graph.setting
    assert provenance.source["sha256"] == dataclasses.replace(graph).sha256
    assert provenance.source["name"] == graph.name
    assert provenance.source["nodes"] == graph.num_nodes
    assert provenance.source["edges"] == graph.num_edges
    assert provenance.source["features"] == graph.num_features
    assert provenance.num_classes == 3
    assert provenance.transform == {"kind": "none"}
    assert provenance.cost.keys() >= {"wall_seconds", "cpu_seconds", "peak_rss_mb"}
    assert all(value >= 0 for value in provenance.cost.values())
    assert provenance.gcond_version


def test_settings_refuse_unknown_keys(name, graph):
    with pytest.raises(GcondError, match=f"method '{name}' has no setting 'no_such_setting'"):
        condense(graph, method=name, nodes=NODES, no_such_setting=1)


def test_selected_nodes_are_the_source_s_own(name, setting, make_graph):
    if methods.find(name).kind != "selected":
        assert run(make_graph(setting), name).source_index is None
        return
    for graph in kinds(make_graph, setting):
        result = run(graph, name)
        index = result.source_index
        assert len(index.unique()) == NODES
        assert bool(graph.train_mask[index].all())
        assert torch.equal(result.x, dense(graph.x)[index])
        assert torch.equal(result.y, graph.y[index])
        # PyG's own induced subgraph, its nodes renamed to their place in the result.
        data = graph.to_pyg()
        edge_index, weight = subgraph(index, data.edge_index, data.edge_weight, num_nodes=graph.num_nodes)
        place = torch.full((graph.num_nodes,), -1)
        place[index] = torch.arange(NODES)
        expected = torch.zeros(NODES, NODES)
        expected[place[edge_index[1]], place[edge_index[0]]] = weight
        assert edge_index.shape[1] == result.num_edges > 0
        assert torch.equal(result.adjacency(), expected)
