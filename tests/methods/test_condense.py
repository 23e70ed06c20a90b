from __future__ import annotations

import dataclasses
import inspect
import warnings
from dataclasses import dataclass

import pytest
import torch

from gcond import methods
from gcond.callbacks import Callback
from gcond.cli import condense as command_line
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.data import load
from gcond.errors import GcondError, GcondWarning
from gcond.graph.source_graph import SourceGraph
from gcond.methods.condense import DEFAULT_METHOD, condense
from gcond.methods.grow import grow
from gcond.methods.method import Method, induced_subgraph
from gcond.transforms import Condense

QUICK = {"epochs": 4, "outer": 2, "inner": 1, "probe_every": 0, "structure_hidden": 8}


def test_budget_by_ratio_and_by_nodes(make_graph):
    graph = make_graph()
    assert condense(graph, method="random", ratio="20%").num_nodes == 16  # of 80 nodes
    assert condense(graph, method="random", ratio=0.2).sha256 == condense(graph, method="random", nodes=16).sha256
    inductive = make_graph("inductive")
    assert condense(inductive, method="random", ratio="20%").num_nodes == round(0.2 * int(graph.train_mask.sum()))


def test_ratio_is_never_more_than_the_labelled(make_graph):
    graph = make_graph()
    assert condense(graph, method="random", ratio=1).num_nodes == int(graph.train_mask.sum())


def test_quota_follows_the_classes(make_graph):
    result = condense(make_graph(sizes=(80, 40, 40)), method="random", nodes=20)
    assert torch.bincount(result.y).tolist() == [10, 5, 5]


def test_pyg_data_is_taken_and_left_alone(make_graph):
    graph = make_graph()
    data = graph.to_pyg()
    before = {key: value.clone() for key, value in data.to_dict().items()}
    result = condense(data, method="random", nodes=9, seed=4)
    assert result.sha256 == condense(graph, method="random", nodes=9, seed=4).sha256
    for key, value in data.to_dict().items():
        assert torch.equal(value, before[key])


def bare_data(graph):
    """``graph`` as a person may have it: no masks, and every edge in one direction only."""
    data = graph.to_pyg()
    for part in ("train", "val", "test"):
        del data[f"{part}_mask"]
    data.y = data.y.clamp(min=0)
    one_way = data.edge_index[0] < data.edge_index[1]
    data.edge_index, data.edge_weight = data.edge_index[:, one_way], data.edge_weight[one_way]
    return data


@pytest.mark.parametrize("call", [lambda data: condense(data, method="random", nodes=9), Condense("random", nodes=9)])
def test_what_loading_decided_is_said_once(call, make_graph, monkeypatch):
    monkeypatch.setattr("gcond.errors._SAID", set())
    data = bare_data(make_graph(sizes=(60, 60, 60)))
    notes = load(data).notes
    assert len(notes) == 2
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call(data)
        call(data)  # which has been said, so that it is not said again
    said = [(GcondWarning, f"data: {note}") for note in notes]
    assert [(each.category, str(each.message)) for each in heard] == said


