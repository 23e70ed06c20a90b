"""Whatever torch was told before, gcond computes as usual, and leaves torch as it was."""

from __future__ import annotations

import inspect

import pytest
import torch

import gcond
from conftest import random_graph
from gcond.methods import Random
from gcond.runtime.torch_settings import usual_torch


class DefaultDtype:
    def __enter__(self):
        torch.set_default_dtype(torch.float64)

    def __exit__(self, *_):
        torch.set_default_dtype(torch.float32)


class DefaultDevice:
    def __enter__(self):
        torch.set_default_device("meta")

    def __exit__(self, *_):
        torch.set_default_device(None)


SURROUNDINGS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "float64": DefaultDtype,
    "another device": DefaultDevice,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}
QUICK = {"epochs": 2, "device": "cpu"}
LEARN = {"method": "gcond", "nodes": 6, "epochs": 2, "outer": 2, "inner": 1, "device": "cpu"}


def parts(graph):
    """The tensors of a graph, from which it can be built again."""
    masks = {part: graph.mask(part).clone() for part in ("train", "val", "test")}
    return {"x": graph.x.clone(), "edge_index": graph.adjacency.edge_index.clone(), "y": graph.y.clone(), **masks}


ACTS = {
    "build": lambda graph, small: gcond.SourceGraph.build(name="g", **parts(graph)).sha256,
    "load": lambda graph, small: gcond.load("synthetic:tiny").sha256,
    "condense": lambda graph, small: gcond.condense(graph, **LEARN).sha256,
    "clusters": lambda graph, small: gcond.condense(graph, method="clusters", nodes=6, device="cpu").sha256,
    "herding": lambda graph, small: gcond.condense(graph, method="herding", nodes=6, device="cpu").sha256,
    "coarsening": lambda graph, small: gcond.condense(graph, method="coarsening", nodes=6, device="cpu").sha256,
    "grow": lambda graph, small: gcond.grow(small, on=graph, nodes=7, **QUICK).sha256,
    "compact": lambda graph, small: gcond.compact(small, on=graph, device="cpu").sha256,
    "evaluate": lambda graph, small: [
        each.runs for each in gcond.evaluate(small, on=graph, models=["gcn", "sage", "gat"], runs=2, **QUICK)
    ],
    "train": lambda graph, small: gcond.train(small, on=graph, **QUICK).sha256,
    "predict": lambda graph, small: gcond.train(small, on=graph, **QUICK).predict(graph).probabilities.tolist(),
    "search": lambda graph, small: [
        (each.settings, each.condensed, each.whole)
        for each in gcond.search(small, on=graph, model="gcn", grid={"hidden": [4, 8]}, runs=1, **QUICK).architectures
    ],
    "recommend": lambda graph, small: (
        gcond.recommend(small, on=graph, runs=2, grid={"dropout": [0.5]}, **QUICK).recommendation.val_mean
    ),
    "propagate": lambda graph, small: gcond.propagate(graph.adjacency, graph.x, hops=2).tolist(),
    "to_pyg": lambda graph, small: {
        key: value.dtype for key, value in small.to_pyg().to_dict().items() if isinstance(value, torch.Tensor)
    },
}


@pytest.fixture(scope="module")
def graphs():
    graph = random_graph()
    return graph, gcond.condense(graph, **LEARN)


@pytest.fixture(scope="module")
def usual(graphs):
    """What each of them gives in a program that has told torch nothing, made when it is first asked for."""
    found = {}

    def of(act):
        if act not in found:
            found[act] = ACTS[act](*graphs)
        return found[act]

    return of


@pytest.mark.parametrize("surrounding", SURROUNDINGS)
@pytest.mark.parametrize("act", ACTS)
def test_it_gives_the_same_and_leaves_torch_as_it_was(act, surrounding, graphs, usual):
    if act == "to_pyg":
        pytest.importorskip("torch_geometric")
    expected = usual(act)
    with SURROUNDINGS[surrounding]():
        before = settings()
        assert ACTS[act](*graphs) == expected
        assert settings() == before


def test_tune_gives_the_same(graphs):
    pytest.importorskip("optuna")

    def tuned():
        found = gcond.tune(graphs[1], on=graphs[0], trials=2, runs=1, top=1, final_runs=1, **QUICK)
        return [(each.settings, each.val) for each in found.trials]

    expected = tuned()
    with torch.inference_mode():
        assert tuned() == expected


def test_what_was_made_in_inference_mode_can_be_trained_on(graphs):
    with torch.inference_mode():
        graph = gcond.SourceGraph.build(name="g", **parts(graphs[0]))
        small = gcond.condense(graph, **LEARN)
    assert not graph.x.is_inference()
    assert gcond.train(small, on=graph, **QUICK).sha256 == gcond.train(graphs[1], on=graph, **QUICK).sha256


def settings():
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_autocast_enabled("cpu"),
    )


def test_torch_is_as_it_was_after_a_failure():
    with DefaultDtype(), torch.inference_mode():
        before = settings()
        with pytest.raises(gcond.GcondError), usual_torch():
            raise gcond.GcondError("no")
        assert settings() == before


def test_every_public_function_is_an_entry():
    """One that is not would fail, or give something else, in a program with settings of its own."""
    public = {name: getattr(gcond, name) for name in gcond.__all__ if name != "open_engine"}  # which computes nothing
    entries = {name: each for name, each in public.items() if inspect.isfunction(each)}
    assert len(entries) >= 14
    assert [name for name, each in entries.items() if not hasattr(each, "__wrapped__")] == []
    assert hasattr(Random.condense, "__wrapped__")
