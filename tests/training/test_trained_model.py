"""Trained models: the weights of ``evaluate``, kept in a file that is whole or refused, and what they predict."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import gcond
from gcond import models
from gcond.errors import GcondError
from gcond.graph.features import FeatureTransform
from gcond.graph.node_ids import NodeIds
from gcond.models import GCN
from gcond.runtime.tensor_file import read_tensors, write_tensors
from gcond.training.trained_model import TrainedModel
from reference.damage import damaged_headers, damaged_tensors, sentence

BRIEF = {"epochs": 20, "hidden": 8}


@pytest.fixture(scope="session")
def brief():
    """Train briefly, with a narrow model."""

    def train(graph, on=None, name="gcn", **options):
        return gcond.train(graph, on=on, model=dataclasses.replace(models.find(name)(), hidden=8), epochs=20, **options)

    return train


@pytest.fixture
def trained(make_graph, brief):
    return brief(make_graph())


@torch.no_grad()
def by_hand(model, graph, part):
    """Class probabilities of a part's nodes from first principles: the model on that part's own view."""
    view = graph.view(part)
    scores = model.model.logits(model.parameters, view.inputs)[view.nodes]
    return (model.record.sharpness * scores).softmax(1)


def test_predictions_are_the_model_on_each_part_s_own_view(graph, brief):
    model = brief(graph)
    for part in ("train", "val", "test"):
        found = model.predict(graph, part)
        torch.testing.assert_close(found.probabilities, by_hand(model, graph, part), rtol=1e-4, atol=1e-6)
        assert found.nodes.tolist() == graph.mask(part).nonzero().squeeze(1).tolist()
    assert ("induced by each part" in found.computed_on) == (graph.setting == "inductive")


def test_nodes_in_no_part_see_each_other_alone_in_the_inductive_setting(make_graph, brief):
    graph = make_graph("inductive")
    model = brief(graph)
    others = ~(graph.train_mask | graph.val_mask | graph.test_mask)
    view = graph.induced_view(others)
    expected = (model.record.sharpness * model.model.logits(model.parameters, view.inputs)).softmax(1)
    torch.testing.assert_close(model.predict(graph, "unlabelled").probabilities, expected, rtol=1e-4, atol=1e-6)
    whole = model.predict(graph.with_setting("transductive"), "unlabelled")
    assert not torch.allclose(whole.probabilities, expected, atol=1e-3)


@pytest.mark.parametrize("name", models.available())
def test_a_node_s_prediction_does_not_depend_on_who_is_asked_for(name, graph, brief):
    model = brief(graph, name=name)
    everyone = model.predict(graph)
    assert torch.equal(everyone.probabilities.sum(1).round(decimals=5), torch.ones(graph.num_nodes))
    some = torch.tensor([70, 3, 41, 3])
    assert torch.equal(model.predict(graph, some).probabilities, everyone.probabilities[some])


@pytest.mark.parametrize("name", models.available())
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_pyg_s_module_predicts_the_same(name, weighted, directed, make_graph, brief):
    graph = make_graph(weighted=weighted, directed=directed)
    model = brief(gcond.condense(graph, method="random", nodes=9), on=graph, name=name, dropout=0.5)
    assert (model.record.weighted, model.record.directed) == (weighted, directed)
    data = graph.to_pyg()
    with torch.no_grad():
        scores = model.to_pyg()(data.x, data.edge_index, data.edge_weight)
    scores = model.record.sharpness * scores
    torch.testing.assert_close(scores.softmax(1), model.predict(graph).probabilities, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", models.available())
def test_save_then_load_gives_it_back(name, make_graph, brief, tmp_path):
    graph = make_graph()
    model = brief(graph, name=name)
    model.save(tmp_path / "m.safetensors")
    back = gcond.load_model(tmp_path / "m.safetensors")
    assert (back.model, back.record, back.sha256) == (model.model, model.record, model.sha256)
    assert torch.equal(back.predict(graph).probabilities, model.predict(graph).probabilities)


def test_the_file_says_what_was_trained_and_how(make_graph, brief, tmp_path):
    graph = dataclasses.replace(make_graph(), class_names=("a", "b", "c"))
    small = gcond.condense(graph, method="random", nodes=9, seed=4)
    model = brief(small, on=graph, seed=2)
    model.save(tmp_path / "m.safetensors")
    tensors, metadata = read_tensors(tmp_path / "m.safetensors")
    said = metadata["training"]
    assert set(tensors) == {"weight0", "bias0", "weight1", "bias1"}
    assert (metadata["format"], metadata["kind"], metadata["sha256"]) == (1, "model", model.sha256)
    assert metadata["model"]["name"] == "gcn"
    assert metadata["model"]["settings"]["hidden"] == 8
    assert said["recipe"]["epochs"] == 20
    assert said["class_names"] == ["a", "b", "c"]
    assert said["num_features"] == 12
    assert said["transform"] == {"kind": "none"}
    assert said["trained_on"] == {"method": "random", "nodes": 9, "sha256": small.sha256, "seed": 4}
    assert (said["source"]["name"], said["source"]["sha256"]) == (graph.name, graph.sha256)
    assert said["seed"] == 2
    assert said["gcond_version"] == gcond.__version__
    assert 0 < said["val_accuracy"] <= 1
    assert 0 < said["test_accuracy"] <= 1


def test_a_model_of_ones_own_is_read_with_its_class(make_graph, tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Mine(GCN):
        name = "mine"

    graph = make_graph()
    model = gcond.train(graph, model=Mine(hidden=4), epochs=5)
    model.save(tmp_path / "m.safetensors")
    with pytest.raises(GcondError, match="unknown model 'mine'"):
        gcond.load_model(tmp_path / "m.safetensors")
    back = gcond.load_model(tmp_path / "m.safetensors", Mine)
    assert torch.equal(back.predict(graph).probabilities, model.predict(graph).probabilities)


def test_every_damage_is_one_sentence_or_no_damage(trained, tmp_path):
    """A changed byte of the weights is always noticed; one of the header is, or changes nothing that matters."""
    path = tmp_path / "m.safetensors"
    trained.save(path)
    whole = path.read_bytes()
    for bad in damaged_tensors(whole):
        path.write_bytes(bad)
        said = sentence(gcond.load_model, path)
        assert bad == whole or said is not None
    for bad in damaged_headers(whole):
        path.write_bytes(bad)
        said = sentence(gcond.load_model, path)
        assert said is None or "\n" not in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, m: t.pop("bias0"), "its weights are not those that were written"),
        (lambda t, m: m.pop("sha256"), "damaged metadata"),
        (lambda t, m: m.pop("training"), "damaged metadata"),
        (lambda t, m: m.update(model="gcn"), "damaged metadata"),
        (lambda t, m: m["model"].update(name="gnc"), "unknown model 'gnc'"),
        (lambda t, m: m["model"]["settings"].update(hidden=9), "'weight0' is .* and must be"),
        (lambda t, m: m["model"]["settings"].update(depth=9), "no setting 'depth'"),
        (lambda t, m: m["training"].update(num_features=11), "'weight0' is"),
        (lambda t, m: m["training"].update(num_classes=0), "num_classes"),
        (lambda t, m: m["training"].update(class_names=["a"]), "1 class names for 3 classes"),
        (lambda t, m: m["training"].update(setting="deductive"), "training.setting"),
        (lambda t, m: m["training"].update(transform={"kind": "odd"}), "transform 'odd' is unknown"),
        (lambda t, m: m["training"].update(val_accuracy=7), "val_accuracy"),
        (lambda t, m: m["training"]["recipe"].update(epochs=0), "epochs must be at least 1"),
        (lambda t, m: m.update(kind="condensed"), "holds a condensed graph"),
        (lambda t, m: m.update(format=99), "format 99"),
    ],
)
def test_a_file_that_is_no_model(trained, tmp_path, change, words):
    path = tmp_path / "m.safetensors"
    trained.save(path)
    tensors, metadata = read_tensors(path)
    change(tensors, metadata)
    write_tensors(path, tensors, metadata)
    with pytest.raises(GcondError, match=words) as error:
        gcond.load_model(path)
    assert str(error.value).startswith(f"'{path}'")


def test_files_of_other_kinds(make_graph, tmp_path):
    graph = make_graph()
    graph.save(tmp_path / "source.safetensors")
    gcond.condense(graph, method="random", nodes=9).save(tmp_path / "small.safetensors")
    save_file({"weight0": torch.ones(2, 2)}, tmp_path / "other.safetensors")
    for name, words in {
        "source": "holds a source graph",
        "small": "holds a condensed graph",
        "other": "no model of gcond's",
        "none": "there is no file",
    }.items():
        with pytest.raises(GcondError, match=words):
            gcond.load_model(tmp_path / f"{name}.safetensors")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p.pop("bias1"), "'bias1' is missing"),
        (lambda p: p.update(bias1=p["bias1"].double()), "float64"),
        (lambda p: p.update(bias1=p["bias1"] * torch.nan), "not finite"),
        (lambda p: p.update(more=torch.ones(1)), "a weight 'more'"),
    ],
)
def test_weights_that_are_not_the_model_s(trained, change, words):
    parameters = dict(trained.parameters)
    change(parameters)
    with pytest.raises(GcondError, match=words):
        TrainedModel(trained.model, parameters, trained.record)


# --- other graphs
@pytest.fixture
def write_tables(tmp_path):
    """A graph as tables of text, as a person has it."""

    def write(graph, name="mine", *, labels=True, ids=None):
        folder = tmp_path / name
        folder.mkdir()
        x = graph.x.numpy()
        label = ["" if each < 0 else f"kind{each}" for each in graph.y.tolist()]
        ids = ids or [f"n{at}" for at in range(graph.num_nodes)]
        head = ["id", *(["label"] if labels else []), *(f"f{at}" for at in range(x.shape[1]))]
        rows = [
            ",".join([own, *([kind] if labels else []), *(repr(float(value)) for value in values)])
            for own, kind, values in zip(ids, label, x, strict=True)
        ]
        (folder / "nodes.csv").write_text("\n".join([",".join(head), *rows]) + "\n")
        ends = [f"{ids[i]},{ids[j]}" for i, j in graph.adjacency.edge_index.T.tolist()]
        (folder / "edges.csv").write_text("\n".join(["source,target", *ends]) + "\n")
        return folder

    return write


def test_tables_without_labels_get_the_model_s_own_transform(make_graph, brief, write_tables):
    """The statistics are those of training: other features standardised by their own would be others."""
    source = gcond.load(write_tables(make_graph(seed=0)), features="standardise")
    model = brief(source)
    other = make_graph(seed=5)
    folder = write_tables(other, "other", labels=False)
    with pytest.raises(GcondError, match="no column 'label'"):
        gcond.load(folder)
    found = model.predict(folder)
    recorded = FeatureTransform.from_json(model.record.transform)
    assert (recorded.kind, len(recorded.mean)) == ("standardise", 12)
    alike = dataclasses.replace(other, x=recorded.apply(other.x), transform=recorded)
    torch.testing.assert_close(found.probabilities, by_hand_on_all(model, alike), rtol=1e-4, atol=1e-5)
    assert found.ids.to_list()[:2] == ["n0", "n1"]
    assert found.class_names == ("kind0", "kind1", "kind2")
    assert found.accuracy() is None


@torch.no_grad()
def by_hand_on_all(model, graph):
    return (model.record.sharpness * model.model.logits(model.parameters, graph.view("train").inputs)).softmax(1)


def test_a_graph_of_three_nodes_and_one_label(make_graph, brief, write_tables):
    """Fewer nodes than classes, and a class with one node, which could neither be split nor trained on."""
    model = brief(gcond.load(write_tables(make_graph()), features="none"))
    graph = make_graph(seed=7)
    tiny = write_tables(graph, "tiny")
    lines = (tiny / "nodes.csv").read_text().splitlines()
    (tiny / "nodes.csv").write_text("\n".join(lines[:4]) + "\n")
    (tiny / "edges.csv").write_text("source,target\nn0,n1\n")
    found = model.predict(tiny)
    assert found.probabilities.shape == (3, 3)
    with pytest.raises(GcondError, match="has no test nodes"):
        model.predict(tiny, "test")


def test_labels_are_compared_by_name(make_graph, brief, write_tables):
    """Another table may lack a class, by which its classes are numbered otherwise."""
    model = brief(gcond.load(write_tables(make_graph()), features="none"))
    graph = make_graph()
    without = dataclasses.replace(graph, y=torch.where(graph.y == 0, -1, graph.y))
    folder = write_tables(without, "without")
    found = model.predict(folder)
    assert found.label_names == ("kind1", "kind2")
    labelled = without.y >= 1
    expected = (found.classes == graph.y)[labelled].double().mean()
    assert found.accuracy() == pytest.approx(float(expected))


def test_whole_numbers_as_ids_stay_whole_numbers(make_graph, brief, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    graph = make_graph()
    table = {"id": np.arange(80) * 10, "label": [None if y < 0 else y for y in graph.y.tolist()]}
    table["features"] = graph.x.numpy().tolist()
    parquet.write_table(pa.table(table), tmp_path / "nodes.parquet")
    ends = graph.adjacency.edge_index.numpy() * 10
    parquet.write_table(pa.table({"source": ends[0], "target": ends[1]}), tmp_path / "edges.parquet")
    source = gcond.load(tmp_path, features="none")
    found = brief(source).predict(source, ["70", "10"])
    assert found.ids.to_list() == [70, 10]
    assert found.to_table().schema.field("id").type == pa.int64()


def test_other_features_are_refused(make_graph, brief):
    model = brief(make_graph())
    with pytest.raises(GcondError, match="has 9 features, and the model takes 12"):
        model.predict(make_graph(features=9))
    with pytest.raises(GcondError, match="were made standardise, and the model takes none"):
        model.predict(gcond.load(make_graph(), features="standardise"))


def test_the_same_transform_with_other_statistics_is_refused(make_graph, brief):
    model = brief(gcond.load(make_graph(), features="standardise"))
    with pytest.raises(GcondError, match=r"standardise with other statistics.*raw data"):
        model.predict(gcond.load(make_graph(seed=1), features="standardise"))
    raw = model.predict(make_graph())  # to which the recorded one is applied
    assert torch.equal(raw.probabilities, model.predict(gcond.load(make_graph(), features="standardise")).probabilities)


def test_positions_in_one_graph_mean_nothing_in_another(make_graph, brief):
    source = gcond.load(make_graph(), features="structural")
    model = brief(source)
    assert torch.equal(model.predict(source).probabilities, model.predict(make_graph()).probabilities)
    with pytest.raises(GcondError, match="nothing about 'random-1'"):
        model.predict(make_graph(seed=1))


def test_roles_mean_the_same_everywhere(make_graph, brief):
    model = brief(gcond.load(make_graph("inductive"), features="structural"))
    assert model.predict(make_graph("inductive", seed=1)).probabilities.isfinite().all()


def test_a_pyg_data_without_labels(make_graph, brief):
    from torch_geometric.data import Data

    graph = make_graph()
    data = Data(x=graph.x, edge_index=graph.adjacency.edge_index)
    model = brief(graph)
    found = model.predict(data)
    assert torch.equal(found.probabilities, model.predict(graph).probabilities)
    assert "y" not in data


def test_it_says_what_it_is(make_graph, brief):
    graph = make_graph()
    small = gcond.condense(graph, method="random", nodes=9)
    assert repr(brief(graph)) == "TrainedModel(gcn (hidden=8), 3 classes, trained on the whole graph random-0)"
    assert "9 nodes by random of random-0" in repr(brief(small, on=graph))


def test_ids_are_those_of_the_nodes_that_are_asked_for(make_graph, brief):
    graph = make_graph()
    graph = dataclasses.replace(graph, ids=NodeIds.of([f"n{at}" for at in range(80)], 80))
    found = brief(graph).predict(graph, ["n5", "n2"])
    assert found.ids.to_list() == ["n5", "n2"]
    assert found.nodes.tolist() == [5, 2]
    assert found.names == [found.class_names[each] for each in found.classes.tolist()]


def turned(folder, name, rename=None):
    """The same tables with the features' columns the other way round, and perhaps one of another name."""
    other = folder.parent / name
    other.mkdir()
    (other / "edges.csv").write_text((folder / "edges.csv").read_text())
    rows = [line.split(",") for line in (folder / "nodes.csv").read_text().splitlines()]
    if rename:
        rows[0] = [rename.get(word, word) for word in rows[0]]
    (other / "nodes.csv").write_text("\n".join(",".join([*row[:2], *row[:1:-1]]) for row in rows) + "\n")
    return other


