from __future__ import annotations

import importlib
import sys

import pytest

from gcond import methods, models
from gcond.config.registry import discover, resolve, suggest
from gcond.errors import GcondError
from gcond.methods.method import Method
from gcond.models.model import Model

BASE = """
from abc import ABC, abstractmethod
class Shape(ABC):
    @abstractmethod
    def area(self): ...
"""
ROUND = """
from shapes.base import Shape
class Curved(Shape):
    pass
class Circle(Curved):
    name = "circle"
    def area(self): return 3
"""
SQUARE = """
from shapes.base import Shape
from shapes.round import Circle
class Square(Shape):
    name = "square"
    def area(self): return 4
"""


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    """A package of its own, to which files can be added."""
    folder = tmp_path / "shapes"
    folder.mkdir()
    for name, text in {"__init__": "", "base": BASE, "round": ROUND, "square": SQUARE}.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("shapes")
    for name in [name for name in sys.modules if name.split(".")[0] == "shapes"]:
        del sys.modules[name]


def test_finds_what_is_defined_and_final(shapes):
    base = importlib.import_module("shapes.base").Shape
    found = discover(shapes, base)
    assert list(found) == ["circle", "square"]
    assert found["circle"].__module__ == "shapes.round"


def test_adding_a_file_registers_it(shapes, tmp_path):
    text = ROUND.replace("Circle", "Oval").replace('"circle"', '"oval"').replace("Curved", "Bent")
    (tmp_path / "shapes" / "oval.py").write_text(text)
    base = importlib.import_module("shapes.base").Shape
    assert list(discover(shapes, base)) == ["oval", "circle", "square"]


def test_two_of_one_name_are_a_mistake(shapes, tmp_path):
    (tmp_path / "shapes" / "twin.py").write_text(ROUND)
    base = importlib.import_module("shapes.base").Shape
    with pytest.raises(TypeError, match="'circle'"):
        discover(shapes, base)


@pytest.mark.parametrize(("package", "base"), [(methods, Method), (models, Model)])
def test_ours_are_named_and_found_again(package, base):
    assert package.available()
    for name, cls in package.available().items():
        assert cls.name == name
        assert issubclass(cls, base)
        assert package.find(name) is cls


def test_the_selecting_methods_are_there():
    assert {"random", "herding", "k-center"} <= methods.available().keys()


def test_a_miss_names_the_nearest_and_all():
    with pytest.raises(GcondError) as caught:
        resolve("method", "hedring", {"random": 1, "herding": 2})
    assert str(caught.value) == "unknown method 'hedring' (did you mean 'herding'?): choose one of herding, random"


def test_a_far_miss_suggests_nothing():
    with pytest.raises(GcondError, match=r"^unknown model 'zzz': choose one of gcn$"):
        resolve("model", "zzz", {"gcn": 1})


def test_suggest():
    assert suggest("epoch", {"epochs": 1, "lr": 2}) == " (did you mean 'epochs'?)"
    assert suggest("xyz", []) == ""


@pytest.mark.parametrize(
    ("typed", "meant"), [("gnc", "gcn"), ("cgn", "gcn"), ("sg", "sgc"), ("gatt", "gat"), ("apnp", "appnp"), ("zzz", "")]
)
def test_letters_in_another_order_are_the_nearest(typed, meant):
    choices = ["appnp", "cheby", "gat", "gcn", "mlp", "sage", "sgc"]
    assert suggest(typed, choices) == (f" (did you mean '{meant}'?)" if meant else "")
