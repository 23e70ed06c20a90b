from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcond.config.settings import as_dict, build, whole_number
from gcond.errors import GcondError


@dataclass(frozen=True)
class Example:
    epochs: int = 600
    lr: float = 0.01
    kind: Literal["a", "b"] = "a"
    flag: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError("epochs must be at least 1")


@dataclass(frozen=True)
class Bare:
    pass


def test_defaults():
    assert build(Example, {}, "it") == Example()


@given(st.integers(1, 10**9), st.floats(1e-9, 1e9), st.sampled_from("ab"), st.booleans())
def test_text_and_values_are_one_path(epochs, lr, kind, flag):
    values = {"epochs": epochs, "lr": lr, "kind": kind, "flag": flag}
    built = build(Example, values, "it")
    assert built == Example(**values)
    assert build(Example, {key: str(value) for key, value in values.items()}, "it") == built
    assert build(Example, as_dict(built), "it") == built


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"epoch": 1},
            "it has no setting 'epoch' (did you mean 'epochs'?): its settings are epochs, lr, kind, flag, name",
        ),
        ({"zzz": 1}, "it has no setting 'zzz': its settings are epochs, lr, kind, flag, name"),
        ({"epochs": "many"}, "it: setting epochs='many' is not usable: input should be a valid integer"),
        ({"epochs": 1.5}, "it: setting epochs=1.5 is not usable: input should be a valid integer"),
        ({"kind": "c"}, "it: setting kind='c' is not usable: input should be 'a' or 'b'"),
        ({"lr": "nan"}, "it: setting lr=nan is not usable: it must be a finite number"),
        ({"lr": "-inf"}, "it: setting lr=-inf is not usable: it must be a finite number"),
        ({"epochs": "0"}, "it: epochs must be at least 1"),
    ],
)
def test_what_is_refused(values, message):
    with pytest.raises(GcondError) as caught:
        build(Example, values, "it")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_nothing_to_set():
    with pytest.raises(GcondError, match=r"^it has no setting 'a': it has no settings$"):
        build(Bare, {"a": 1}, "it")


@pytest.mark.parametrize("value", ["7", 7.0, None, True])
def test_what_is_no_whole_number(value):
    with pytest.raises(GcondError, match=f"nodes={value!r} "):
        whole_number(value, "nodes")


def test_the_least_whole_number():
    assert whole_number(1, "runs", least=1) == 1
    with pytest.raises(GcondError, match=r"runs=0 .* 1 or more"):
        whole_number(0, "runs", least=1)
