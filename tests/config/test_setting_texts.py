from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import pytest

from gcond import methods, models
from gcond.config.setting_texts import SettingText, explain
from gcond.training.recipe import Recipe

EVERY = [*methods.available().values(), *models.available().values(), Recipe]


@dataclass(frozen=True)
class Base:
    label: ClassVar[str] = "base"
    """No setting."""

    epochs: int = 5
    """How long it learns,
    in epochs (paper)."""
    lr: float | Literal["auto"] = "auto"
    """Adam's rate."""
    silent: bool = True


@dataclass(frozen=True)
class Derived(Base):
    lr: float | Literal["auto"] = 0.1
    epochs: int = 9
    """Its own words."""
    fanout: tuple[int, ...] = (10, 5)
    """Neighbours."""
    kind: Literal["a", "b", "c"] | None = None
    """Which."""


def test_every_field_with_its_text():
    assert explain(Base) == (
        SettingText("epochs", "whole number", 5, "How long it learns, in epochs (paper)."),
        SettingText("lr", "number or auto", "auto", "Adam's rate."),
        SettingText("silent", "true or false", True, ""),
    )


def test_a_subclass_has_the_last_word():
    assert explain(Derived) == (
        SettingText("epochs", "whole number", 9, "Its own words."),
        SettingText("lr", "number or auto", 0.1, "Adam's rate."),
        SettingText("silent", "true or false", True, ""),
        SettingText("fanout", "whole numbers with commas between", (10, 5), "Neighbours."),
        SettingText("kind", "a, b or c", None, "Which."),
    )


def test_without_its_source_a_setting_has_no_text():
    space: dict[str, type] = {}
    exec("from dataclasses import dataclass\n@dataclass\nclass Typed:\n    n: int = 1\n    'Number.'\n", space)
    assert explain(space["Typed"]) == (SettingText("n", "whole number", 1, ""),)


@pytest.mark.parametrize("cls", EVERY, ids=lambda cls: cls.__name__)
def test_every_setting_there_is_has_a_text(cls):
    found = explain(cls)
    assert [one.name for one in found] == [field.name for field in fields(cls)]
    assert [one.name for one in found if not one.text] == []
    assert [one.default for one in found] == [getattr(cls(), one.name) for one in found]