def test_a_source_graph_has_said_it_before(make_graph):
    graph = load(bare_data(make_graph(sizes=(60, 60, 60))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        condense(graph, method="random", nodes=9)


def test_the_setting_and_the_direction_are_passed_on(make_graph):
    source = make_graph(directed=True)
    data = source.to_pyg()
    made = condense(data, method="random", nodes=9, setting="inductive", directed=True).provenance
    assert (made.setting, made.directed) == ("inductive", True)
    assert made.source["sha256"] == source.with_setting("inductive").sha256
    whole = Condense("random", nodes=39, directed=True)(data)
    assert not torch.equal(*(torch.unique(e, dim=1) for e in (whole.edge_index, whole.edge_index.flip(0))))
    assert Condense("random", nodes=9, setting="inductive").options["setting"] == "inductive"
    with pytest.raises(GcondError, match="unknown setting 'deductive'"):
        condense(data, method="random", nodes=9, setting="deductive")
    with pytest.raises(GcondError, match="already made undirected"):
        condense(make_graph(), method="random", nodes=9, directed=True)


def test_gcond_is_the_default_here_and_on_the_command_line(make_graph):
    assert condense(make_graph(), nodes=5, **QUICK).provenance.method == "gcond"
    assert command_line.DEFAULT_METHOD == DEFAULT_METHOD == "gcond"


@pytest.mark.parametrize("function", [condense, grow, Condense.__init__])
def test_no_setting_has_the_name_of_an_argument(function):
    arguments = set(inspect.signature(function).parameters) - {"options"}
    for name, cls in methods.available().items():
        assert not arguments & {field.name for field in dataclasses.fields(cls)}, name


def test_a_checkpoint_by_its_path_is_taken_up_and_stays(make_graph, tmp_path):
    class Interrupt(Callback):
        def on_epoch(self, run):
            if run.epoch == 2:
                run.stop("interrupted")

    class Started(Callback):
        at = None

        def on_start(self, run):
            self.at = run.epoch

    graph, path, started = make_graph(), tmp_path / "run", Started()
    whole = condense(graph, nodes=5, **QUICK)
    condense(graph, nodes=5, checkpoint=path, callbacks=[Interrupt()], **QUICK)
    resumed = condense(graph, nodes=5, checkpoint=str(path), resume=True, callbacks=[started], **QUICK)
    assert started.at == 2  # other callbacks look when the checkpoint has been taken up
    assert resumed.sha256 == whole.sha256
    assert path.exists()
    condense(graph, nodes=5, checkpoint=path, callbacks=[started], **QUICK)
    assert started.at == 0


def test_resuming_without_a_checkpoint(make_graph, tmp_path):
    with pytest.raises(GcondError, match=r"resume .* checkpoint="):
        condense(make_graph(), nodes=5, resume=True)
    fresh = condense(make_graph(), nodes=5, checkpoint=tmp_path / "none", resume=True, **QUICK)
    assert fresh.sha256 == condense(make_graph(), nodes=5, **QUICK).sha256


def test_what_does_not_learn_passes_checkpoints_over(make_graph, tmp_path):
    condense(make_graph(), method="random", nodes=5, checkpoint=tmp_path / "run", resume=True)
    assert list(tmp_path.iterdir()) == []


def test_settings_go_before_those_of_the_recipe(make_graph, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[gcond]\nepochs = 2\nouter = 3\n")
    settings = condense(make_graph(), nodes=5, recipe=path, **(QUICK | {"epochs": 1})).provenance.settings
    assert (settings["epochs"], settings["outer"]) == (1, QUICK["outer"])
    del (fewer := dict(QUICK))["outer"]
    assert condense(make_graph(), nodes=5, recipe=path, **fewer).provenance.settings["outer"] == 3


def test_settings_in_text_are_recorded_as_values(make_graph):
    result = condense(make_graph(), method="k-center", nodes=5, epochs="2", hidden="4", lr="1e-2")
    settings = result.provenance.settings
    assert (settings["epochs"], settings["hidden"], settings["lr"]) == (2, 4, 0.01)


def test_a_list_in_text(make_graph):
    made = condense(make_graph(), nodes=5, fanout="4, 2", **QUICK).provenance.settings
    assert list(made["fanout"]) == [4, 2]
    with pytest.raises(GcondError, match=r"setting fanout='many' is not usable"):
        condense(make_graph(), nodes=5, fanout="many", **QUICK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "k-centre", "nodes": 5},
            r"^unknown method 'k-centre' \(did you mean 'k-center'\?\): choose one of ",
        ),
        (
            {"method": "random", "nodes": 5, "epochs": 3},
            "^method 'random' has no setting 'epochs': it has no settings$",
        ),
        ({"method": "random"}, "either ratio or nodes"),
        ({"method": "random", "nodes": 2}, "2 nodes are too few for 3 classes: use nodes=3 or more"),
        ({"method": "random", "nodes": 41}, "more than the 39 labelled ones"),
        ({"method": "random", "ratio": "0.1%"}, "ratio 0.1% of 80 nodes is 0 nodes, but there are 3 classes"),
    ],
)
def test_refusals(make_graph, options, message):
    with pytest.raises(GcondError, match=message):
        condense(make_graph(), **options)


@dataclass(frozen=True)
class FirstOfEachClass(Method):
    """A method of a person's own, known to no registry."""

    name = "first"
    kind = "selected"
    summary = "The first labelled nodes of each class."
    citation = "none"

    skip: int = 0
    """How many to pass over in each class."""

    def reduce(self, task, callbacks=()):
        train = task.train
        chosen = [
            train.nodes[train.y == label][self.skip : self.skip + size]
            for label, size in enumerate(task.quota.tolist())
        ]
        return induced_subgraph(task, torch.cat(chosen))


def test_a_method_of_ones_own(make_graph, tmp_path):
    graph = make_graph()
    first, second = (condense(graph, method=FirstOfEachClass(skip=skip), nodes=6) for skip in (0, 1))
    assert first.sha256 != second.sha256
    assert (second.provenance.method, second.provenance.settings) == ("first", {"skip": 1})
    second.save(tmp_path / "mine.safetensors")
    assert CondensedGraph.load(tmp_path / "mine.safetensors").sha256 == second.sha256
    transform = Condense(FirstOfEachClass(skip=1), nodes=6)
    assert repr(transform) == "Condense(first, nodes=6)"
    assert torch.equal(transform(graph.to_pyg()).x, second.x)


def test_a_method_by_name_or_by_its_settings(make_graph):
    by_name = condense(make_graph(), method="herding", nodes=6, epochs=2)
    assert condense(make_graph(), method=methods.find("herding")(epochs=2), nodes=6).sha256 == by_name.sha256


@pytest.mark.parametrize(("more", "named"), [({"epochs": 3}, "epochs"), ({"recipe": "cora"}, "recipe")])
def test_a_method_brings_its_own_settings(make_graph, more, named):
    with pytest.raises(GcondError, match=f"GCond .*{named}"):
        condense(make_graph(), method=methods.find("gcond")(), nodes=6, **more)


def test_one_class_and_one_node():
    one = SourceGraph.build(
        name="one",
        x=torch.ones(1, 1),
        edge_index=torch.empty(2, 0, dtype=torch.long),
        y=torch.zeros(1, dtype=torch.long),
        train=torch.tensor([0]),
        val=torch.tensor([], dtype=torch.long),
        test=torch.tensor([], dtype=torch.long),
    )
    for method, options in {"random": {}, "herding": {"epochs": 2}, "k-center": {"epochs": 2}}.items():
        assert condense(one, method=method, nodes=1, **options).source_index.tolist() == [0]
        assert condense(one.with_setting("inductive"), method=method, ratio=1, **options).num_nodes == 1
