from __future__ import annotations

import pytest

from gcond.cli.assignments import parse_assignments, parse_grid
from gcond.errors import GcondError


def test_assignments():
    pairs = ["epochs=5", " lr = 0.1 ", "name=a=b", "flag="]
    assert parse_assignments(pairs) == {"epochs": "5", "lr": "0.1", "name": "a=b", "flag": ""}


@pytest.mark.parametrize("pair", ["epochs", "=5", " =5", ""])
def test_what_is_no_assignment(pair):
    with pytest.raises(GcondError, match=f"--set takes key=value, and '{pair}'"):
        parse_assignments([pair])


def test_grids():
    assert parse_grid(()) is None
    assert parse_grid(["hidden=16, 32", "hops=2", "hidden=64"]) == {"hidden": ["16", "32", "64"], "hops": ["2"]}


@pytest.mark.parametrize("pair", ["hidden", "=3", "hidden=", "hidden=,"])
def test_what_is_no_grid(pair):
    with pytest.raises(GcondError, match=f"--grid takes setting=value,value, and '{pair}'"):
        parse_grid([pair])
