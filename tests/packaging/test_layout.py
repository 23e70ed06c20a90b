"""The root of the package stays small, and the order of the rooms names every one of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gcond"
MOST_AT_THE_ROOT = 6


def test_few_modules_lie_at_the_root() -> None:
    assert len(list(SOURCE.glob("*.py"))) <= MOST_AT_THE_ROOT


def test_every_room_has_its_place_in_the_order() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = config["contracts"]
    listed = [room.strip() for layer in contract["layers"] for room in layer.split("|")]
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert sorted(listed) == sorted(rooms | modules)
    assert contract["exhaustive"]
    assert contract["ignore_imports"] == ["gcond -> gcond.**"], "an exception needs a reason beside it, and this list"
