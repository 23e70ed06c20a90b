"""What every registered model promises."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond import models
from gcond.config import settings
from gcond.errors import GcondError
from gcond.models.model import ACTIVATIONS
from gcond.runtime.seeds import generator

FEATURES, CLASSES = 12, 3


@pytest.fixture(params=sorted(models.available()))
def cls(request):
    return models.available()[request.param]


@pytest.fixture(scope="module")
def inputs(request):
    return request.getfixturevalue("make_graph")(weighted=True, density=0.3).view("train").inputs


def fresh(model, seed=0, features=FEATURES):
    return model.init(features, CLASSES, generator(seed, "weights"))


def test_is_registered_under_its_name(cls):
    assert models.find(cls.name) is cls
    assert cls.__module__ == f"gcond.models.{cls.name}"


def test_is_exported(cls):
    assert cls.__name__ in models.__all__
    assert getattr(models, cls.__name__) is cls


def test_names_and_models_are_resolved():
    own = models.GCN(hidden=7)
    assert models.resolve("gcn") == [models.GCN()]
    assert models.resolve(own) == [own]
    assert models.resolve(["sgc", own]) == [models.SGC(), own]
    assert [model.name for model in models.resolve("all")] == list(models.available())
    assert models.resolve(["all", own]) == [*models.resolve("all"), own]
    with pytest.raises(GcondError, match=r"models=\[\].*gcn"):
        models.resolve([])
    for wrong in ("gnc", ["gcn", "gnc"]):
        with pytest.raises(GcondError, match=r"'gnc'.*: choose one of .*gcn"):
            models.resolve(wrong)
    with pytest.raises(GcondError, match="3"):
        models.resolve(3)


def test_a_model_of_one_s_own_is_trained_and_evaluated(make_graph):
    import gcond
    from gcond.training import Recipe, accuracy, fit

    @dataclasses.dataclass(frozen=True)
    class Wide(models.GCN):
        name = "wide"
        hidden: int = 33

    graph = make_graph()
    fitted = fit(Wide(), graph.view("train"), graph.view("val"), classes=3, seeds=[0], recipe=Recipe(epochs=4))
    expected = accuracy(Wide(), fitted.parameters, graph.view("test")).tolist()
    (score,) = gcond.evaluate(graph, models=Wide(), runs=1, recipe={"epochs": 4})
    assert (score.model, list(score.runs)) == ("wide", expected)


def test_is_a_frozen_dataclass_whose_docstring_has_the_formula_and_the_source(cls):
    assert cls.__dataclass_params__.frozen
    assert ".. math::" in inspect.getdoc(cls)
    assert "[n, d]" in inspect.getdoc(cls)
    assert cls.citation[-4:].isdigit()
    assert settings.as_dict(cls()) == {field.name: field.default for field in dataclasses.fields(cls)}


def test_weights_follow_from_the_generator_alone(cls):
    torch.manual_seed(1)
    first = fresh(cls())
    torch.manual_seed(2)
    again, other = fresh(cls()), fresh(cls(), seed=1)
    assert list(first) == list(again) == list(other)
    for key, tensor in first.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, again[key])
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_initialising_leaves_the_global_stream_alone(cls):
    before = torch.random.get_rng_state()
    fresh(cls())
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_scores_have_a_row_for_each_node_and_a_column_for_each_class(cls, layers, inputs):
    model = cls(layers=layers, hidden=5)
    p = fresh(model)
    alone = model.logits(p, inputs)
    assert alone.shape == (inputs.num_nodes, CLASSES)
    assert torch.isfinite(alone).all()
    together = cls.logits_together([model] * 3, [p] * 3, inputs, [None] * 3)
    assert [one.shape for one in together] == [alone.shape] * 3


def test_every_weight_matters(cls, inputs):
    model = cls(layers=3, hidden=6, activation="softplus")
    p = {key: t.requires_grad_() for key, t in fresh(model).items()}
    grads = torch.autograd.grad(model.logits(p, inputs).log_softmax(-1)[:, 0].sum(), list(p.values()))
    for key, grad in zip(p, grads, strict=True):
        assert grad.any(), key


def test_logits_change_no_input(cls, inputs):
    p = fresh(cls(hidden=5))
    kept = {key: t.clone() for key, t in p.items()}
    first, second = cls(hidden=5).logits(p, inputs), cls(hidden=5).logits(p, inputs)
    assert torch.equal(first, second)
    assert all(torch.equal(p[key], kept[key]) for key in p)


def test_every_activation_is_used(cls, inputs):
    p = {key: 20 * tensor for key, tensor in fresh(cls(layers=2, hidden=6)).items()}  # large enough for relu6
    scores = [cls(layers=2, hidden=6, activation=name).logits(p, inputs) for name in ACTIVATIONS]
    for i, one in enumerate(scores):
        assert torch.isfinite(one).all()
        assert all(not torch.equal(one, other) for other in scores[:i])


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_dropout_falls_on_hidden_layers(cls, layers, inputs):
    seen = []

    def drop(h):
        seen.append(h.shape)
        return torch.zeros_like(h)

    model = cls(layers=layers, hidden=6)
    dropped = model.logits(fresh(model), inputs, drop)
    width = 6 * getattr(model, "heads", 1)
    assert seen == [(inputs.num_nodes, width)] * (layers - 1)
    if layers > 1:  # nothing gets past the last hidden layer, and biases start at zero
        assert not dropped.any()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("layers", 0),
        ("layers", -1),
        ("layers", "two"),
        ("layers", 1.5),
        ("hidden", 0),
        ("activation", "swish"),
        ("activation", ""),
        ("no_such", 1),
    ],
)
def test_nonsense_is_refused(cls, key, value):
    with pytest.raises(GcondError, match=key):
        settings.build(cls, {key: value}, f"model '{cls.name}'")


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("sgc", "hops", 0),
        ("appnp", "hops", 0),
        ("appnp", "alpha", -0.1),
        ("appnp", "alpha", 1.1),
        ("appnp", "alpha", "nan"),
        ("cheby", "order", 0),
        ("gat", "heads", 0),
    ],
)
def test_nonsense_in_own_settings_is_refused(name, key, value):
    with pytest.raises(GcondError, match=key):
        settings.build(models.find(name), {key: value}, f"model '{name}'")
    with pytest.raises(ValueError, match=key):
        models.find(name)(**{key: float(value) if isinstance(value, str) else value})


def test_activation_is_checked_without_settings_too(cls):
    with pytest.raises(ValueError, match="activation"):
        cls(activation="swish")


def test_shapes_are_those_of_fresh_weights(cls):
    fresh = cls(hidden=3).init(5, 2, generator(0, "weights"))
    assert cls(hidden=3).shapes(5, 2) == {key: tensor.shape for key, tensor in fresh.items()}


@given(st.sampled_from(sorted(models.available())), st.integers(1, 4), st.integers(1, 40), st.integers(1, 6))
def test_weights_fit_any_sizes(name, layers, features, classes):
    from gcond.graph.inputs import Inputs
    from gcond.linalg.sparse import Identity

    model = models.find(name)(layers=layers, hidden=3)
    p = model.init(features, classes, generator(0, "weights"))
    assert model.logits(p, Inputs(torch.ones(2, features), Identity())).shape == (2, classes)
