"""The figures that the paper prints; ``paper.json`` holds all of its tables."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from gcond.results import Figure


def figure(*path: str | int) -> Figure | None:
    """The paper's figure at ``path``, as the keys of ``paper.json`` lead there; None where it prints nothing.

    The JSON has a number, a ``[mean, std]``, or a ``{"mean": …, "std": …}``.
    """
    found: Any = tables()
    for key in path:
        if isinstance(found, list):
            found = found[key] if isinstance(key, int) and key < len(found) else None
        else:
            found = found.get(str(key)) if isinstance(found, dict) else None
    if isinstance(found, dict) and "mean" in found:
        return Figure(found["mean"], found.get("std"))
    if isinstance(found, list) and len(found) == 2:
        return Figure(*found)
    return Figure(found) if isinstance(found, int | float) else None


def spelling(method: str) -> str:
    """The paper's tables spell methods without hyphens."""
    return {"k-center": "kcenter"}.get(method, method.replace("-", "_"))


@cache
def tables() -> dict[str, Any]:
    """Every table of the paper as it is printed."""
    found: dict[str, Any] = json.loads((files(__package__) / "paper.json").read_text(encoding="utf-8"))
    return found
