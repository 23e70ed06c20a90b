from __future__ import annotations

import dataclasses

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

import gcond
from gcond.errors import GcondError
from gcond.graph.features import FeatureTransform
from gcond.graph.source_graph import PARTS, SourceGraph
from gcond.linalg.sparse import SparseMatrix
from gcond.runtime.tensor_file import read_tensors, write_tensors
from reference.damage import damaged_headers, damaged_tensors, sentence


def dense(x):
    return x.to_dense() if isinstance(x, SparseMatrix) else x


def kinds(make_graph, setting="transductive"):
    yield make_graph(setting)
    yield make_graph(setting, features=60, density=0.05)
    yield make_graph(setting, weighted=True)
    yield make_graph(setting, directed=True)


def assert_same(first, second):
    """Two source graphs alike in every field, the sparse ones entry by entry."""
    for field in dataclasses.fields(SourceGraph):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if isinstance(a, SparseMatrix):
            assert a.symmetric == b.symmetric
            assert a.shape == b.shape
            for part in ("indptr", "indices", "values"):
                assert torch.equal(getattr(a, part), getattr(b, part))
        elif isinstance(a, torch.Tensor):
            assert torch.equal(a, b)
        else:
            assert a == b, field.name


def test_counts(make_graph):
    graph = make_graph()
    data = graph.to_pyg()
    assert graph.num_nodes == data.num_nodes == 80
    assert graph.num_features == 12
    assert graph.num_edges == data.num_edges // 2
    assert graph.class_counts().tolist() == [20, 12, 7]
    assert graph.budget_population == 80
    assert graph.with_setting("inductive").budget_population == 39
    assert make_graph(directed=True).num_edges == graph.num_edges


def test_the_transductive_views_share_one_graph(make_graph):
    graph = make_graph()
    views = {part: graph.view(part) for part in PARTS}
    assert len({id(view.inputs) for view in views.values()}) == 1
    for part, view in views.items():
        assert torch.equal(view.nodes, graph.mask(part).nonzero().squeeze(1))
        assert torch.equal(view.y, graph.y[graph.mask(part)])
        assert torch.equal(view.source_index, torch.arange(80))
        assert view.inputs.num_nodes == 80


@pytest.mark.parametrize("part", PARTS)
def test_an_inductive_view_is_pyg_s_subgraph(make_graph, part):
    for graph in kinds(make_graph, "inductive"):
        view, mask = graph.view(part), graph.mask(part)
        data = graph.to_pyg()
        edge_index, weight = subgraph(mask, data.edge_index, data.edge_weight, relabel_nodes=True)
        n = int(mask.sum())
        expected = torch.zeros(n, n)
        expected[edge_index[1], edge_index[0]] = weight
        assert torch.equal(view.inputs.adjacency.to_dense(), expected)
        assert view.inputs.adjacency.nnz == edge_index.shape[1] > 0
        assert torch.equal(dense(view.inputs.x), data.x[mask])
        assert torch.equal(view.y, data.y[mask])
        assert torch.equal(view.nodes, torch.arange(n))
        assert torch.equal(view.source_index, mask.nonzero().squeeze(1))


def test_an_inductive_view_of_nobody(make_graph):
    graph = make_graph("inductive")
    empty = dataclasses.replace(graph, val_mask=torch.zeros(80, dtype=torch.bool))
    assert len(empty.view("val").nodes) == 0
    assert empty.view("train").inputs.num_nodes == 39


def test_a_view_on_its_own_device_is_the_same(make_graph):
    view = make_graph().view("train")
    assert view.to("cpu").inputs is view.inputs


def test_with_setting_changes_nothing_else(make_graph):
    graph = make_graph()
    other = graph.with_setting("inductive")
    assert graph.setting == "transductive"
    assert other.sha256 != graph.sha256
    assert_same(other.with_setting("transductive"), graph)


def test_fingerprint_changes_with_every_tensor(make_graph):
    for graph in kinds(make_graph):
        n = graph.num_nodes
        flipped = graph.train_mask.clone()
        flipped[0] = ~flipped[0]
        labels = graph.y.clone()
        labels[5] = (labels[5] + 1) % 3
        more = graph.adjacency.values.clone()
        more[0] *= 2
        changed = [
            dataclasses.replace(graph, train_mask=flipped),
            dataclasses.replace(graph, val_mask=graph.test_mask, test_mask=graph.val_mask),
            dataclasses.replace(graph, test_mask=torch.zeros(n, dtype=torch.bool)),
            dataclasses.replace(graph, y=labels),
            dataclasses.replace(graph, adjacency=graph.adjacency.with_values(more, symmetric=False)),
            dataclasses.replace(graph, adjacency=graph.adjacency.submatrix(torch.arange(n).roll(1))),
            dataclasses.replace(graph, setting="inductive"),
        ]
        if isinstance(graph.x, SparseMatrix):
            changed.append(dataclasses.replace(graph, x=graph.x.with_values(-graph.x.values, symmetric=False)))
            changed.append(dataclasses.replace(graph, x=graph.x.rows(torch.arange(n).roll(1))))
        else:
            changed.append(dataclasses.replace(graph, x=graph.x.roll(1, 0)))
        assert len({g.sha256 for g in [graph, *changed]}) == len(changed) + 1


