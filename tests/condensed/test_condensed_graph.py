from __future__ import annotations

import dataclasses
import json
import warnings

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.provenance import Provenance
from gcond.condensed.recommendation import Recommendation
from gcond.condensed.score import Score
from gcond.errors import GcondError, GcondWarning
from gcond.linalg.sparse import Identity
from gcond.methods.condense import condense
from gcond.runtime.tensor_file import read_tensors, write_tensors
from reference.damage import damaged_headers, sentence

SCORE = Score(
    model="gcn",
    settings={"hidden": 256},
    recipe={"epochs": 600},
    mean=0.8,
    std=0.01,
    runs=(0.79, 0.81),
    val_mean=0.7,
    cpu_seconds=1.5,
    source="ab",
    seed=0,
)
RECOMMENDATION = Recommendation(
    model="gcn",
    settings={"hidden": 64},
    recipe={"epochs": 200, "dropout": 0.5},
    transform="row-normalise",
    val_mean=0.8,
    fixed_val_mean=0.7,
    tried=9,
    graphs=("ab", "cd"),
    runs=3,
    held={"validate_every": 5},
)
PROVENANCE = Provenance(
    method="random",
    settings={"epochs": 5, "lr": 0.1, "kind": None},
    seed=3,
    budget={"nodes": 4, "ratio": 0.1},
    setting="transductive",
    source={"name": "naïve “graph”", "sha256": "ab", "nodes": 40, "edges": 80, "features": 2, "bytes": 10},
    transform={"kind": "none"},
    num_classes=3,
    class_names=("a", "b", "c"),
    cost={"wall_seconds": 1.5},
    history={"loss": [1.0, 0.5]},
    scores=(SCORE,),
    recommendations=(RECOMMENDATION,),
    gcond_version="0.1.0",
)


def small(**changes):
    """Four nodes on a weighted path 0-1-2, one alone."""
    values = {
        "x": torch.tensor([[1.0, 0.0], [0.5, -2.0], [0.0, 3.0], [1.0, 1.0]]),
        "y": torch.tensor([0, 1, 2, 0]),
        "edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        "edge_weight": torch.tensor([0.5, 0.5, 2.0, 2.0]),
        "provenance": PROVENANCE,
    }
    return CondensedGraph(**values | changes)


@st.composite
def condensed(draw):
    """Any condensed graph: hard or soft labels, with or without edges, optional tensors, provenance."""
    n, d, classes = draw(st.integers(1, 8)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    stream = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    dense = torch.rand(n, n, generator=stream) * (
        torch.rand(n, n, generator=stream) < draw(st.sampled_from([0, 0.5, 1]))
    )
    dense.fill_diagonal_(0)
    target, source = dense.nonzero(as_tuple=True)
    soft = draw(st.booleans())
    y = torch.randint(classes, (n,), generator=stream)
    if soft:
        y = torch.rand(n, classes, generator=stream).softmax(1)
    text = st.text(max_size=10)
    provenance = dataclasses.replace(
        PROVENANCE,
        num_classes=classes,
        settings=draw(st.dictionaries(text, st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text)),
        class_names=tuple(draw(st.lists(text, max_size=3))),
        seed=draw(st.integers(-(2**40), 2**40)),
        history={"loss": draw(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4))},
    )
    return CondensedGraph(
        x=torch.randn(n, d, generator=stream) * 10.0 ** draw(st.integers(-38, 30)),
        y=y,
        edge_index=torch.stack([source, target]),
        edge_weight=dense[target, source],
        source_index=draw(st.sampled_from([None, torch.randperm(n, generator=stream)])),
        cluster=draw(st.sampled_from([None, torch.randint(-1, n, (20,), generator=stream)])),
        structure=draw(st.sampled_from([{}, {"w.0": torch.randn(2, 3, generator=stream), "b": torch.zeros(3)}])),
        provenance=draw(st.sampled_from([provenance, None])) if not soft else provenance,
    )


def assert_same(first, second):
    assert first.tensors().keys() == second.tensors().keys()
    for key, tensor in first.tensors().items():
        assert tensor.dtype == second.tensors()[key].dtype
        assert torch.equal(tensor, second.tensors()[key]), key