@pytest.mark.parametrize("kind", ["none", "row-normalise", "tf-idf", "standardise"])
def test_columns_are_found_by_their_names(kind, make_graph, brief, write_tables):
    graph = make_graph()
    words = dataclasses.replace(graph, x=(3 * graph.x).abs().round())
    folder = write_tables(words)
    model = brief(gcond.load(folder, features=kind))
    other = turned(folder, "turned")
    assert gcond.load(other, features="none").feature_names == tuple(f"f{at}" for at in reversed(range(12)))
    torch.testing.assert_close(
        model.predict(other).probabilities, model.predict(folder).probabilities, rtol=1e-5, atol=1e-6
    )
    if kind == "none":  # and of graphs in memory, in files and in stores
        source = gcond.load(other, features="none")
        source.save(folder.parent / "turned.safetensors")
        gcond.pack(other, folder.parent / "turned.gcond")
        for form in (source, folder.parent / "turned.safetensors", folder.parent / "turned.gcond"):
            torch.testing.assert_close(
                model.predict(form).probabilities, model.predict(folder).probabilities, rtol=1e-5, atol=1e-6
            )


def test_columns_of_other_names_are_refused(make_graph, brief, write_tables, tmp_path):
    folder = write_tables(make_graph())
    model = brief(gcond.load(folder, features="none"))
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(GcondError, match="has no feature column 'f3', which the model takes"):
        gcond.load_model(tmp_path / "model.safetensors").predict(turned(folder, "turned", {"f3": "height"}))
    nameless = make_graph()
    assert model.predict(nameless).probabilities.shape == (nameless.num_nodes, 3), "who names none is believed"