def test_fingerprint_does_not_depend_on_the_name_or_the_run(make_graph):
    graph = make_graph()
    assert dataclasses.replace(graph, name="other").sha256 == graph.sha256
    assert make_graph().sha256 == graph.sha256
    assert make_graph(seed=1).sha256 != graph.sha256


def test_save_then_load_gives_it_back(make_graph, setting, tmp_path):
    for number, graph in enumerate(kinds(make_graph, setting)):
        path = tmp_path / f"{number}.safetensors"
        graph.save(path)
        back = SourceGraph.load(path)
        assert_same(back, graph)
        assert back.sha256 == graph.sha256


def test_everything_that_is_no_tensor_is_kept_too(make_graph, tmp_path):
    graph = dataclasses.replace(
        make_graph(),
        name="naïve “name”",
        class_names=("a", "b", "ç"),
        transform=FeatureTransform("standardise", (0.1,) * 12, (2.0,) * 12),
        notes=("one", "two"),
        listed_edges=77,
    )
    graph.save(tmp_path / "g")
    assert_same(SourceGraph.load(tmp_path / "g"), graph)


def test_pyg_and_back(make_graph, setting):
    for graph in kinds(make_graph, setting):
        data = graph.to_pyg()
        data.validate(raise_on_error=True)
        assert data.is_undirected() != graph.directed
        back = SourceGraph.from_pyg(data, name=graph.name, setting=setting, directed=graph.directed)
        assert_same(back, graph)


def test_to_pyg_is_a_copy(make_graph):
    graph = make_graph()
    before = graph.sha256
    for tensor in graph.to_pyg().to_dict().values():
        tensor.zero_()
    assert dataclasses.replace(graph).sha256 == before


def test_from_pyg_names_what_is_missing():
    data = Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([0, 1]))
    data.train_mask = torch.ones(2, dtype=torch.bool)
    with pytest.raises(GcondError, match="the PyG Data has no val_mask, test_mask: give all three masks, or none"):
        SourceGraph.from_pyg(data)


def test_a_condensed_graph_is_no_source(make_graph, tmp_path):
    write_tensors(tmp_path / "c", {"x": torch.ones(1)}, {"format": 1, "kind": "condensed"})
    with pytest.raises(GcondError, match="holds a condensed graph, and a source graph is needed here"):
        SourceGraph.load(tmp_path / "c")


@pytest.mark.parametrize("features", [{}, {"features": 60, "density": 0.05}])
def test_missing_pieces_of_a_file(make_graph, tmp_path, features):
    path = tmp_path / "g"
    make_graph(**features).save(path)
    tensors, metadata = read_tensors(path)
    for name in tensors:
        write_tensors(path, {key: tensor for key, tensor in tensors.items() if key != name}, metadata)
        with pytest.raises(GcondError, match=r"lacks '.*': it was not written whole by gcond"):
            SourceGraph.load(path)
    for name in set(metadata) - {"format", "kind", "feature_names"}:  # files of earlier versions lack the last
        write_tensors(path, tensors, {key: value for key, value in metadata.items() if key != name})
        with pytest.raises(GcondError, match=f"lacks '{name}': it was not written whole by gcond"):
            SourceGraph.load(path)


WRONG = [None, 3, -1, "text", [], {}, [1], 1e9, True]


def test_metadata_of_other_types_raises_nothing_else(make_graph, tmp_path):
    path = tmp_path / "g"
    make_graph().save(path)
    tensors, metadata = read_tensors(path)
    said = []
    for name in set(metadata) - {"format"}:
        for value in WRONG:
            write_tensors(path, tensors, {**metadata, name: value})
            said.append(sentence(lambda file: SourceGraph.load(file).sha256, path))
    refusals = [text for text in said if text]
    assert len(refusals) > len(said) / 3
    assert not any("\n" in text for text in refusals)


@pytest.mark.parametrize("damage", [damaged_headers, damaged_tensors])
def test_damaged_files_raise_nothing_else(make_graph, tmp_path, damage):
    path = tmp_path / "g"
    make_graph(features=60, density=0.05, sizes=(6, 4)).save(path)
    said = []
    for content in damage(path.read_bytes()):
        path.write_bytes(content)
        said.append(sentence(SourceGraph.load, path))
    refusals = [text for text in said if text]
    assert len(refusals) > len(said) / 5
    assert not any("\n" in text for text in refusals)


def test_pyg_knows_the_names_of_classes(make_graph):
    graph = dataclasses.replace(make_graph(), class_names=("a", "b", "c"))
    data = graph.to_pyg()
    assert data.class_names == ["a", "b", "c"]
    assert "class_names" not in make_graph().to_pyg()
    assert SourceGraph.from_pyg(data).class_names == ("a", "b", "c")
    assert gcond.load(data).class_names == ("a", "b", "c")
    small = gcond.condense(graph, method="random", nodes=9).to_pyg()
    assert small.class_names == ["a", "b", "c"]
    assert small.clone().class_names == ["a", "b", "c"]
    assert "class_names" not in gcond.condense(make_graph(), method="random", nodes=9).to_pyg()