@given(graph=condensed())
def test_save_then_load_gives_it_back(graph, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round-trip.safetensors"
    graph.save(path)
    back = CondensedGraph.load(path)
    assert_same(graph, back)
    assert back.provenance == graph.provenance
    assert back.sha256 == graph.sha256


def test_any_safetensors_reader_can_read_it(tmp_path):
    graph = small(structure={"w": torch.ones(2)}, source_index=torch.tensor([5, 6, 7, 8]))
    graph.save(tmp_path / "g")
    plain = safetensors.torch.load_file(tmp_path / "g")
    assert plain.keys() == {"x", "y", "edge_index", "edge_weight", "source_index", "structure.w"}
    assert plain["x"].dtype == torch.float32
    assert plain["y"].dtype == plain["edge_index"].dtype == torch.int64
    assert torch.equal(plain["edge_index"], graph.edge_index)


@given(graph=condensed())
def test_pyg_and_back(graph):
    back = CondensedGraph.from_pyg(graph.to_pyg(), graph.provenance)
    for key in ("x", "y", "edge_index", "edge_weight"):
        assert torch.equal(getattr(back, key), getattr(graph, key))


def test_to_pyg_is_a_copy_in_which_all_nodes_train():
    graph = small()
    data = graph.to_pyg()
    data.validate(raise_on_error=True)
    assert data.train_mask.all()
    assert data.has_self_loops()
    assert data.num_edges == graph.num_edges + graph.num_nodes
    before = graph.x.clone()
    data.x.zero_()
    data.edge_weight.zero_()
    assert torch.equal(graph.x, before)
    assert graph.edge_weight.sum() == 5


def test_from_pyg_drops_self_loops_and_fills_in_weights():
    data = Data(x=torch.ones(2, 1), y=torch.tensor([0, 1]), edge_index=torch.tensor([[0, 0, 1], [0, 1, 0]]))
    graph = CondensedGraph.from_pyg(data)
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert graph.edge_weight.tolist() == [1, 1]
    alone = CondensedGraph.from_pyg(Data(x=torch.ones(2, 1), y=torch.tensor([0, 1])))
    assert alone.num_edges == 0


def test_from_pyg_needs_features_and_labels():
    with pytest.raises(GcondError, match="no x or no y"):
        CondensedGraph.from_pyg(Data(x=torch.ones(2, 1)))


@pytest.mark.parametrize("edges", [True, False])
def test_pyg_s_layers_see_the_same_graph(edges):
    """A' = I where there is no structure, for PyG's GCNConv as for ours."""
    none = {"edge_index": torch.empty(2, 0, dtype=torch.long), "edge_weight": torch.empty(0)}
    graph = small(**({} if edges else none))
    layer = GCNConv(2, 3, bias=False)
    data = graph.to_pyg()
    with torch.no_grad():
        theirs = layer(data.x, data.edge_index, data.edge_weight)
        ours = graph.view().inputs.gcn @ (graph.x @ layer.lin.weight.T)
    torch.testing.assert_close(ours, theirs)
    if not edges:
        assert isinstance(graph.adjacency(), Identity)
        torch.testing.assert_close(ours, graph.x @ layer.lin.weight.T.detach())


def test_adjacency_has_targets_as_rows():
    graph = small(edge_index=torch.tensor([[0], [2]]), edge_weight=torch.tensor([0.25]))
    expected = torch.zeros(4, 4)
    expected[2, 0] = 0.25
    assert torch.equal(graph.adjacency(), expected)


def test_soft_labels():
    soft = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.2, 0.6], [0, 1, 0], [0.4, 0.3, 0.3]])
    graph = small(y=soft)
    assert graph.hard_labels.tolist() == [0, 2, 1, 0]
    assert graph.num_classes == 3
    assert small(y=soft, provenance=None).num_classes == 3
    assert torch.equal(graph.view().y, soft)


def test_classes_without_provenance():
    assert small(provenance=None).num_classes == 3


def test_view_is_everything():
    view = small().view()
    assert view.nodes.tolist() == view.source_index.tolist() == [0, 1, 2, 3]


def test_fingerprint_is_of_every_tensor_and_no_more():
    base = small(source_index=torch.arange(4), cluster=torch.zeros(9, dtype=torch.long), structure={"w": torch.ones(2)})
    changed = [
        dataclasses.replace(base, x=base.x + 1),
        dataclasses.replace(base, y=torch.tensor([0, 1, 2, 1])),
        dataclasses.replace(base, edge_index=base.edge_index.flip(1)),
        dataclasses.replace(base, edge_weight=base.edge_weight * 2),
        dataclasses.replace(base, source_index=torch.arange(1, 5)),
        dataclasses.replace(base, source_index=None),
        dataclasses.replace(base, cluster=torch.ones(9, dtype=torch.long)),
        dataclasses.replace(base, structure={"w": torch.zeros(2)}),
        dataclasses.replace(base, structure={"v": torch.ones(2)}),
    ]
    assert len({graph.sha256 for graph in [base, *changed]}) == len(changed) + 1
    assert dataclasses.replace(base, provenance=dataclasses.replace(PROVENANCE, seed=9)).sha256 == base.sha256


