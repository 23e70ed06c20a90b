"""Condensed graphs of other tools: plain safetensors files, checked as gcond's own, and what they lack is said."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

import gcond
from gcond.condensed import CondensedGraph
from gcond.errors import GcondError, GcondWarning

N, D = 6, 12


@pytest.fixture
def tensors():
    stream = torch.Generator().manual_seed(0)
    return {"x": torch.randn(N, D, generator=stream), "y": torch.arange(N) % 3}


@pytest.fixture
def load(tmp_path):
    def read(tensors, **metadata):
        save_file(tensors, tmp_path / "other.safetensors", metadata or None)
        with pytest.warns(GcondWarning, match="does not say what it was made from"):
            return CondensedGraph.load(tmp_path / "other.safetensors")

    return read


def test_features_and_labels_are_enough(tensors, load):
    small = load(tensors)
    assert torch.equal(small.x, tensors["x"])
    assert torch.equal(small.y, tensors["y"])
    assert small.num_edges == 0
    assert small.provenance is None
    assert small.num_classes == 3
    assert [note.split(":")[0] for note in small.notes] == [
        "it does not say what it was made from or how",
        "it has no edge_index, so models train on A' = I",
    ]


def test_any_usual_type_is_taken_and_metadata_of_others_is_passed_over(tensors, load):
    edges = torch.tensor([[0, 1, 2, 2], [1, 0, 2, 3]], dtype=torch.int32)
    weight = torch.tensor([0.5, 0.5, 9.0, 1.0], dtype=torch.float64)
    small = load(
        {
            "x": tensors["x"].double(),
            "y": tensors["y"].to(torch.uint8)[:, None],
            "edge_index": edges,
            "edge_weight": weight,
            "embedding": torch.ones(2),
        },
        format="pt",
    )
    assert small.x.dtype == torch.float32
    assert small.y.tolist() == tensors["y"].tolist()
    assert small.edge_index.tolist() == [[0, 1, 2], [1, 0, 3]]
    assert small.edge_weight.tolist() == [0.5, 0.5, 1.0]
    assert "not used of the file: embedding" in small.notes
    assert any(note.startswith("1 self-loops were dropped") for note in small.notes)


def test_what_other_tools_write_of_words_classes_and_edges(tensors, load):
    """Counts as whole numbers, one-hot rows or ids as floats, an edge listed twice: a source may have these, too."""
    words = torch.ones(N, D, dtype=torch.uint8)
    one_hot = torch.nn.functional.one_hot(tensors["y"], 3)
    edges = torch.tensor([[0, 2, 0, 0], [1, 1, 1, 0]])
    small = load({"x": words, "y": one_hot, "edge_index": edges, "edge_weight": torch.tensor([0.5, 3.0, 2.0, 1.0])})
    assert torch.equal(small.x, torch.ones(N, D))
    assert torch.equal(small.y, one_hot.float())
    assert small.edge_index.tolist() == [[0, 2], [1, 1]]
    assert small.edge_weight.tolist() == [2.0, 3.0]
    assert "1 repeated edges were merged, the heaviest kept" in small.notes
    assert torch.equal(load({"x": words, "y": tensors["y"].float()}).y, tensors["y"])


def test_soft_labels_and_edges_without_weights(tensors, load):
    soft = torch.full((N, 4), 0.25, dtype=torch.float16)
    small = load({**tensors, "y": soft, "edge_index": torch.tensor([[0], [1]])})
    assert small.num_classes == 4
    assert small.edge_weight.tolist() == [1.0]
    assert "it has no edge_weight, so every edge weighs 1" in small.notes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": None}, "no tensor 'x'"),
        ({"y": None}, "no tensor 'y'"),
        ({"x": torch.full((N, D), torch.nan)}, "x has numbers that are not finite"),
        ({"x": torch.full((N, D), 1e300, dtype=torch.float64)}, "x has numbers that are not finite"),
        ({"x": torch.ones(N, D, dtype=torch.complex64)}, "must be float32"),
        ({"x": torch.ones(N)}, "must be float32"),
        ({"x": torch.ones(0, D)}, "must be float32"),
        ({"y": torch.ones(N - 1, dtype=torch.int64)}, "y is"),
        ({"y": torch.full((N,), 0.5)}, "y is"),
        ({"y": torch.ones(N, dtype=torch.bool)}, "whole numbers"),
        ({"y": torch.full((N,), -1)}, "classes"),
        ({"y": torch.full((N,), 10**9)}, "classes"),
        ({"y": torch.ones(N, 3)}, "add up to 1"),
        ({"y": -torch.ones(N, 3)}, "non-negative"),
        ({"edge_index": torch.tensor([[0], [N]])}, f"names node {N}"),
        ({"edge_index": torch.tensor([[0, 1]])}, r"must be int64 \[2, edges\]"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, "whole numbers"),
        ({"edge_index": torch.tensor([[0], [1]]), "edge_weight": torch.ones(2)}, "edge_weight is"),
        ({"edge_index": torch.tensor([[0], [1]]), "edge_weight": -torch.ones(1)}, "negative"),
        ({"edge_index": torch.tensor([[0], [1]]), "edge_weight": torch.tensor([torch.inf])}, "not finite"),
        ({"edge_weight": torch.ones(1)}, "without an edge_index"),
    ],
)
def test_refused_with_one_sentence_that_names_the_file(tensors, tmp_path, change, words):
    path = tmp_path / "other.safetensors"
    save_file({key: value for key, value in {**tensors, **change}.items() if value is not None}, path)
    with pytest.raises(GcondError, match=words) as error:
        CondensedGraph.load(path)
    assert str(error.value).startswith(f"'{path}'")


def test_weights_of_a_language_model_are_not_read(tmp_path, monkeypatch):
    """The header tells that it is no graph; what may be gigabytes stays on disk."""
    path = tmp_path / "llm.safetensors"
    save_file({"lm_head.weight": torch.ones(3, 3)}, path)
    import safetensors

    opened = safetensors.safe_open

    class Watched:
        def __init__(self, *args, **kwargs):
            self.file = opened(*args, **kwargs)

        def __enter__(self):
            self.inner = self.file.__enter__()
            return self

        def __exit__(self, *error):
            return self.file.__exit__(*error)

        def __getattr__(self, name):
            assert name != "get_tensor"
            return getattr(self.inner, name)

    monkeypatch.setattr(safetensors, "safe_open", Watched)
    with pytest.raises(GcondError, match="no tensor 'x'"):
        CondensedGraph.load(path)


@pytest.mark.filterwarnings("ignore::gcond.GcondWarning")
def test_it_is_evaluated_and_trained_on_as_a_graph_of_gcond_s(make_graph, tmp_path):
    graph = make_graph()
    made = gcond.condense(graph, method="random", nodes=9)
    save_file(
        {"x": made.x, "y": made.y, "edge_index": made.edge_index, "edge_weight": made.edge_weight},
        tmp_path / "other.safetensors",
    )
    plain = {"on": graph, "epochs": 20}
    (own,) = gcond.evaluate(made, runs=2, **plain)
    (other,) = gcond.evaluate(tmp_path / "other.safetensors", runs=2, **plain)
    assert own.runs == other.runs
    model = gcond.train(tmp_path / "other.safetensors", **plain)
    assert model.record.trained_on["method"] is None
    assert model.record.notes[0].startswith("it does not say")
    assert model.sha256 == gcond.train(made, **plain).sha256


@pytest.mark.filterwarnings("ignore::gcond.GcondWarning")
def test_classes_that_it_has_no_node_of_are_the_source_s(make_graph, tmp_path):
    """Its highest label says too little; but one that the source does not have is refused."""
    graph = make_graph()
    x = torch.randn(4, graph.num_features)
    save_file({"x": x, "y": torch.tensor([0, 1, 0, 1])}, tmp_path / "fewer.safetensors")
    assert gcond.evaluate(tmp_path / "fewer.safetensors", on=graph, runs=1, epochs=2)
    save_file({"x": x, "y": torch.tensor([0, 1, 0, 3])}, tmp_path / "more.safetensors")
    with pytest.raises(GcondError, match="4 classes"):
        gcond.evaluate(tmp_path / "more.safetensors", on=graph, runs=1, epochs=2)


def test_a_file_of_gcond_s_own_has_nothing_to_say(make_graph, tmp_path):
    made = gcond.condense(make_graph(), method="random", nodes=9)
    made.save(tmp_path / "own.safetensors")
    assert CondensedGraph.load(tmp_path / "own.safetensors").notes == ()