def test_a_score_replaces_one_of_the_same_subject_alone(tmp_path):
    changes = [
        {"model": "sgc"},
        {"settings": {"hidden": 4}},
        {"recipe": {"epochs": 5, "betas": (0.9, 0.99)}},
        {"source": "cd"},
    ]
    others = [dataclasses.replace(SCORE, **change) for change in changes]
    many = small().with_scores(others)
    assert list(many.provenance.scores) == [SCORE, *others]
    many.save(tmp_path / "g")  # where a tuple becomes a list
    again = CondensedGraph.load(tmp_path / "g").with_scores(
        [dataclasses.replace(score, mean=0.7, seed=9) for score in others]
    )
    assert [score.mean for score in again.provenance.scores] == [0.8, 0.7, 0.7, 0.7, 0.7]
    assert small().provenance.scores == PROVENANCE.scores


def test_scores_of_files_from_before_sources_were_recorded(tmp_path):
    old = {key: value for key, value in dataclasses.asdict(SCORE).items() if key not in ("source", "seed")}
    values = PROVENANCE.to_json() | {"scores": [old]}
    for later in ("directed", "threads", "ended"):
        del values[later]
    graph = CondensedGraph.load(damage(tmp_path, provenance=values))
    assert graph.provenance.directed is False
    assert (graph.provenance.threads, graph.provenance.ended) == (0, "")
    assert list(graph.with_scores([SCORE]).provenance.scores) == [Score(**old), SCORE]


def test_a_recommendation_replaces_that_of_its_model(tmp_path):
    other, again = (dataclasses.replace(RECOMMENDATION, **change) for change in ({"model": "sgc"}, {"tried": 3}))
    graph = small().with_recommendation(other).with_recommendation(again)
    graph.save(tmp_path / "g")
    back = CondensedGraph.load(tmp_path / "g")
    assert back.provenance.recommendations == (other, again)
    assert back.with_scores([SCORE]).provenance.recommendations == (other, again)
    assert back.sha256 == small().sha256, "it is no part of the graph"
    with pytest.raises(GcondError, match="no provenance to record a recommendation in"):
        small(provenance=None).with_recommendation(other)


def test_files_from_before_there_were_recommendations(tmp_path):
    small().save(tmp_path / "g")
    tensors, metadata = read_tensors(tmp_path / "g")
    del metadata["provenance"]["recommendations"]
    write_tensors(tmp_path / "old", tensors, metadata)
    assert CondensedGraph.load(tmp_path / "old").provenance.recommendations == ()
    metadata["provenance"]["recommendations"] = [{"model": "gcn"}]
    write_tensors(tmp_path / "damaged", tensors, metadata)
    with pytest.raises(GcondError, match=r"damaged metadata, provenance.recommendations.0.settings"):
        CondensedGraph.load(tmp_path / "damaged")


def test_scores_need_a_provenance():
    with pytest.raises(GcondError, match="no provenance to record scores in"):
        small(provenance=None).with_scores([])


LONG = torch.long


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.ones(4)}, r"x is torch.float32 \[4\], and must be float32"),
        ({"x": torch.ones(4, 2).double()}, "x is torch.float64"),
        ({"x": torch.ones(0, 2), "y": torch.empty(0, dtype=LONG)}, r"x is torch.float32 \[0, 2\]"),
        ({"y": torch.tensor([0, 1])}, r"y is torch.int64 \[2\], and must be int64 \[4\] or float32 \[4, classes\]"),
        ({"y": torch.tensor(0)}, r"y is torch.int64 \[\]"),
        ({"y": torch.zeros(4)}, "y is torch.float32"),
        ({"y": torch.zeros(4, 3, dtype=LONG)}, "y is torch.int64"),
        ({"y": torch.tensor([0, 1, 2, 3])}, "label 3 is out of range: there are 3 classes, 0 to 2"),
        ({"y": torch.tensor([0, 1, 2, -1])}, "label -1 is out of range"),
        ({"y": torch.ones(4, 2)}, "must be non-negative rows of 3 classes"),
        ({"y": -torch.ones(4, 3)}, "must be non-negative rows"),
        ({"y": torch.full((4, 3), torch.nan)}, "y has numbers that are not finite"),
        ({"edge_index": torch.zeros(3, 2, dtype=LONG)}, r"edge_index is torch.int64 \[3, 2\]"),
        ({"edge_index": torch.ones(2, 4)}, "edge_index is torch.float32"),
        (
            {"edge_index": torch.tensor([[0, 1, 1, 4], [1, 0, 2, 1]])},
            "an edge names node 4, but there are 4 nodes, 0 to 3",
        ),
        ({"edge_index": torch.tensor([[0, 1, 1, -1], [1, 0, 2, 1]])}, "an edge names node -1"),
        ({"edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 1, 1]])}, "self-loops"),
        (
            {"edge_index": torch.tensor([[0, 1, 1, 0], [1, 0, 2, 1]])},
            "lists an edge more than once, and each must be there once",
        ),
        ({"y": torch.tensor([0, 1, 2, 10**12]), "provenance": None}, "1000000000001 classes, and must be 1 to 1,000"),
        ({"y": torch.full((4,), -1), "provenance": None}, "there are 0 classes"),
        ({"y": torch.empty(4, 0), "provenance": None}, "there are 0 classes"),
        ({"provenance": dataclasses.replace(PROVENANCE, num_classes=10**12)}, "1000000000000 classes"),
        ({"provenance": dataclasses.replace(PROVENANCE, num_classes=-1)}, "there are -1 classes"),
        ({"edge_weight": torch.ones(3)}, r"edge_weight is torch.float32 \[3\], and must be float32 \[4\]"),
        ({"edge_weight": torch.ones(4).double()}, "edge_weight is torch.float64"),
        ({"edge_weight": torch.tensor([1, 1, 1, torch.inf])}, "edge_weight has numbers that are not finite"),
        ({"edge_weight": torch.tensor([1.0, 1, 1, -1])}, "edge_weight has negative numbers"),
        ({"x": torch.full((4, 2), torch.nan)}, "x has numbers that are not finite"),
        ({"source_index": torch.arange(3)}, r"source_index is torch.int64 \[3\], and must be int64 \[4\]"),
        ({"y": torch.full((4, 3), 1.0)}, "every row must add up to 1"),
        ({"source_index": torch.full((4,), 10**6)}, "source_index names node 1000000, but the source has"),
        ({"source_index": torch.zeros(4)}, r"source_index is torch.float32 \[4\], and must be int64 \[4\]"),
        ({"cluster": torch.zeros(9)}, r"cluster is torch.float32 \[9\], and must be int64"),
        ({"cluster": torch.tensor([0, 4])}, "cluster names node 4, but there are 4 nodes"),
    ],
)
def test_tensors_that_are_no_graph(changes, message):
    with pytest.raises(GcondError, match=message):
        small(**changes)


def damage(tmp_path, tensors=None, **metadata):
    """A saved graph with some of its tensors or metadata replaced; ``None`` removes a tensor."""
    path = tmp_path / "damaged.safetensors"
    small().save(path)
    kept, header = read_tensors(path)
    kept = {key: value for key, value in ({**kept, **(tensors or {})}).items() if value is not None}
    write_tensors(path, kept, {**header, **metadata})
    return path


@pytest.mark.parametrize("name", ["x", "y", "edge_index", "edge_weight"])
def test_missing_tensor(tmp_path, name):
    with pytest.raises(GcondError, match=f"lacks the tensor '{name}': it was not written whole by gcond"):
        CondensedGraph.load(damage(tmp_path, {name: None}))


def test_unknown_tensor(tmp_path):
    with pytest.raises(GcondError, match="has a tensor 'surprise' that this gcond does not know: upgrade gcond"):
        CondensedGraph.load(damage(tmp_path, {"surprise": torch.ones(1)}))


@pytest.mark.parametrize("name", ["provenance", "structure"])
def test_tensor_with_the_name_of_another_field(tmp_path, name):
    with pytest.raises(GcondError, match=f"has a tensor '{name}' that this gcond does not know"):
        CondensedGraph.load(damage(tmp_path, {name: torch.ones(1)}))


def test_unusable_tensor(tmp_path):
    path = damage(tmp_path, {"x": torch.full((4, 2), torch.nan)})
    with pytest.raises(GcondError, match=r"is not a usable condensed graph: x has numbers that are not finite"):
        CondensedGraph.load(path)


def test_a_source_graph_is_no_condensed_one(tmp_path, make_graph):
    make_graph().save(tmp_path / "source")
    with pytest.raises(GcondError, match="holds a source graph, and a condensed graph is needed here"):
        CondensedGraph.load(tmp_path / "source")


@pytest.mark.parametrize(
    "provenance", [3, "text", [1], {}, {"method": "x"}, {**PROVENANCE.to_json(), "num_classes": "three"}]
)
def test_damaged_provenance(tmp_path, provenance):
    path = damage(tmp_path, provenance=provenance)
    with pytest.raises(GcondError, match=r"has damaged metadata|is not a usable condensed graph"):
        CondensedGraph.load(path)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"cost": {"wall_seconds": "x"}}, "cost.wall_seconds"),
        ({"cost": {"peak_rss_mb": 10**400}}, "cost.peak_rss_mb"),
        ({"scores": [{"model": "gcn"}]}, "scores.0.settings"),
        ({"scores": [3]}, "scores.0"),
        ({"scores": [dataclasses.asdict(SCORE) | {"runs": 3}]}, "scores.0.runs"),
        ({"scores": [dataclasses.asdict(SCORE) | {"source": 3}]}, "scores.0.source"),
        ({"source": []}, "source"),
        ({"source": {"nodes": -1}}, "source.nodes"),
        ({"source": {"nodes": 10**400}}, "source.nodes"),
        ({"budget": {"ratio": "a"}}, "budget.ratio"),
        ({"settings": []}, "settings"),
        ({"transform": 3}, "transform"),
        ({"setting": "deductive"}, "setting"),
        ({"directed": "perhaps"}, "directed"),
        ({"num_classes": None}, "num_classes"),
        ({"class_names": [1]}, "class_names.0"),
        ({"history": {"loss": ["low"]}}, "history.loss.0"),
        ({"seed": 1.5}, "seed"),
        ({"method": None}, "method"),
    ],
)
def test_a_part_of_the_provenance_that_is_not_what_it_must_be(tmp_path, change, where):
    with pytest.raises(GcondError, match=f"not a usable condensed graph: damaged metadata, provenance.{where}: "):
        CondensedGraph.load(damage(tmp_path, provenance=PROVENANCE.to_json() | change))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool])
def test_structure_of_any_dtype_has_a_fingerprint(tmp_path, dtype):
    graph = small(structure={"w": torch.tensor([1, 0, 1]).to(dtype)})
    graph.save(tmp_path / "g")
    assert CondensedGraph.load(tmp_path / "g").sha256 == graph.sha256
    assert small(structure={"w": torch.tensor([1, 1, 1]).to(dtype)}).sha256 != graph.sha256


def test_the_fingerprint_is_the_one_that_files_have_always_had():
    assert small().sha256 == "9c90973ca10320c705e4ebf3f39b8f441be1502734ccdf3884b285cca1fda41c"


def test_a_later_gcond_may_add_to_the_provenance(tmp_path):
    graph = CondensedGraph.load(damage(tmp_path, provenance={**PROVENANCE.to_json(), "mood": "good"}))
    assert graph.provenance == PROVENANCE


def test_damaged_headers_raise_nothing_else(tmp_path):
    path = tmp_path / "g"
    small(source_index=torch.arange(4), cluster=torch.tensor([0, 1, 3])).save(path)
    said = []
    for content in damaged_headers(path.read_bytes()):
        path.write_bytes(content)
        said.append(sentence(CondensedGraph.load, path))
    refusals = [text for text in said if text]
    assert len(refusals) > len(said) / 3
    assert not any("\n" in text for text in refusals)


def test_the_metadata_is_json_with_what_is_promised(tmp_path):
    small().save(tmp_path / "g")
    with safetensors.safe_open(tmp_path / "g", framework="pt") as file:
        metadata = json.loads(file.metadata()["gcond"])
    assert metadata["format"] == 1
    assert metadata["kind"] == "condensed"
    assert metadata["provenance"]["source"]["name"] == "naïve “graph”"
    assert metadata["provenance"]["class_names"] == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["x.pt", "x.PTH", "x.pkl", "x.npz"])
def test_a_name_that_promises_another_format_is_said(name, make_graph, tmp_path):
    small = condense(make_graph(), method="random", nodes=6)
    with pytest.warns(GcondWarning, match=f"{name}' is written as safetensors, whatever its name says"):
        small.save(tmp_path / name)
    assert CondensedGraph.load(tmp_path / name).sha256 == small.sha256
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for good in ("x", "x.safetensors", "x.v2", "x.checkpoint"):
            small.save(tmp_path / good)
